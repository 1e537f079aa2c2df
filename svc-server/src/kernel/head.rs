//! Checks the head of a request, and reads its path.

use std::collections::HashMap;
use std::net::Ipv6Addr;

use http::header::{HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Method, Uri, Version};

use super::problem::Problem;

/// The length of the longest request target, in bytes.
pub const MAX_URI: usize = 8 * 1024;
/// The size of the largest headers, in bytes: names, values and 4 bytes for each header.
pub const MAX_HEADERS: usize = 16 * 1024;

/// Returns a router that finds all that have a path, in their order.
pub(crate) fn by_path<T>(routes: impl IntoIterator<Item = (String, T)>) -> matchit::Router<Vec<T>> {
    let mut paths: HashMap<String, Vec<T>> = HashMap::new();
    for (path, route) in routes {
        paths.entry(path).or_default().push(route);
    }
    let mut router = matchit::Router::new();
    for (path, routes) in paths {
        #[expect(clippy::expect_used, reason = "the paths are fixed, and tests build the router")]
        router.insert(path, routes).expect("paths that do not conflict");
    }
    router
}

/// Returns whether this is `OPTIONS *`, which asks about the server as a whole (RFC 9110 §9.3.7).
pub(crate) fn is_about_server(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS && parts.uri.path() == "*"
}

/// Checks that a request only reads.
///
/// # Errors
///
/// Returns [`Problem::MethodNotAllowed`].
pub(crate) fn only_get(parts: &Parts) -> Result<(), Problem> {
    match parts.method {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(Problem::MethodNotAllowed("GET, HEAD".to_owned())),
    }
}

/// The target of a request as it was sent, as an extension, where it was not the plain one. A signature covers it.
#[derive(Clone, Debug)]
pub(crate) struct SentTarget(pub(crate) Uri);

/// Decodes the characters of the path that need no encoding, which makes it the same path (RFC 3986 §6.2.2.2).
pub(crate) fn decode_unreserved(parts: &mut Parts) {
    let path = parts.uri.path();
    if !path.contains('%') {
        return;
    }
    let mut rest = path;
    let mut plain = String::with_capacity(path.len());
    while let Some((before, after)) = rest.split_once('%') {
        plain.push_str(before);
        let byte = after.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match byte.filter(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(byte)) {
            Some(byte) => {
                plain.push(char::from(byte));
                rest = &after[2..];
            }
            None => {
                plain.push('%');
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    if plain == path {
        return;
    }
    if let Some(query) = parts.uri.query() {
        plain = format!("{plain}?{query}");
    }
    let mut target = parts.uri.clone().into_parts();
    target.path_and_query = plain.try_into().ok();
    if let Ok(target) = Uri::from_parts(target) {
        let sent = std::mem::replace(&mut parts.uri, target);
        parts.extensions.insert(SentTarget(sent));
    }
}

/// Checks the size of the request target and of the headers, the host, and that the body is not transfer-coded.
pub(crate) fn check(parts: &Parts) -> Result<(), Problem> {
    if parts.uri.path_and_query().map_or(0, |target| target.as_str().len()) > MAX_URI {
        return Err(Problem::UriTooLong);
    }
    let size: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size > MAX_HEADERS {
        return Err(Problem::HeadersTooLarge);
    }
    let hosts = parts.headers.get_all(HOST).iter().count();
    // HTTP/1.0 has no Host header, and HTTP/2 has the host in the request target.
    let expected = if parts.version == Version::HTTP_11 { 1..=1 } else { 0..=1 };
    if !expected.contains(&hosts) {
        return Err(Problem::HostCount);
    }
    let host = parts.headers.get(HOST).map(HeaderValue::as_bytes);
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    if !host.into_iter().chain(authority).all(is_host_and_port) {
        return Err(Problem::HostFormat);
    }
    // A coding before `chunked` would reach the parser as it is, and two parsers may take a repeated one differently.
    let mut codings = parts.headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(only), None) if only.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(Problem::TransferEncoding),
    }
}

/// Returns whether this is a host, or a host and a port (RFC 9110 §7.2).
fn is_host_and_port(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return false };
    let (host, port) = match text.rsplit_once(':') {
        // The last colon is one of an IPv6 address.
        Some((_, rest)) if rest.ends_with(']') => (text, ""),
        Some((host, port)) => (host, port),
        None => (text, ""),
    };
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(&b)),
    };
    // The port may be empty (RFC 3986 §3.2.3).
    let is_port = port.is_empty() || (port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok());
    is_host && is_port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_needless_encoding_is_the_plain_path() {
        for (sent, plain) in [
            ("/api/v1/%63ontacts?limit=%31", "/api/v1/contacts?limit=%31"),
            ("/%61%7A%2d%2E%5f%7e%39", "/az-._~9"),
            ("/a%2Fb%20c%", "/a%2Fb%20c%"),
            ("/%2561", "/%2561"),
            ("/%C3%A9%6", "/%C3%A9%6"),
            ("https://localhost/%61", "https://localhost/a"),
        ] {
            let (mut parts, ()) = http::Request::get(sent).body(()).unwrap().into_parts();
            decode_unreserved(&mut parts);
            assert_eq!(parts.uri.to_string(), plain, "{sent}");
            let kept = parts.extensions.get::<SentTarget>().map(|target| target.0.to_string());
            assert_eq!(kept.as_deref(), (sent != plain).then_some(sent), "what a signature covers");
        }
    }
}
