//! Finds what a request asks for by its path and method.

use std::num::NonZeroU32;
use std::sync::Arc;

use http::Method;
use http::request::Parts;
use svc_core::accounts::limits::WriteRateLimits;

#[cfg(feature = "docs")]
use crate::api::docs::DocsFile;
use crate::api::limits::WriteLimit;
use crate::api::problem::Problem;
use crate::api::routes::{Operation, Version};
#[cfg(feature = "dashboard")]
use crate::dashboard::Dashboard;

/// The operations by path.
pub(super) struct Router {
    operations: matchit::Router<Vec<Arc<RoutedOperation>>>,
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
    /// A file of the API reference, which may be turned off.
    #[cfg(feature = "docs")]
    Docs(DocsFile),
    Health,
    Ready,
    Metrics,
    /// A preflight request of a browser.
    Preflight,
}

impl Router {
    /// Creates a router of these operations, which each of the versions has.
    pub(super) fn new(
        operations: Vec<Operation>,
        versions: &'static [Version],
        limits: &WriteRateLimits,
        mount: &str,
    ) -> Self {
        let mut paths: Vec<(String, Vec<Arc<RoutedOperation>>)> = Vec::new();
        for operation in operations {
            let write_limit = operation.default_write_limit().map(|default| WriteLimit {
                operation: operation.id,
                collection: default.collection,
                limit: limits.of(default.collection).map_or(default.limit, NonZeroU32::get),
            });
            let path = operation.path.clone();
            let routed = Arc::new(RoutedOperation { operation, write_limit });
            match paths.iter_mut().find(|(known, _)| *known == path) {
                Some((_, methods)) => methods.push(routed),
                None => paths.push((path, vec![routed])),
            }
        }
        let mut router = matchit::Router::new();
        for (path, methods) in paths {
            #[expect(clippy::expect_used, reason = "the operations are fixed, and tests build the router")]
            router.insert(path, methods).expect("paths that do not conflict");
        }
        let base = versions.first().copied().map_or("", Version::path);
        Self { operations: router, versions, document: format!("{mount}{base}/openapi.json") }
    }

    /// Returns the route of an API request.
    ///
    /// # Errors
    ///
    /// Returns [`Problem::RouteNotFound`] or [`Problem::MethodNotAllowed`].
    pub(super) fn route<'a>(&'a self, parts: &'a Parts) -> Result<Route<'a>, Problem> {
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
}

impl Router {
    /// Returns the problem of a path that no operation has.
    pub(super) fn not_found(&self) -> Problem {
        Problem::RouteNotFound(self.document.clone())
    }
}

impl Route<'_> {
    /// Returns whether it is for a browser: a page of the dashboard, or of the API reference.
    pub(super) fn is_page(&self) -> bool {
        match self {
            #[cfg(feature = "dashboard")]
            Route::Dashboard(_) => true,
            #[cfg(feature = "docs")]
            Route::Docs(_) => true,
            _ => false,
        }
    }

    /// Returns the id of the operation, for logs and metrics.
    pub(super) fn operation_id(&self) -> Option<&'static str> {
        match self {
            Route::Operation { routed, .. } => Some(routed.operation.id),
            _ => None,
        }
    }
}

/// Returns the route of a request to the listener for operators, which has no operations.
pub(super) fn route_for_operators(parts: &Parts) -> Result<Route<'_>, Problem> {
    match parts.uri.path() {
        "/healthz" => only_get(parts, Route::Health),
        "/readyz" => only_get(parts, Route::Ready),
        "/metrics" => only_get(parts, Route::Metrics),
        _ => Err(Problem::RouteNotFound("/metrics, /healthz and /readyz".to_owned())),
    }
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
