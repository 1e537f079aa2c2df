//! Checks the head of a request, and finds what it asks for by its path and method.

use std::collections::HashMap;
use std::net::Ipv6Addr;
use std::num::NonZeroU32;
use std::sync::Arc;

use http::header::{HOST, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderValue, Method, Uri, Version as HttpVersion};
use svc_core::accounts::limits::WriteRateLimits;

#[cfg(feature = "docs")]
use crate::api::docs::DocsFile;
use crate::api::limits::WriteLimit;
use crate::api::problem::Problem;
use crate::api::routes::{Operation, Version};
#[cfg(feature = "dashboard")]
use crate::dashboard::Dashboard;
#[cfg(feature = "mcp")]
use crate::mcp::{Mcp, ToolsPath};
#[cfg(feature = "dashboard")]
use crate::oauth::{Endpoint, Oauth};

/// The length of the longest request target, in bytes.
pub const MAX_URI: usize = 8 * 1024;
/// The size of the largest headers, in bytes: names, values and 4 bytes for each header.
pub const MAX_HEADERS: usize = 16 * 1024;

/// The operations by path.
pub(crate) struct Router {
    operations: matchit::Router<Vec<Arc<RoutedOperation>>>,
    /// The methods of the operations, as a value of `Allow`.
    methods: String,
    /// The versions that have these operations.
    versions: &'static [Version],
    /// The path of the API description, for requests that no operation has.
    document: String,
}

/// An operation and its limit of writes.
pub(super) struct RoutedOperation {
    pub(super) operation: Operation,
    /// The limit that the server sets for its writes; `None` for a read.
    pub(super) write_limit: Option<WriteLimit>,
}

/// What a request asks for.
pub(super) enum Route<'a> {
    Operation {
        routed: &'a Arc<RoutedOperation>,
        /// The `{account_id}` of the path.
        account: Option<&'a str>,
        /// The `{id}` of the path.
        id: Option<&'a str>,
        version: Version,
    },
    OpenApiDocument(Version),
    /// The root, which says what this server is.
    Home,
    /// A page of the dashboard.
    #[cfg(feature = "dashboard")]
    Dashboard(&'a Dashboard),
    /// An endpoint of OAuth.
    #[cfg(feature = "dashboard")]
    Oauth(&'a Oauth, Endpoint),
    /// The tools of assistants.
    #[cfg(feature = "mcp")]
    Mcp(&'a Mcp, ToolsPath<'a>),
    /// A file of the API reference, which may be turned off.
    #[cfg(feature = "docs")]
    Docs(DocsFile),
    Health,
    Ready,
    Metrics,
    /// A preflight request of a browser.
    Preflight,
    /// A request about the server as a whole, with its methods.
    Options(&'a str),
}

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

impl Router {
    /// Creates a router of these operations, which each of the versions has.
    pub(crate) fn new(
        operations: Vec<Operation>,
        versions: &'static [Version],
        limits: &WriteRateLimits,
        mount: &str,
    ) -> Self {
        let methods = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
        let has = |method: &Method| {
            let method = if method == Method::HEAD { &Method::GET } else { method };
            operations.iter().any(|operation| operation.method == method)
        };
        let methods: Vec<&str> = methods.iter().filter(|method| has(method)).map(Method::as_str).collect();
        let methods = format!("{}, OPTIONS", methods.join(", "));
        let routed = operations.into_iter().map(|operation| {
            let write_limit = operation.default_write_limit().map(|default| WriteLimit {
                operation: operation.id,
                collection: default.collection,
                limit: limits.of(default.collection).map_or(default.limit, NonZeroU32::get),
            });
            (operation.path.clone(), Arc::new(RoutedOperation { operation, write_limit }))
        });
        let operations = by_path(routed);
        let base = versions.first().copied().map_or("", Version::path);
        Self { operations, methods, versions, document: format!("{mount}{base}/openapi.json") }
    }

    /// Returns the route of an API request.
    ///
    /// # Errors
    ///
    /// Returns [`Problem::RouteNotFound`] or [`Problem::MethodNotAllowed`].
    pub(super) fn route<'a>(&'a self, parts: &'a Parts) -> Result<Route<'a>, Problem> {
        if is_about_server(parts) {
            return Ok(Route::Options(&self.methods));
        }
        let path = parts.uri.path();
        match path {
            "/" if !self.versions.contains(&Version::Platform) => return only_get(parts, Route::Home),
            "/healthz" => return only_get(parts, Route::Health),
            "/readyz" => return only_get(parts, Route::Ready),
            _ => {}
        }
        #[cfg(feature = "docs")]
        if let Some(file) = DocsFile::at(path) {
            return only_get(parts, Route::Docs(file));
        }
        let versioned = self.versions.iter().copied().find_map(|version| {
            path.strip_prefix(version.path()).filter(|path| path.starts_with('/')).map(|path| (version, path))
        });
        let (version, path) = versioned.ok_or_else(|| self.not_found())?;
        if path == "/openapi.json" {
            return only_get(parts, Route::OpenApiDocument(version));
        }
        let matched = self.operations.at(path).map_err(|_| self.not_found())?;
        let method = if parts.method == Method::HEAD { &Method::GET } else { &parts.method };
        match matched.value.iter().find(|routed| routed.operation.method == method) {
            Some(routed) => {
                let (account, id) = (matched.params.get("account_id"), matched.params.get("id"));
                Ok(Route::Operation { routed, account, id, version })
            }
            None => Err(Problem::MethodNotAllowed(allow(matched.value))),
        }
    }

    /// Returns the problem of a path that no operation has.
    pub(super) fn not_found(&self) -> Problem {
        Problem::RouteNotFound(self.document.clone())
    }
}

impl Route<'_> {
    /// Returns whether it is for a browser: a page of the dashboard, or of the API reference; or an endpoint of OAuth, to which
    /// the limits and the CORS of the API do not apply either.
    pub(super) fn is_page(&self) -> bool {
        match self {
            #[cfg(feature = "dashboard")]
            Route::Dashboard(_) | Route::Oauth(..) => true,
            #[cfg(feature = "docs")]
            Route::Docs(_) => true,
            _ => false,
        }
    }

    /// Returns whether it says how the process is, which supervisors ask.
    pub(super) fn is_for_operators(&self) -> bool {
        matches!(self, Self::Health | Self::Ready | Self::Metrics)
    }

    /// Returns the id of the operation, for logs and metrics.
    pub(super) fn operation_id(&self) -> Option<&'static str> {
        match self {
            Route::Operation { routed, .. } => Some(routed.operation.id),
            #[cfg(feature = "mcp")]
            Route::Mcp(..) => Some("mcp"),
            _ => None,
        }
    }
}

/// Returns the route of a request to the listener for operators, which has no operations.
pub(super) fn route_for_operators(parts: &Parts) -> Result<Route<'_>, Problem> {
    if is_about_server(parts) {
        return Ok(Route::Options("GET, HEAD, OPTIONS"));
    }
    match parts.uri.path() {
        "/healthz" => only_get(parts, Route::Health),
        "/readyz" => only_get(parts, Route::Ready),
        "/metrics" => only_get(parts, Route::Metrics),
        _ => Err(Problem::RouteNotFound("/metrics, /healthz and /readyz".to_owned())),
    }
}

/// Returns whether this is `OPTIONS *`, which asks about the server as a whole (RFC 9110 §9.3.7).
fn is_about_server(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS && parts.uri.path() == "*"
}

fn only_get<'a>(parts: &Parts, route: Route<'a>) -> Result<Route<'a>, Problem> {
    match parts.method {
        Method::GET | Method::HEAD => Ok(route),
        _ => Err(Problem::MethodNotAllowed("GET, HEAD".to_owned())),
    }
}

/// Returns the value of `Allow` for a path with these operations.
fn allow(methods: &[Arc<RoutedOperation>]) -> String {
    let mut names = Vec::new();
    for routed in methods {
        names.push(routed.operation.method.as_str());
        if routed.operation.method == Method::GET {
            names.push("HEAD");
        }
    }
    names.join(", ")
}

/// The target of a request as it was sent, as an extension, where it was not the plain one. A signature covers it.
#[derive(Clone, Debug)]
pub(super) struct SentTarget(pub(super) Uri);

/// Decodes the characters of the path that need no encoding, which makes it the same path (RFC 3986 §6.2.2.2).
pub(super) fn decode_unreserved(parts: &mut Parts) {
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
    let expected = if parts.version == HttpVersion::HTTP_11 { 1..=1 } else { 0..=1 };
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
