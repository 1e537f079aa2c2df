//! The operations over HTTP: of the public API, of the platform API, and those that tools of assistants call.
//!
//! A request goes through these modules:
//!
//! 1. `router` finds its operation in the table of [`routes`], or of [`platform`].
//! 2. `request_context` authenticates, counts and authorizes it, reads its body, and runs it in a transaction. The order
//!    of the checks is part of the contract (`docs/contract.md`, "Order of checks").
//! 3. A handler in [`handlers`] parses it and calls the rules in `svc-core`.
//!
//! The OpenAPI document is generated from the same table of operations, in [`openapi`].

mod change;
mod contract;
mod endpoint_input;
pub mod extensions;
pub mod handlers;
pub mod openapi;
pub mod platform;
pub(crate) mod request_context;
mod router;
pub mod routes;
mod row;

use std::sync::Arc;

use http::Method;
use http::header::IF_NONE_MATCH;
use http::request::Parts;
use tokio::sync::Semaphore;

use self::change::InFlightKeys;
use self::openapi::Documents;
use self::request_context::RequestContext;
use self::router::{Found, RoutedOperation, Router};
use self::routes::{Operation, Version};
use crate::kernel::Kernel;
use crate::kernel::listener::{Arrived, Kind, Route, Surface};
use crate::kernel::problem::Problem;
use crate::kernel::response::{self, Outcome};

/// What runs operations, for all surfaces that have some.
pub(crate) struct Engine {
    pub(crate) kernel: Arc<Kernel>,
    in_flight: InFlightKeys,
    /// The permit to parse a large body, of which there is one.
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
    /// What describes them, for those who send requests themselves.
    documents: Option<Documents>,
}

impl Operations {
    /// Serves these operations, which each of the versions has.
    pub(crate) fn new(
        engine: Arc<Engine>,
        operations: Vec<Operation>,
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
            Method::GET => {
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
            Ok(Found::Operation { routed, account, id, version }) => {
                Route::new(Kind::Operation(routed.operation.id), move |request| {
                    self.respond(routed, (account, id), version, request)
                })
            }
            Ok(Found::Document(version)) => {
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
pub(crate) fn methods_of(operations: &[Operation]) -> String {
    let methods = [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE];
    let has = |method: &Method| {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        operations.iter().any(|operation| operation.method == method)
    };
    let methods: Vec<&str> = methods.iter().filter(|method| has(method)).map(Method::as_str).collect();
    format!("{}, OPTIONS", methods.join(", "))
}
