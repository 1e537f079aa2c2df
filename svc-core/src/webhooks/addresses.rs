//! The addresses and host names that a webhook may be sent to: the defence against server-side request forgery (SSRF).
//!
//! One table per address family classifies every address. The longest prefix that contains an address decides, and an
//! address that no prefix contains is refused. The sources are the IANA special-purpose address registries for [IPv4] and
//! [IPv6] (RFC 6890, as updated by RFC 8190), multicast and reserved space, the metadata services of cloud providers, and
//! the ways to embed an IPv4 address in an IPv6 one.
//!
//! An address that embeds an IPv4 address is always refused, even when the address inside is public: a translator or
//! tunnel on the path decides where such a packet ends. The address inside only gives the reason. A NAT64 prefix from an
//! operator's own space (RFC 6052, section 2.2) looks like any public address, so a network that uses one must filter
//! behind it.
//!
//! # Checking a name is not enough
//!
//! [`check_host_name`] refuses early and with a clear reason, when a subscription is written. The protection is
//! [`check_address`], applied to every resolved address when the connection is made, because a name can resolve to
//! another address each time.
//!
//! [IPv4]: https://www.iana.org/assignments/iana-ipv4-special-registry
//! [IPv6]: https://www.iana.org/assignments/iana-ipv6-special-registry

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use futures_util::future::BoxFuture;
use url::Host;

use crate::error::{FieldCode, Issue};
use crate::values::{HostPolicy, WebhookUrl};

/// The classification of the addresses under a prefix.
#[derive(Clone, Copy)]
enum Rule {
    Public,
    Refused(&'static str),
    /// Refused. The function extracts the embedded IPv4 address, whose reason is given if it is refused itself.
    Embeds(fn(u128) -> u32, &'static str),
}

use Rule::{Embeds, Public, Refused};

/// Network (IPv4 in the highest 32 bits), prefix length, rule.
type Row = (u128, u32, Rule);

const CLOUD: &str = "the metadata service of a cloud";
const METADATA: Rule = Refused(CLOUD);
const DOCUMENTATION_4: Rule = Refused("a documentation address (RFC 5737)");
const NOT_GLOBAL: Rule = Refused("outside global unicast space, 2000::/3 (RFC 4291)");
const ISATAP: Rule = Embeds(in_low_bits, "an ISATAP address (RFC 5214)");

#[rustfmt::skip]
const IPV4: &[Row] = &[
    (v4([0, 0, 0, 0]), 0, Public),
    (v4([0, 0, 0, 0]), 8, Refused("an address of \"this network\" (RFC 791)")),
    (v4([0, 0, 0, 0]), 32, Refused("the unspecified address (RFC 1122)")),
    (v4([10, 0, 0, 0]), 8, Refused("a private-use address (RFC 1918)")),
    (v4([100, 64, 0, 0]), 10, Refused("a shared, carrier-grade NAT address (RFC 6598)")),
    (v4([100, 100, 100, 200]), 32, METADATA), // Alibaba
    (v4([127, 0, 0, 0]), 8, Refused("a loopback address (RFC 1122)")),
    (v4([168, 63, 129, 16]), 32, METADATA), // Azure, inside public space
    (v4([169, 254, 0, 0]), 16, Refused("a link-local address (RFC 3927)")),
    (v4([169, 254, 169, 254]), 32, METADATA),
    (v4([172, 16, 0, 0]), 12, Refused("a private-use address (RFC 1918)")),
    (v4([192, 0, 0, 0]), 24, Refused("an IETF protocol assignment (RFC 6890)")),
    (v4([192, 0, 0, 9]), 32, Public), // PCP anycast
    (v4([192, 0, 0, 10]), 32, Public), // TURN anycast
    (v4([192, 0, 2, 0]), 24, DOCUMENTATION_4),
    (v4([192, 88, 99, 0]), 24, Refused("a 6to4 relay address (RFC 7526)")),
    (v4([192, 168, 0, 0]), 16, Refused("a private-use address (RFC 1918)")),
    (v4([198, 18, 0, 0]), 15, Refused("a benchmarking address (RFC 2544)")),
    (v4([198, 51, 100, 0]), 24, DOCUMENTATION_4),
    (v4([203, 0, 113, 0]), 24, DOCUMENTATION_4),
    (v4([224, 0, 0, 0]), 4, Refused("a multicast address (RFC 5771)")),
    (v4([240, 0, 0, 0]), 4, Refused("a reserved address (RFC 1112)")),
    (v4([255, 255, 255, 255]), 32, Refused("the limited broadcast address (RFC 919)")),
];

#[rustfmt::skip]
const IPV6: &[Row] = &[
    (v6([0]), 96, Embeds(in_low_bits, "an IPv4-compatible address (RFC 4291)")),
    (v6([0]), 128, Refused("the unspecified address (RFC 4291)")),
    (v6([0, 0, 0, 0, 0, 0, 0, 1]), 128, Refused("the loopback address (RFC 4291)")),
    (v6([0, 0, 0, 0, 0, 0xffff]), 96, Embeds(in_low_bits, "an IPv4-mapped address (RFC 4291)")),
    (v6([0, 0, 0, 0, 0xffff]), 96, Embeds(in_low_bits, "an IPv4-translated address (RFC 2765)")),
    (v6([0x64, 0xff9b]), 96, Embeds(in_low_bits, "a NAT64 address (RFC 6052)")),
    (v6([0x64, 0xff9b, 1]), 48, Embeds(in_local_nat64, "a local-use NAT64 address (RFC 8215)")),
    (v6([0x100]), 64, Refused("a discard-only address (RFC 6666)")),
    (v6([0x100, 0, 0, 1]), 64, Refused("a dummy address (RFC 9780)")),
    (v6([0x2000]), 3, Public),
    (v6([0x2001]), 23, Refused("an IETF protocol assignment (RFC 2928)")),
    (v6([0x2001]), 32, Embeds(|ip| !(ip as u32), "a Teredo address (RFC 4380)")), // inverted
    (v6([0x2001, 1, 0, 0, 0, 0, 0, 1]), 128, Public), // PCP anycast
    (v6([0x2001, 1, 0, 0, 0, 0, 0, 2]), 128, Public), // TURN anycast
    (v6([0x2001, 1, 0, 0, 0, 0, 0, 3]), 128, Public), // service registration anycast
    (v6([0x2001, 2]), 48, Refused("a benchmarking address (RFC 5180)")),
    (v6([0x2001, 3]), 32, Public), // AMT
    (v6([0x2001, 4, 0x112]), 48, Public), // AS112
    (v6([0x2001, 0x10]), 28, Refused("an ORCHID, which is no locator (RFC 4843)")),
    (v6([0x2001, 0x20]), 28, Public), // ORCHIDv2
    (v6([0x2001, 0x30]), 28, Public), // drone remote id
    (v6([0x2001, 0xdb8]), 32, Refused("a documentation address (RFC 3849)")),
    (v6([0x2002]), 16, Embeds(|ip| (ip >> 80) as u32, "a 6to4 address (RFC 3056)")),
    (v6([0x3fff]), 20, Refused("a documentation address (RFC 9637)")),
    (v6([0x5f00]), 16, Refused("a segment routing id (RFC 9602)")),
    (v6([0xfc00]), 7, Refused("a unique local address (RFC 4193)")),
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]), 128, METADATA), // Amazon
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]), 128, METADATA), // Google
    (v6([0xfe80]), 10, Refused("a link-local address (RFC 4291)")),
    (v6([0xfec0]), 10, Refused("a site-local address (RFC 3879)")),
    (v6([0xff00]), 8, Refused("a multicast address (RFC 4291)")),
];

/// Names that are refused together with every name under them. The first match gives the reason.
#[rustfmt::skip]
const NAMES: &[(&[&str], &str)] = &[
    (&["instance-data", "instance-data.ec2.internal", "metadata", "metadata.azure.com",
       "metadata.azure.internal", "metadata.goog", "metadata.google.internal",
       "metadata.packet.net", "metadata.platformequinix.com", "metadata.tencentyun.com"], CLOUD),
    (&["localhost", "localdomain"], "a name of the local host (RFC 6761)"),
    (&["local"], "a link-local name (RFC 6762)"),
    (&["home.arpa"], "a name of a home network (RFC 8375)"),
    (&["corp", "home", "internal", "intranet", "lan", "private"],
     "a name of a private network (RFC 6762, appendix G)"),
];

const fn v4(octets: [u8; 4]) -> u128 {
    (u32::from_be_bytes(octets) as u128) << 96
}

/// Returns the address with these first groups, followed by zeros.
const fn v6<const N: usize>(head: [u16; N]) -> u128 {
    let (mut bits, mut i) = (0, 0);
    while i < N {
        bits |= (head[i] as u128) << (112 - 16 * i);
        i += 1;
    }
    bits
}

/// Returns the last 32 bits, where most embeddings have the IPv4 address.
const fn in_low_bits(ip: u128) -> u32 {
    ip as u32
}

/// Returns the embedded address in the layout of RFC 6052 for a /48 if its suffix is zero, and for a /96 otherwise.
const fn in_local_nat64(ip: u128) -> u32 {
    match ip << 88 {
        0 => ((ip >> 64) as u32) << 16 | ((ip >> 40) as u32 & 0xffff),
        _ => ip as u32,
    }
}

/// Returns whether the interface id is `0:5efe` or `200:5efe`, followed by an IPv4 address (RFC 5214, section 6.1).
const fn is_isatap(ip: u128) -> bool {
    (ip >> 32) as u32 & !0x0200_0000 == 0x0000_5efe
}

const fn holds(network: u128, length: u32, ip: u128) -> bool {
    (network ^ ip).leading_zeros() >= length
}

fn look_up(table: &[Row], ip: u128) -> Rule {
    let rows = table.iter().filter(|row| holds(row.0, row.1, ip));
    rows.max_by_key(|row| row.1).map_or(NOT_GLOBAL, |row| row.2)
}

/// An address or host name that no webhook is sent to, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The refused address, or the refused name as it was given.
    pub host: String,
    /// The IPv4 address inside `host`, if `reason` is about that one.
    pub embedded: Option<Ipv4Addr>,
    /// The kind of address or name. The text completes "… is".
    pub reason: &'static str,
}

impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.host.escape_debug())?;
        if let Some(inner) = self.embedded {
            write!(f, "embeds {inner}, which ")?;
        }
        write!(f, "is {}", self.reason)
    }
}

impl std::error::Error for Blocked {}

/// Checks that deliveries may be sent to `url` under `policy`, as far as the text of the URL shows: `https`, on a host that
/// can be public. The addresses that the host name resolves to are checked by [`check_addresses`].
///
/// # Errors
/// `invalid_format` with the reason.
///
/// # Examples
///
/// ```
/// use svc_core::values::{HostPolicy, WebhookUrl};
/// use svc_core::webhooks::addresses::check_url;
///
/// let url = WebhookUrl::parse("https://0x7f.1/hook")?;
/// assert!(check_url(&url, HostPolicy::Public).is_err());
/// assert!(check_url(&url, HostPolicy::AllowPrivate).is_ok());
/// # Ok::<(), svc_core::error::Issue>(())
/// ```
pub fn check_url(url: &WebhookUrl, policy: HostPolicy) -> Result<(), Issue> {
    let not_https = || Err(Issue::new(FieldCode::InvalidFormat, "must be an https URL"));
    if url.is_of_stream() {
        return not_https();
    }
    if policy == HostPolicy::AllowPrivate {
        return Ok(());
    }
    let url = url.url();
    if url.scheme() != "https" {
        return not_https();
    }
    match url.host() {
        Some(Host::Domain(name)) => check_host_name(name).map_err(not_public),
        Some(Host::Ipv4(ip)) => check_addresses(&[ip.into()]),
        Some(Host::Ipv6(ip)) => check_addresses(&[ip.into()]),
        None => Err(Issue::new(FieldCode::InvalidFormat, "must name a host")),
    }
}

/// Resolves host names to addresses. The server implements it, as the rules do no network I/O of their own.
pub trait Resolver: Send + Sync {
    /// Returns all addresses of a host name, or none when it does not resolve.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Vec<IpAddr>>;
}

/// Checks that deliveries may be sent to `url` under `policy`: its text, as [`check_url`] does, and then the addresses
/// that its host name resolves to now. A name that does not resolve is accepted, as it may do so later.
///
/// This waits for the resolver, so call it before a transaction and not within one.
///
/// # Errors
///
/// Returns `invalid_format` with the reason.
pub async fn check_target(url: &WebhookUrl, policy: HostPolicy, resolver: &dyn Resolver) -> Result<(), Issue> {
    check_url(url, policy)?;
    match url.domain() {
        Some(name) if policy == HostPolicy::Public => check_addresses(&resolver.resolve(name).await),
        _ => Ok(()),
    }
}

/// Checks that all addresses of a host are public.
///
/// # Errors
/// `invalid_format` with the first address that is not public.
pub fn check_addresses(addresses: &[IpAddr]) -> Result<(), Issue> {
    addresses.iter().try_for_each(|ip| check_address(*ip).map_err(not_public))
}

fn not_public(blocked: Blocked) -> Issue {
    Issue::new(FieldCode::InvalidFormat, format!("must be on a public host: {blocked}"))
}

/// Checks that an address is a public unicast address.
///
/// # Errors
/// The reason for which the address is refused.
///
/// # Examples
///
/// ```
/// use svc_core::webhooks::addresses::check_address;
///
/// assert_eq!(check_address([1, 1, 1, 1].into()), Ok(()));
/// let private = check_address([10, 0, 0, 1].into()).unwrap_err();
/// assert_eq!(private.to_string(), "10.0.0.1 is a private-use address (RFC 1918)");
/// let mapped = check_address("::ffff:127.0.0.1".parse().unwrap()).unwrap_err();
/// assert_eq!(mapped.reason, "a loopback address (RFC 1122)");
/// ```
pub fn check_address(ip: IpAddr) -> Result<(), Blocked> {
    let (table, bits) = match ip {
        IpAddr::V4(ip) => (IPV4, v4(ip.octets())),
        IpAddr::V6(ip) => (IPV6, ip.to_bits()),
    };
    let rule = match look_up(table, bits) {
        Public if is_isatap(bits) => ISATAP, // never so for IPv4, whose low bits are zero
        rule => rule,
    };
    let (embedded, reason) = match rule {
        Public => return Ok(()),
        Refused(reason) => (None, reason),
        Embeds(inside, reason) => {
            let inner = Ipv4Addr::from(inside(bits));
            let blocked = check_address(inner.into()).err();
            blocked.map_or((None, reason), |blocked| (Some(inner), blocked.reason))
        }
    };
    Err(Blocked { host: ip.to_string(), embedded, reason })
}

/// Checks that a name can belong to a public host. The name is in the ASCII form that a URL parser returns.
///
/// # Errors
/// The reason for which the name is refused.
///
/// # Examples
///
/// ```
/// use svc_core::webhooks::addresses::check_host_name;
///
/// assert_eq!(check_host_name("hooks.example.com"), Ok(()));
/// let local = check_host_name("printer.local").unwrap_err();
/// assert_eq!(local.to_string(), "printer.local is a link-local name (RFC 6762)");
/// ```
pub fn check_host_name(name: &str) -> Result<(), Blocked> {
    let lower = name.to_ascii_lowercase();
    let last = lower.rsplit('.').next().unwrap_or_default();
    let is_under = |suffix: &&str| {
        let rest = lower.strip_suffix(suffix);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let reserved = NAMES.iter().find(|row| row.0.iter().any(is_under));
    let reason = if last.is_empty() {
        "spelled with an empty last label"
    } else if lower.len() > 253 || !lower.split('.').all(is_label) {
        "not a host name (RFC 1123)"
    } else if is_number(last) {
        "a spelling of an IPv4 address, since it ends in a number"
    } else if let Some((_, reason)) = reserved {
        reason
    } else if last == lower {
        "a single-label name, which only a private network resolves"
    } else {
        return Ok(());
    };
    Err(Blocked { host: name.to_owned(), embedded: None, reason })
}

/// Returns whether a label consists of letters, digits, hyphens and the underscores that some public names have.
fn is_label(label: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=63).contains(&label.len()) && label.bytes().all(fits)
}

/// Returns whether the WHATWG URL parser reads a lower-case last label as the end of an IPv4 address.
fn is_number(label: &str) -> bool {
    match label.strip_prefix("0x") {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv6Addr;

    const REGISTRIES: &str = concat!(
        include_str!("../../addresses/iana-special-ipv4.csv"),
        include_str!("../../addresses/iana-special-ipv6.csv"),
    );

    /// The blocks that this module refuses although the registries list them as globally reachable or not at all. For IPv6,
    /// it also refuses everything outside 2000::/3 (of the registry, that is 64:ff9b::/96).
    const STRICTER: [&str; 2] = ["168.63.129.16/32", "224.0.0.0/4"];

    /// Returns the network, the prefix length, and whether it is IPv4.
    fn block(text: &str) -> (u128, u32, bool) {
        let (network, length) = text.split_once('/').unwrap();
        let length = length.parse().unwrap();
        match network.parse().unwrap() {
            IpAddr::V4(ip) => (v4(ip.octets()), length, true),
            IpAddr::V6(ip) => (ip.to_bits(), length, false),
        }
    }

    fn registered() -> impl Iterator<Item = ((u128, u32, bool), bool)> {
        let rows = REGISTRIES.lines().filter_map(|line| line.split_once(','));
        let rows = rows.filter(|(text, _)| text.contains('/'));
        rows.map(|(text, reachable)| (block(text), reachable == "True"))
    }

    fn is_public(ip: u128, is_v4: bool) -> bool {
        let holds_ip = |row: (u128, u32, bool)| row.2 == is_v4 && holds(row.0, row.1, ip);
        let rows = registered().filter(|(row, _)| holds_ip(*row));
        let row = rows.max_by_key(|((_, length, _), _)| *length);
        row.is_none_or(|(_, reachable)| reachable)
            && (is_v4 || ip >> 125 == 1)
            && !STRICTER.iter().any(|text| holds_ip(block(text)))
    }

    fn address(ip: u128, is_v4: bool) -> IpAddr {
        match is_v4 {
            true => Ipv4Addr::from((ip >> 96) as u32).into(),
            false => Ipv6Addr::from(ip).into(),
        }
    }

    #[test]
    fn edges_of_every_block_agree_with_the_registries() {
        let own = |table: &'static [Row], is_v4| table.iter().map(move |row| (row.0, row.1, is_v4));
        let blocks = registered().map(|(row, _)| row);
        for (first, length, is_v4) in blocks.chain(own(IPV4, true)).chain(own(IPV6, false)) {
            let step = if is_v4 { 1 << 96 } else { 1 };
            let next = first.wrapping_add(1_u128.checked_shl(128 - length).unwrap_or(0));
            let (before, last) = (first.wrapping_sub(step), next.wrapping_sub(step));
            for bits in [before, first, last, next] {
                let ip = address(bits, is_v4);
                assert_eq!(check_address(ip).is_ok(), is_public(bits, is_v4), "{ip}");
            }
        }
    }

    #[test]
    fn only_public_addresses_are_accepted() {
        let refused = "0.0.0.0 10.255.255.255 100.64.0.0 127.0.0.1 169.254.169.254 172.31.255.255 \
            192.0.0.8 192.88.99.1 192.168.0.1 198.19.255.255 224.0.0.1 240.0.0.1 255.255.255.255 \
            :: ::1 ::8.8.8.8 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 64:ff9b:1::1 1fff::1 2001:db8::1 \
            2001::1 2002:808:808::1 2a00::5efe:8.8.8.8 2a00::200:5efe:8.8.8.8 4000:: fc00::1 \
            fe80::1 fec0::1 ff02::1";
        for text in refused.split_whitespace() {
            assert!(check_address(text.parse().unwrap()).is_err(), "{text}");
        }
        let public = "1.1.1.1 8.8.8.8 11.0.0.0 172.32.0.0 192.0.0.9 223.255.255.255 \
            2606:4700:4700::1111 2a00:1450::1 2001:4:112::1 2001:200:: 2003:: 3fff:1000::";
        for text in public.split_whitespace() {
            assert_eq!(check_address(text.parse().unwrap()), Ok(()));
        }
    }

    #[test]
    fn only_names_that_can_be_public_are_accepted() {
        let refused = "localhost a.LocalHost x.local a.internal nas.lan r.home.arpa home.arpa db \
            example.com. localhost. . a..b 127.0.0.1 2130706433 127.1 0x7f.1 a.0X a.0x7F [::1] a%b \
            metadata Metadata.Google.Internal instance-data metadata.azure.com é.com";
        for name in refused.split_whitespace().chain(["", "a b.com"]) {
            assert!(check_host_name(name).is_err(), "{name}");
        }
        for name in ["example.com", "a_b.Example.org", "xn--bcher-kva.de", "local.dev", "a.0xg"] {
            assert_eq!(check_host_name(name), Ok(()));
        }
        // 253 characters, as labels of 61 and the dots between them.
        let longest = format!("{0}.{0}.{0}.{0}.{1}", "a".repeat(61), "b".repeat(5));
        assert_eq!((longest.len(), check_host_name(&longest)), (253, Ok(())));
        for longer in ["c", "cc"] {
            assert!(check_host_name(&format!("{longest}{longer}")).is_err(), "longer by {longer}");
        }
    }

    proptest! {
        #[test]
        fn an_embedding_address_is_refused_with_the_reason_of_the_address_inside(row in 0..IPV4.len(), host: u32, any: u128) {
            let (network, length, _) = IPV4[row];
            let inner = (network >> 96) as u32 | host.checked_shr(length).unwrap_or(0);
            prop_assume!(inner > 1); // `::` and `::1` are no embeddings
            let low = u128::from(inner);
            let isatap = v6([0x2a00]) | (any >> 8 & !u128::from(u64::MAX)) | low;
            let forms = [
                low,
                v6([0, 0, 0, 0, 0, 0xffff]) | low,
                v6([0, 0, 0, 0, 0xffff]) | low,
                v6([0x64, 0xff9b]) | low,
                v6([0x64, 0xff9b, 1]) | low,
                v6([0x64, 0xff9b, 1]) | (low >> 16 << 64) | (low & 0xffff) << 40,
                v6([0x2002]) | low << 80 | any >> 48,
                v6([0x2001]) | (any >> 64 << 32) | u128::from(!inner),
                isatap | 0x5efe << 32,
                isatap | 0x0200_5efe << 32,
            ];
            let expected = check_address(Ipv4Addr::from(inner).into()).err().map(|blocked| blocked.reason);
            for form in forms {
                let blocked = check_address(Ipv6Addr::from(form).into()).unwrap_err();
                prop_assert_eq!(blocked.embedded.map(|_| blocked.reason), expected);
            }
        }
    }

    /// Resolves every name to the same addresses.
    struct Fixed(Vec<IpAddr>);

    impl Resolver for Fixed {
        fn resolve<'a>(&'a self, _host: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
            Box::pin(async { self.0.clone() })
        }
    }

    #[test]
    fn a_target_must_not_resolve_to_an_address_that_is_not_public() {
        let check = |url: &str, policy, addresses: &[&str]| {
            let resolver = Fixed(addresses.iter().map(|text| text.parse().unwrap()).collect());
            let url = WebhookUrl::parse(url).unwrap();
            futures_util::FutureExt::now_or_never(check_target(&url, policy, &resolver)).unwrap()
        };
        let name = "https://hooks.example.com/";
        assert_eq!(check(name, HostPolicy::Public, &["1.1.1.1"]), Ok(()));
        assert_eq!(check(name, HostPolicy::Public, &[]), Ok(()), "a name that does not resolve");
        assert!(check(name, HostPolicy::Public, &["1.1.1.1", "10.0.0.1"]).is_err());
        assert_eq!(check(name, HostPolicy::AllowPrivate, &["10.0.0.1"]), Ok(()));
        assert!(check("https://10.0.0.1/", HostPolicy::Public, &["1.1.1.1"]).is_err(), "the text is checked first");
    }

    fn check_text(text: &str) -> Result<(), Issue> {
        check_url(&WebhookUrl::parse(text)?, HostPolicy::Public)
    }

    #[test]
    fn https_urls_on_public_hosts_are_accepted() {
        for good in [
            "https://example.com",
            "https://hooks.example.com:8443/a?b=c",
            "https://1.1.1.1/",
            " https://EXAMPLE.com/x ",
        ] {
            assert!(check_text(good).is_ok(), "{good}");
        }
    }

    #[test]
    fn all_other_urls_are_refused() {
        let long = format!("https://example.com/{}", "x".repeat(2048));
        for bad in [
            "",
            "example.com",
            "ftp://example.com/",
            "http://example.com/",
            "https://",
            "https://user@example.com/",
            "https://user:pw@example.com/",
            "https://@example.com/",
            "https://127.0.0.1/",
            "https://0x7f.1/",
            "https://2130706433/",
            "https://017700000001/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
            "https://10.1.2.3/",
            "https://169.254.169.254/latest",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://db.internal/",
            "https://printer.local/",
            "https://intranet/",
            "https://１２７.0.0.1/",
            "https://example.com/\u{1}",
            &long,
        ] {
            assert!(check_text(bad).is_err(), "{bad}");
        }
    }
}
