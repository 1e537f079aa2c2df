//! HTTP messages: bounds on what comes in, headers on what goes out.

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH,
    LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version};
use http_body_util::Full;
use svc_core::env::Env;
use svc_core::values::Timestamp;

use super::Answer;
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::metrics;

/// Longest request target, in bytes.
pub const MAX_URI: usize = 8 * 1024;
/// Largest sum of header names and values, in bytes.
pub const MAX_HEADERS: usize = 16 * 1024;

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Room for the headers that an answer has at most, so that the map does not grow step by step.
const HEADERS: usize = 20;
/// A record may be kept by its client alone, who asks with its tag whether it is still the same.
const ASK_AGAIN: HeaderValue = HeaderValue::from_static("private, no-cache");
/// What a write tells, such as a secret that is shown once, is kept nowhere on the way.
const KEEP_NOWHERE: HeaderValue = HeaderValue::from_static("no-store");
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
const NO_CONTENT: HeaderValue = HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub(super) fn check_size_and_host(parts: &Parts) -> Result<(), Problem> {
    if parts.uri.path_and_query().map_or(0, |target| target.as_str().len()) > MAX_URI {
        return Err(Problem::UriTooLong);
    }
    let size: usize = parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if size > MAX_HEADERS {
        return Err(Problem::HeadersTooLarge);
    }
    let hosts = parts.headers.get_all(HOST).iter().count();
    // HTTP/1.0 knows no Host, HTTP/2 has it in the request target.
    let needed = if parts.version == Version::HTTP_11 { 1..=1 } else { 0..=1 };
    if needed.contains(&hosts) { Ok(()) } else { Err(Problem::BadHost) }
}

/// The tags of a conditional header, over all its lines.
pub(super) fn tags(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect()
}

pub(super) fn unless_none_match(response: ApiResponse, headers: &HeaderMap) -> Answer {
    let Some(etag) = &response.etag else { return Answer::ApiResponse(response) };
    // Weak comparison (RFC 9110 §13.1.2).
    let same = |tag: &String| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag;
    if tags(headers, IF_NONE_MATCH).iter().any(same) {
        return Answer::NotModified { etag: etag.clone() };
    }
    Answer::ApiResponse(response)
}

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

pub(super) fn request_id(headers: &HeaderMap, env: &Env, now: Timestamp) -> HeaderValue {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let given = headers
        .get(REQUEST_ID)
        .filter(|value| (1..=128).contains(&value.len()) && value.as_bytes().iter().all(allowed));
    // A UUID is always a valid header value.
    given
        .cloned()
        .unwrap_or_else(|| HeaderValue::try_from(env.id(now).to_string()).unwrap_or(HeaderValue::from_static("-")))
}

/// Tells browsers and caches how to treat data: it is no document, no script and not for others.
pub(super) fn protect(method: &Method, headers: &mut HeaderMap) {
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    headers.insert(CACHE_CONTROL, if is_read { ASK_AGAIN } else { KEEP_NOWHERE });
    headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
    headers.insert(CONTENT_SECURITY_POLICY, NO_CONTENT);
}

pub(super) fn render(result: Result<Answer, Problem>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.headers_mut() = HeaderMap::with_capacity(HEADERS);
    let mut body = Bytes::new();
    let headers = response.headers_mut();
    // Tags and addresses are made of hex, UUIDs and fixed paths.
    let mut put =
        |name: HeaderName, value: String| HeaderValue::try_from(value).map(|value| headers.insert(name, value));
    let status = match result {
        Ok(Answer::ApiResponse(response)) => {
            let _ = response.etag.map(|etag| put(ETAG, etag));
            let _ = response.location.map(|location| put(LOCATION, location));
            if response.replayed {
                let _ = put(REPLAYED, "true".to_owned());
            }
            body = response.body;
            response.status
        }
        Ok(Answer::NotModified { etag }) => {
            let _ = put(ETAG, etag);
            StatusCode::NOT_MODIFIED
        }
        Ok(Answer::Metrics(text)) => {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(metrics::CONTENT_TYPE));
            body = text.into();
            StatusCode::OK
        }
        Ok(Answer::Preflight(cors)) => {
            cors.write_preflight(headers);
            StatusCode::NO_CONTENT
        }
        Err(problem) => {
            headers.extend(problem.headers());
            body = problem.body();
            problem.status()
        }
    };
    *response.status_mut() = status;
    if !body.is_empty() {
        let headers = response.headers_mut();
        headers.entry(CONTENT_TYPE).or_insert(JSON);
        headers.insert(CONTENT_LENGTH, body.len().into());
        *response.body_mut() = Full::new(body);
    }
    response
}
