//! Cookies, and whether a browser came over TLS.

use std::net::IpAddr;
use std::time::Duration;

use http::header::{COOKIE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderName, HeaderValue};
use svc_core::accounts::sessions::NewSession;

use crate::kernel::peer::OverTls;

/// The cookie of a session.
const SESSION_COOKIE: &str = "svc_session";
/// The prefix of the name of a cookie over TLS: a browser takes it from this host alone, and not from a neighbour below
/// the same domain. Without TLS, only a server on the machine of the browser should be used.
const SECURE_PREFIX: &str = "__Host-";
/// Where a request comes from, as browsers say it (Fetch Metadata).
pub(super) const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Returns the token in the cookie of the session.
pub(super) fn session_token(parts: &Parts) -> Option<String> {
    read_cookie(parts, SESSION_COOKIE).map(|(token, _)| token)
}

/// Returns the value of a cookie, and whether it is that over TLS, which nobody else can set. Where the browser came over TLS
/// no other counts: a neighbour below the same domain may have set it.
pub(super) fn read_cookie(parts: &Parts, name: &str) -> Option<(String, bool)> {
    let lines = parts.headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let cookies: Vec<(&str, &str)> = lines.flat_map(|line| line.split(';')).filter_map(|c| c.split_once('=')).collect();
    let named = |prefix: &str, is_secure| {
        let is_named = |known: &str| known.trim().strip_prefix(prefix) == Some(name);
        cookies.iter().find(|(known, _)| is_named(known)).map(|(_, value)| (value.trim().to_owned(), is_secure))
    };
    named(SECURE_PREFIX, true).or_else(|| named("", false).filter(|_| !is_secure(parts)))
}

/// Returns whether the browser came over TLS, to this server or to a proxy in front of it. The origin of a form tells, and
/// `Sec-Fetch-Site`, which browsers send to this machine and over TLS alone (Fetch Metadata §2).
pub(super) fn is_secure(parts: &Parts) -> bool {
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    parts.extensions.get::<OverTls>().is_some()
        || parts.headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"))
        || parts.headers.contains_key(FETCH_SITE) && !is_this_machine(host)
}

/// Returns whether a browser takes a host for that of its own machine, and so trusts it without TLS.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

/// Returns the cookie that keeps a session.
pub(super) fn session_cookie(new: &NewSession, is_secure: bool) -> Option<HeaderValue> {
    cookie(SESSION_COOKIE, new.token.reveal(), is_secure, new.session.lifetime())
}

/// Returns the cookies that end a session in the browser.
pub(super) fn expired_session() -> [HeaderValue; 2] {
    expired(SESSION_COOKIE)
}

/// Returns a cookie that scripts cannot read, and that another site sends only when it links here.
pub(super) fn cookie(name: &str, value: &str, is_secure: bool, lifetime: Duration) -> Option<HeaderValue> {
    let (prefix, secure) = if is_secure { (SECURE_PREFIX, "; Secure") } else { ("", "") };
    let lifetime = lifetime.as_secs();
    let cookie = format!("{prefix}{name}={value}{secure}; HttpOnly; SameSite=Lax; Path=/; Max-Age={lifetime}");
    HeaderValue::try_from(cookie).ok()
}

/// Returns the cookies that delete a cookie, with TLS and without.
#[expect(clippy::expect_used, reason = "the name of a cookie consists of ASCII")]
pub(super) fn expired(name: &str) -> [HeaderValue; 2] {
    [true, false].map(|is_secure| cookie(name, "", is_secure, Duration::ZERO).expect("a cookie"))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter().map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn over_tls_only_the_cookie_counts_that_a_neighbour_cannot_set() {
        let of = |list: &[(&'static str, &'static str)], is_over_tls: bool| {
            let (mut parts, ()) = http::Request::new(()).into_parts();
            parts.headers = headers(list);
            if is_over_tls {
                parts.extensions.insert(OverTls);
            }
            session_token(&parts)
        };
        let both = ("cookie", "svc_session=a; __Host-svc_session=b");
        let plain = ("cookie", "svc_session=a");
        let site = ("sec-fetch-site", "same-origin");
        for (list, is_over_tls, want) in [
            (&[plain][..], false, Some("a")),
            (&[both], false, Some("b")),
            (&[("cookie", "other=svc_session")], false, None),
            (&[plain], true, None),
            (&[both], true, Some("b")),
            (&[plain, ("origin", "https://svc.example")], false, None),
            (&[plain, site, ("host", "svc.example")], false, None),
            (&[both, site, ("host", "svc.example")], false, Some("b")),
            (&[plain, site, ("host", "localhost:8080")], false, Some("a")),
            (&[plain, site, ("host", "[::1]:8080")], false, Some("a")),
            (&[plain, site, ("host", "127.0.0.1")], false, Some("a")),
            (&[plain, site, ("host", "127.0.0.1.example")], false, None),
        ] {
            assert_eq!(of(list, is_over_tls).as_deref(), want, "{list:?} {is_over_tls}");
        }
    }
}
