//! Finds the operation of a request by its path and method.

use std::num::NonZeroU32;
use std::sync::Arc;

use http::Method;
use http::request::Parts;
use svc_core::accounts::limits::WriteRateLimits;
use svc_core::operation::{self, AnyOperation};

use crate::kernel::head;
use crate::kernel::limits::WriteLimit;
use crate::kernel::problem::Problem;
use crate::kernel::versions::{self, Version};

/// The operations by path.
pub(crate) struct Router {
    operations: matchit::Router<Vec<Arc<RoutedOperation>>>,
    /// The versions that have these operations.
    versions: &'static [Version],
}

/// An operation and its limit of writes.
pub(super) struct RoutedOperation {
    pub(super) operation: &'static dyn AnyOperation,
    /// The limit that the server sets for its writes; `None` for a read.
    pub(super) write_limit: Option<WriteLimit>,
}

/// The resource at a path.
pub(super) enum RouteMatch<'a> {
    Operation {
        routed: &'a Arc<RoutedOperation>,
        /// The `{account_id}` of the path.
        account: Option<&'a str>,
        /// The `{id}` of the path.
        id: Option<&'a str>,
        version: Version,
    },
    /// The OpenAPI document.
    Document(Version),
}

impl Router {
    /// Creates a router of these operations, which each of the versions has.
    pub(super) fn new(
        operations: &[&'static dyn AnyOperation],
        versions: &'static [Version],
        limits: &WriteRateLimits,
    ) -> Self {
        // Their paths are the same in each.
        let version = versions.first().copied().unwrap_or(Version::V1);
        let routed = operations.iter().map(|operation| {
            let write_limit = versions::default_write_limit(operation).map(|default| WriteLimit {
                operation: operation.id,
                collection: default.collection,
                limit: limits.of(default.collection).map_or(default.limit, NonZeroU32::get),
            });
            (version.path_of(operation), Arc::new(RoutedOperation { operation: *operation, write_limit }))
        });
        Self { operations: head::by_path(routed), versions }
    }

    /// Returns what a request asks for, or why it is refused; `None` if nothing is at its path.
    pub(super) fn find<'a>(&'a self, parts: &'a Parts) -> Option<Result<RouteMatch<'a>, Problem>> {
        let path = parts.uri.path();
        let (version, path) = self.versions.iter().copied().find_map(|version| {
            path.strip_prefix(version.path()).filter(|path| path.starts_with('/')).map(|path| (version, path))
        })?;
        if path == "/openapi.json" {
            return Some(head::only_get(parts).map(|()| RouteMatch::Document(version)));
        }
        let matched = self.operations.at(path).ok()?;
        let method = if parts.method == Method::HEAD { &Method::GET } else { &parts.method };
        Some(match matched.value.iter().find(|routed| versions::method_of(routed.operation) == *method) {
            Some(routed) => {
                let (account, id) = (matched.params.get("account_id"), matched.params.get("id"));
                Ok(RouteMatch::Operation { routed, account, id, version })
            }
            None => Err(Problem::MethodNotAllowed(allow(matched.value))),
        })
    }
}

/// Returns the value of `Allow` for a path with these operations.
fn allow(methods: &[Arc<RoutedOperation>]) -> String {
    let mut names = Vec::new();
    for routed in methods {
        match routed.operation.method {
            operation::Method::Get => names.extend(["GET", "HEAD"]),
            method => names.push(method.as_str()),
        }
    }
    names.join(", ")
}
