//! Cross-origin requests from browsers (CORS). They are refused unless the operator allows an origin.

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};

use super::listener::{Kind, Route, Surface};
use super::response::Outcome;

const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, idempotency-key, if-match, if-none-match, last-event-id, mcp-method, mcp-name, \
     mcp-protocol-version, mcp-session-id, traceparent, tracestate, x-request-id, x-requested-with, x-svc-signature, \
     x-svc-timestamp",
);
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "etag, idempotent-replayed, location, ratelimit, ratelimit-policy, retry-after, www-authenticate, x-ratelimit-limit, \
     x-ratelimit-remaining, x-ratelimit-reset, x-request-id",
);

/// The origins whose pages may call the API from a browser. The default allows none.
#[derive(Clone, Debug, Default)]
pub struct Cors(Vec<HeaderValue>);

impl Cors {
    /// Allows exactly these origins, such as `https://app.example.com`.
    pub fn new(origins: Vec<HeaderValue>) -> Self {
        Self(origins)
    }

    /// Returns the origins.
    pub fn origins(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|origin| origin.to_str().ok())
    }

    /// Returns the origin of the request if it is allowed.
    fn allowed<'h>(&self, request: &'h HeaderMap) -> Option<&'h HeaderValue> {
        request.get(ORIGIN).filter(|origin| self.0.contains(origin))
    }

    /// Returns whether a request is the preflight request of an allowed origin, which needs no operation.
    fn is_preflight(&self, method: &Method, request: &HeaderMap) -> bool {
        *method == Method::OPTIONS
            && request.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
            && self.allowed(request).is_some()
    }

    /// Adds the headers that let a browser show the response to a page of an allowed origin.
    pub(crate) fn write(&self, request: &HeaderMap, response: &mut HeaderMap) {
        if self.0.is_empty() {
            return;
        }
        response.append(VARY, HeaderValue::from_static("origin"));
        if let Some(origin) = self.allowed(request) {
            response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
        }
    }
}

/// Preflight requests are answered wherever they are sent to.
impl Surface for Cors {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        let route = || Route::new(Kind::Other, |_| async { Ok(Outcome::no_content(preflight_headers())) });
        self.is_preflight(&parts.method, &parts.headers).then(route)
    }
}

/// Returns the headers of the response to a preflight request.
fn preflight_headers() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, HEAD, POST, PATCH, DELETE")),
        (ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS),
        (ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
    ])
}
