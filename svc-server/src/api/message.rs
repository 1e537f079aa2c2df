//! HTTP messages: limits and header checks of requests, and the common headers of responses.

use std::net::Ipv6Addr;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH,
    LOCATION, TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version};
use svc_core::env::Env;
use svc_core::values::Timestamp;
use uuid::Uuid;

use crate::api::cors::Cors;
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::api::response_body::ResponseBody;
use crate::metrics;

/// The length of the longest request target, in bytes.
pub const MAX_URI: usize = 8 * 1024;
/// The size of the largest headers, in bytes: names, values and 4 bytes for each header.
pub const MAX_HEADERS: usize = 16 * 1024;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The initial capacity of a header map. No response has more headers.
const HEADER_CAPACITY: usize = 20;
/// The `Cache-Control` of reads: only the client may cache the record, and it revalidates with the ETag.
const REVALIDATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// The `Cache-Control` of writes, whose responses may hold a secret.
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const NO_ACTIVE_CONTENT: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The outcome of a request that did not fail.
pub(super) enum Outcome {
    /// The response of an operation, or of a health check.
    Response(ApiResponse),
    /// A 304 response: the client has the current representation.
    NotModified { etag: String },
    /// What the root has, in the form that the client prefers, or a file of the API reference.
    Home { headers: HeaderMap, body: Bytes },
    /// A response of the dashboard.
    #[cfg(feature = "dashboard")]
    Page(Response<ResponseBody>),
    /// The metrics, as text.
    Metrics(String),
    /// The response to a preflight request of a browser.
    Preflight(Cors),
}

/// Checks the size of the request target and of the headers, the host, and that the body is not transfer-coded.
pub(super) fn check_head(parts: &Parts) -> Result<(), Problem> {
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

/// Returns the tags of a conditional header, which may be repeated.
pub(super) fn tags(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect()
}

/// Replaces a response by 304 when `If-None-Match` names its ETag.
pub(super) fn check_none_match(response: ApiResponse, headers: &HeaderMap) -> Outcome {
    let Some(etag) = &response.etag else { return Outcome::Response(response) };
    // Weak comparison (RFC 9110 §13.1.2).
    let matches = |tag: &String| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag;
    if tags(headers, IF_NONE_MATCH).iter().any(matches) {
        return Outcome::NotModified { etag: etag.clone() };
    }
    Outcome::Response(response)
}

/// Checks that a body is JSON without a content encoding. An empty body needs no `Content-Type`.
pub(super) fn check_media_type(headers: &HeaderMap, body: &[u8]) -> Result<(), Problem> {
    let encoded =
        headers.get_all(CONTENT_ENCODING).iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    if encoded {
        return Err(Problem::UnsupportedMediaType("Send the body without a Content-Encoding."));
    }
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let is_json = |value: &HeaderValue| {
        let essence = value.as_bytes().split(|b| *b == b';').next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
    };
    match (types.next(), types.next()) {
        (None, _) if body.is_empty() => Ok(()),
        (Some(only), None) if is_json(only) => Ok(()),
        _ => Err(Problem::UnsupportedMediaType("Send the body as Content-Type: application/json.")),
    }
}

/// Returns the `X-Request-Id` that the client sent, or a new UUID when it is missing or malformed.
pub(super) fn request_id(headers: &HeaderMap, env: &Env, now: Timestamp) -> HeaderValue {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let given = headers
        .get(REQUEST_ID)
        .filter(|value| (1..=128).contains(&value.len()) && value.as_bytes().iter().all(allowed));
    given
        .cloned()
        // A UUID is a valid header value, so the last fallback is never used.
        .unwrap_or_else(|| {
            HeaderValue::try_from(env.id::<Uuid>(now).to_string()).unwrap_or(HeaderValue::from_static("-"))
        })
}

/// Adds the headers that keep browsers from running a response as a document and shared caches from storing it. A page has
/// a `Content-Security-Policy` of its own.
pub(super) fn add_security_headers(method: &Method, headers: &mut HeaderMap) {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    headers.entry(CACHE_CONTROL).or_insert(if is_read { REVALIDATE } else { NO_STORE });
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
    headers.entry(CONTENT_SECURITY_POLICY).or_insert(NO_ACTIVE_CONTENT);
}

/// Converts the result of a request with this method to an HTTP response.
pub(super) fn render(method: &Method, result: Result<Outcome, Problem>) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::default());
    *response.headers_mut() = HeaderMap::with_capacity(HEADER_CAPACITY);
    let mut body = ResponseBody::default();
    let headers = response.headers_mut();
    // ETags and locations consist of hex, UUIDs and fixed paths, so they are valid header values.
    let mut put =
        |name: HeaderName, value: String| HeaderValue::try_from(value).map(|value| headers.insert(name, value));
    let status = match result {
        Ok(Outcome::Response(response)) => {
            let _ = response.etag.map(|etag| put(ETAG, etag));
            let _ = response.location.map(|location| put(LOCATION, location));
            if response.replayed {
                let _ = put(REPLAYED, "true".to_owned());
            }
            body = response.body.into();
            response.status
        }
        Ok(Outcome::NotModified { etag }) => {
            let _ = put(ETAG, etag);
            StatusCode::NOT_MODIFIED
        }
        Ok(Outcome::Home { headers: own, body: page }) => {
            headers.extend(own);
            body = page.into();
            StatusCode::OK
        }
        #[cfg(feature = "dashboard")]
        Ok(Outcome::Page(page)) => {
            let (parts, page) = page.into_parts();
            headers.extend(parts.headers);
            body = page;
            parts.status
        }
        Ok(Outcome::Metrics(text)) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE));
            body = Bytes::from(text).into();
            StatusCode::OK
        }
        Ok(Outcome::Preflight(cors)) => {
            cors.write_preflight(headers);
            StatusCode::NO_CONTENT
        }
        Err(problem) => {
            headers.extend(problem.headers());
            body = problem.body().into();
            problem.status()
        }
    };
    *response.status_mut() = status;
    let length = body.length();
    if length != Some(0) {
        let headers = response.headers_mut();
        headers.entry(CONTENT_TYPE).or_insert(JSON);
        if let Some(length) = length {
            headers.insert(CONTENT_LENGTH, length.into());
        }
        // HTTP/1.1 would leave the body of HEAD out by itself, but HTTP/2 sends what it is given.
        if *method != Method::HEAD {
            *response.body_mut() = body;
        }
    }
    response
}
