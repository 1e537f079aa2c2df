//! The operations over HTTP: of the public API, of the platform API, and those that tools of assistants call.
//!
//! A request goes through these modules:
//!
//! 1. `router` finds its operation among those of svc-core.
//! 2. `request_context` authenticates, counts and authorizes it, reads its body, and runs it in a transaction. The order
//!    of the checks is part of the contract (`docs/contract.md`, "Order of checks").
//! 3. [`run`] parses it, runs the operation and makes the response.
//!
//! The OpenAPI document is generated from the same operations, in [`openapi`].

mod change;
pub mod openapi;
pub(crate) mod request_context;
mod router;
pub mod run;

use std::sync::Arc;

use http::header::IF_NONE_MATCH;
use http::request::Parts;
use svc_core::operation::{AnyOperation, Method};
use tokio::sync::Semaphore;

use self::change::InFlightKeys;
use self::openapi::Documents;
use self::request_context::RequestContext;
use self::router::{RouteMatch, RoutedOperation, Router};
use crate::kernel::Kernel;
use crate::kernel::listener::{Arrived, Kind, Route, Surface};
use crate::kernel::problem::Problem;
use crate::kernel::response::{self, Outcome};
use crate::kernel::versions::Version;

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
    router: Router,
    /// The path in front of those of the versions: the mount of the public API.
    mount: String,
    /// The descriptions of the operations, for clients that send requests themselves.
    documents: Option<Documents>,
}

impl Operations {
    /// Serves these operations, which each of the versions has.
    pub(crate) fn new(
        engine: Arc<Engine>,
        operations: &[&'static dyn AnyOperation],
        versions: &'static [Version],
        mount: &str,
    ) -> Self {
        let router = Router::new(operations, versions, &engine.kernel.settings.write_rate_limits);
        Self { engine, router, mount: mount.to_owned(), documents: None }
    }

    /// Serves the documents of the operations too.
    pub(crate) fn with_documents(self, documents: Documents) -> Self {
        Self { documents: Some(documents), ..self }
    }

    async fn respond(
        &self,
        routed: &Arc<RoutedOperation>,
        (account, id): (Option<&str>, Option<&str>),
        version: Version,
        request: Arrived<'_>,
    ) -> Result<Outcome, Problem> {
        let Arrived { parts, body, peer, access } = request;
        let base = match account {
            Some(account) => format!("{}/accounts/{account}", version.path()),
            None => format!("{}{}", self.mount, version.for_clients().path()),
        };
        let context = RequestContext { engine: &self.engine, parts, peer, routed, account, id, version, base };
        let response = match routed.operation.method {
            Method::Get => {
                drop(body);
                context.read(access).await
            }
            _ => context.write(body, access).await,
        };
        response.map(Outcome::Api)
    }
}

impl Surface for Operations {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        Some(match self.router.find(parts)? {
            Ok(RouteMatch::Operation { routed, account, id, version }) => {
                Route::new(Kind::Operation(routed.operation.id), move |request| {
                    self.respond(routed, (account, id), version, request)
                })
            }
            Ok(RouteMatch::Document(version)) => {
                let document = self.documents.as_ref()?.response(version);
                Route::new(Kind::Other, |_| async {
                    let if_none_match = response::tags(&parts.headers, IF_NONE_MATCH);
                    Ok(Outcome::Api(document.unless_unmodified(&if_none_match)))
                })
            }
            Err(problem) => Route::refused(Kind::Other, problem),
        })
    }
}

/// Returns the methods of operations, as a value of `Allow`.
pub(crate) fn methods_of(operations: &[&'static dyn AnyOperation]) -> String {
    let methods =
        [("GET, HEAD", Method::Get), ("POST", Method::Post), ("PATCH", Method::Patch), ("DELETE", Method::Delete)];
    let has = |method| operations.iter().any(|operation| operation.method == method);
    let methods: Vec<&str> = methods.into_iter().filter(|(_, method)| has(*method)).map(|(names, _)| names).collect();
    format!("{}, OPTIONS", methods.join(", "))
}
