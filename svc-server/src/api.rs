//! The operations over HTTP: of the public API, of the platform API, and those that tools of assistants call.
//!
//! A request goes through these modules:
//!
//! 1. `Operations` finds its operation among those of svc-core, by method and path.
//! 2. `request_context` authenticates, counts and authorizes it, reads its body, and runs it in a transaction. The order
//!    of the checks is part of the contract (`docs/contract.md`, "Order of checks").
//! 3. [`run`] parses it, runs the operation and makes the response.
//!
//! The OpenAPI document is generated from the same operations, in [`openapi`].

mod change;
pub mod openapi;
pub(crate) mod request_context;
pub mod run;

use std::num::NonZeroU32;
use std::sync::Arc;

use http::header::IF_NONE_MATCH;
use http::request::Parts;
use svc_core::operation::{AnyOperation, Method};
use tokio::sync::Semaphore;

use self::change::InFlightKeys;
use self::openapi::Documents;
use self::request_context::RequestContext;
use crate::kernel::Kernel;
use crate::kernel::head;
use crate::kernel::limits::WriteLimit;
use crate::kernel::listener::{Arrived, Kind, Route, Surface};
use crate::kernel::problem::Problem;
use crate::kernel::response::{self, Outcome};
use crate::kernel::versions::{self, Version};

/// The runner of operations, for all surfaces that have some.
pub(crate) struct Engine {
    pub(crate) kernel: Arc<Kernel>,
    in_flight: InFlightKeys,
    /// The permit to parse a large body. There is only one.
    large_body: Arc<Semaphore>,
}

impl Engine {
    pub(crate) fn new(kernel: Arc<Kernel>) -> Arc<Self> {
        Arc::new(Self { kernel, in_flight: InFlightKeys::default(), large_body: Arc::new(Semaphore::new(1)) })
    }
}

/// Operations as a surface.
pub(crate) struct Operations {
    engine: Arc<Engine>,
    /// The operations by their paths after that of a version.
    by_path: matchit::Router<Vec<RoutedOperation>>,
    /// The versions that have them.
    versions: &'static [Version],
    /// The path in front of those of the versions: the mount of the public API.
    mount: String,
    /// The descriptions of the operations, for clients that send requests themselves.
    documents: Option<Documents>,
}

/// An operation and its limit of writes.
#[derive(Clone, Copy)]
struct RoutedOperation {
    operation: &'static dyn AnyOperation,
    /// The limit that the server sets for its writes; `None` for a read.
    write_limit: Option<WriteLimit>,
}

impl Operations {
    /// Serves these operations, which each of the versions has.
    pub(crate) fn new(
        engine: Arc<Engine>,
        operations: &[&'static dyn AnyOperation],
        versions: &'static [Version],
        mount: &str,
    ) -> Self {
        // Their paths are the same in each.
        let version = versions.first().copied().unwrap_or(Version::V1);
        let limits = &engine.kernel.settings.write_rate_limits;
        let by_path = head::by_path(operations.iter().map(|operation| {
            let write_limit = versions::default_write_limit(operation).map(|default| WriteLimit {
                operation: operation.id,
                collection: default.collection,
                limit: limits.of(default.collection).map_or(default.limit, NonZeroU32::get),
            });
            (version.path_of(operation), RoutedOperation { operation: *operation, write_limit })
        }));
        Self { engine, by_path, versions, mount: mount.to_owned(), documents: None }
    }

    /// Serves the documents of the operations too.
    pub(crate) fn with_documents(self, documents: Documents) -> Self {
        Self { documents: Some(documents), ..self }
    }
}

impl Surface for Operations {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        let path = parts.uri.path();
        let (version, path) = self.versions.iter().copied().find_map(|version| {
            path.strip_prefix(version.path()).filter(|path| path.starts_with('/')).map(|path| (version, path))
        })?;
        if path == "/openapi.json" {
            let document = self.documents.as_ref()?.response(version);
            return Some(Route::read(Kind::Other, parts, |_| async {
                let if_none_match = response::tags(&parts.headers, IF_NONE_MATCH);
                Ok(Outcome::Api(document.unless_unmodified(&if_none_match)))
            }));
        }
        let found = self.by_path.at(path).ok()?;
        let method = if parts.method == http::Method::HEAD { &http::Method::GET } else { &parts.method };
        let Some(routed) = found.value.iter().copied().find(|routed| versions::method_of(routed.operation) == *method)
        else {
            let allowed = Problem::MethodNotAllowed(methods_of(found.value.iter().map(|routed| routed.operation)));
            return Some(Route::refused(Kind::Other, allowed));
        };
        let (account, id) = (found.params.get("account_id"), found.params.get("id"));
        Some(Route::new(Kind::Operation(routed.operation.id), move |request| async move {
            let Arrived { parts, body, peer, access } = request;
            let context = RequestContext { surface: self, parts, peer, routed, account, id, version };
            let response = match routed.operation.method {
                Method::Get => {
                    drop(body);
                    context.read(access).await
                }
                _ => context.write(body, access).await,
            };
            response.map(Outcome::Api)
        }))
    }
}

/// Returns the methods of operations, as a value of `Allow`.
pub(crate) fn methods_of(operations: impl Iterator<Item = &'static dyn AnyOperation>) -> String {
    let methods: Vec<Method> = operations.map(|operation| operation.method).collect();
    let names =
        [(Method::Get, "GET, HEAD"), (Method::Post, "POST"), (Method::Patch, "PATCH"), (Method::Delete, "DELETE")];
    names
        .into_iter()
        .filter(|(method, _)| methods.contains(method))
        .map(|(_, name)| name)
        .collect::<Vec<_>>()
        .join(", ")
}
