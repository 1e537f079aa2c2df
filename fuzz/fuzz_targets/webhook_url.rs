//! Webhook URLs: every accepted URL is https with a host that is public under the address rules, both for the parser
//! that checked it and for the client that connects to it.

#![no_main]

use std::net::{IpAddr, Ipv4Addr};

use libfuzzer_sys::fuzz_target;
use svc_core::values::{HostPolicy, WebhookUrl};
use svc_core::webhooks::addresses;
use url::Host;

fuzz_target!(|text: &str| {
    let Ok(target) = WebhookUrl::parse(text) else { return };
    assert_eq!(WebhookUrl::parse(target.as_str()).as_ref(), Ok(&target), "an accepted URL must be accepted again");
    // The URL as the client parses it.
    let client_uri: http::Uri = target.url().as_str().parse().expect("the client must be able to parse the URL");
    let host = client_uri.host().expect("the URL must have a host");
    assert_eq!(Some(host), target.url().host_str());
    assert_eq!(client_uri.port_u16(), target.url().port());
    assert_ne!(client_uri.port_u16(), Some(0));
    assert!(!client_uri.authority().expect("the URL must have an authority").as_str().contains('@'));
    if addresses::check_url(&target, HostPolicy::Public).is_err() {
        return;
    }
    assert_eq!((client_uri.scheme_str(), target.url().scheme()), (Some("https"), "https"));
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    match bare.parse::<IpAddr>() {
        Ok(ip) => assert_eq!(addresses::check_address(ip), Ok(())),
        Err(_) => {
            let Some(Host::Domain(name)) = target.url().host() else { panic!("{host} is not a domain name") };
            assert!(name.contains('.') && name.is_ascii(), "{name}");
            assert_eq!(inet_aton(name), None, "inet_aton reads this name as an address: {name}");
            assert_eq!(addresses::check_host_name(&name.to_uppercase()), Ok(()));
            for end in [".localhost", ".local", ".internal", ".lan", ".home.arpa"] {
                assert!(!name.ends_with(end), "{name}");
            }
        }
    }
});

/// Returns the address that `inet_aton` reads: one to four parts, each decimal, octal or hexadecimal.
fn inet_aton(name: &str) -> Option<Ipv4Addr> {
    let part = |text: &str| match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None if text.len() > 1 && text.starts_with('0') => u64::from_str_radix(text, 8),
        None => text.parse(),
    };
    let parts: Vec<u64> = name.split('.').map(|text| part(text).ok()).collect::<Option<_>>()?;
    let (last, first) = parts.split_last()?;
    let bits = 32_u32.checked_sub(8 * u32::try_from(first.len()).ok()?)?;
    if first.iter().any(|byte| *byte > 255) || bits == 0 || *last >> bits != 0 {
        return None;
    }
    let high = first.iter().fold(0, |sum, byte| sum << 8 | byte);
    Some(Ipv4Addr::from_bits(u32::try_from(high << bits | last).ok()?))
}
