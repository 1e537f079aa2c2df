//! The HTTP API as a service.
//!
//! A request goes through these modules:
//!
//! 1. [`Api::call`] checks its size and finds its operation in the table of [`routes`].
//! 2. `request_context` authenticates, counts and authorizes it, reads its body, and runs it in a transaction. The order
//!    of the checks is part of the contract (`docs/contract.md`, "Order of checks").
//! 3. A handler in [`handlers`] parses it and calls the rules in `svc-core`.
//! 4. `response` writes the response. A failure is a [`problem`], the only place that knows the statuses of failures.
//!
//! The OpenAPI document is generated from the same table of operations, in [`openapi`].

pub(crate) mod accept;
#[cfg(feature = "mcp")]
mod assistants;
pub mod auth;
mod body;
mod change;
mod contract;
pub mod cors;
#[cfg(feature = "docs")]
pub(crate) mod docs;
mod endpoint_input;
pub mod extensions;
pub mod handlers;
mod home;
mod housekeeping;
pub mod limits;
pub mod openapi;
#[cfg(feature = "dashboard")]
mod pages;
pub mod platform;
pub mod problem;
mod reminder;
mod request_context;
mod request_log;
pub mod response;
pub(crate) mod response_memory;
pub(crate) mod router;
pub mod routes;
mod row;
mod settings;
pub(crate) mod shares;
mod state;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use http::header::IF_NONE_MATCH;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use svc_core::env::Env;
use svc_core::error::{Error, StoreError};
#[cfg(feature = "dashboard")]
use svc_core::platform::operations::{REMOVE_MEMBER, UPDATE_MEMBER};
use svc_core::store::Store;
use svc_core::values::TenantId;
use tracing::Instrument as _;
use uuid::Uuid;

use self::auth::Principal;
use self::body::ArrivingBody;
pub use self::body::{Incoming, MAX_BODY};
use self::problem::Problem;
use self::reminder::Reminder;
#[cfg(feature = "mcp")]
pub(crate) use self::request_context::ToolCall;
use self::request_context::{AccessRecord, RequestContext};
pub use self::response::ResponseBody;
use self::response::{ApiResponse, Outcome};
use self::router::Route;
pub use self::router::{MAX_HEADERS, MAX_URI};
use self::routes::Version;
#[cfg(feature = "dashboard")]
pub use self::settings::OauthClients;
pub use self::settings::Settings;
#[cfg(feature = "standalone")]
use self::shares::Pool;
use self::state::{Listener, State};
#[cfg(feature = "dashboard")]
use crate::dashboard::Dashboard;
#[cfg(feature = "mcp")]
use crate::mcp::ToolsPath;
use crate::metrics::{self, Metrics};
#[cfg(feature = "dashboard")]
use crate::oauth::{Endpoint, Oauth};
use crate::telemetry;

/// The operations of the platform API after which a session of the dashboard may show less.
#[cfg(feature = "dashboard")]
const MEMBER_CHANGES: [&str; 2] = [UPDATE_MEMBER.id, REMOVE_MEMBER.id];

/// The memory of the connections of operators, in bytes.
#[cfg(feature = "standalone")]
const OPERATORS_MEMORY: usize = 8 * 1024 * 1024;

/// How long `/readyz` waits for the database.
const READY_TIMEOUT: Duration = Duration::from_secs(2);

/// The tenant that `/readyz` looks up. It does not exist; the lookup only shows that the database responds.
const NO_TENANT: TenantId = TenantId(Uuid::nil());

/// The API as a service. It is cheap to clone, and clones share their state.
///
/// # Examples
///
/// ```
/// use svc_core::env::Env;
/// use svc_core::store::memory::MemoryStore;
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store = std::sync::Arc::new(MemoryStore::new(Env::system()));
/// let api = svc_server::Api::new(store, svc_server::Settings::default());
/// let request = http::Request::get("/api/v1/ping").header("host", "localhost");
/// let body = http_body_util::Empty::<bytes::Bytes>::new();
/// let response = api.call(request.body(body).unwrap(), [127, 0, 0, 1].into()).await;
/// assert_eq!(response.status(), 401);
/// # });
/// ```
///
/// # Mounting
///
/// `Api` is a [`tower_service::Service`], so it can be nested in an axum or tower application.
/// [`Builder`](crate::Builder) makes one together with its background work, without which no webhook is sent. Add a
/// [`Peer`] to the extensions of each request.
#[derive(Clone)]
pub struct Api {
    state: Arc<State>,
    listener: ListenerKind,
}

/// The kinds of listeners, by what they serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListenerKind {
    /// The operations of the public API.
    Public,
    /// The operations of the platform API.
    Platform,
    /// What operators need, and no operations.
    Operators,
    /// The operations that tools call, for requests that come from this process.
    #[cfg(feature = "mcp")]
    Assistants,
}

impl Api {
    /// Creates the API over a store, without its background work: for tests that call it alone.
    ///
    /// Use [`Builder`](crate::Builder) to serve it.
    pub fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        Self { state: Arc::new(State::new(store, settings)), listener: ListenerKind::Public }
    }

    /// Returns the service for operators, which has only `/healthz`, `/readyz` and `/metrics`.
    #[must_use]
    pub fn for_operators(&self) -> Self {
        Self { state: Arc::clone(&self.state), listener: ListenerKind::Operators }
    }

    /// Returns the platform API, with which programs of the operator work on all accounts by platform keys
    /// (`docs/platform.md`). Serve it on a listener of its own, which only they reach.
    #[must_use]
    pub fn for_platform(&self) -> Self {
        self.state.platform();
        Self { state: Arc::clone(&self.state), listener: ListenerKind::Platform }
    }

    /// Responds to a request from the address `peer`. A failure is a response, too.
    pub async fn call<B: Incoming>(&self, request: Request<B>, peer: IpAddr) -> Response<ResponseBody> {
        let started = Instant::now();
        let (mut parts, body) = request.into_parts();
        router::decode_unreserved(&mut parts);
        let now = self.env().now();
        let request_id = telemetry::request_id(&parts.headers, self.env(), now);
        let route = self.route(&parts).map_err(|problem| self.explain_slash(&parts, problem));
        let operation = route.as_ref().ok().and_then(Route::operation_id);
        let mut access = AccessRecord { operation, ..AccessRecord::default() };
        // Health checks, pages of the dashboard and requests of operators have no rate limit and are not counted in the
        // metrics.
        let is_page = route.as_ref().is_ok_and(Route::is_page);
        let is_client_request =
            self.listener != ListenerKind::Operators && !is_page && !matches!(parts.uri.path(), "/healthz" | "/readyz");
        let span = telemetry::request_span(&request_id, &parts, access.operation);
        let result = match route {
            Ok(route) => {
                // Whether the process is well is also said when nothing is left.
                let memory = if route.is_for_operators() { 0 } else { body::memory_of(&parts) };
                match self.state.requests.take_within(body::MEMORY_TIMEOUT, peer, memory).await {
                    Some(mut share) => {
                        let body = ArrivingBody::new(body, &mut share, memory, self.state.settings.body_timeout);
                        self.respond(route, &parts, body, peer, &mut access).instrument(span.clone()).await
                    }
                    None => Err(Problem::Overloaded),
                }
            }
            Err(problem) => Err(problem),
        };
        if let Err(Problem::Core(Error::Store(error))) = &result {
            let request_id = request_id.to_str().unwrap_or_default();
            span.in_scope(|| {
                tracing::error!(request_id, operation = access.operation, %error, "the store failed a request");
            });
        }
        #[cfg(feature = "dashboard")]
        if result.is_ok()
            && access.operation.is_some_and(|operation| MEMBER_CHANGES.contains(&operation))
            && let Some(dashboard) = &self.state.dashboard
        {
            dashboard.check_sessions();
        }
        let code = result.as_ref().err().map(Problem::code);
        #[cfg(feature = "dashboard")]
        let bearer_error = result.as_ref().err().and_then(Problem::bearer_error);
        let mut response = response::render(&parts.method, result);
        let headers = response.headers_mut();
        response::add_security_headers(&parts.method, headers);
        if is_client_request {
            self.state.background_reminder.check(now);
            let limits = &self.state.limits;
            access.status.unwrap_or_else(|| limits.status(limits.key_of_peer(peer), now)).write(headers);
        }
        #[cfg(feature = "dashboard")]
        if let Some(oauth) = self.oauth().filter(|_| !is_page) {
            let status = response.status();
            // A key that may only read is not refused because of a token.
            let is_of_token = status != StatusCode::FORBIDDEN || access.client.as_ref().is_some_and(Principal::is_app);
            let error = bearer_error.filter(|_| is_of_token);
            oauth.challenge(parts.uri.path(), status, error, response.headers_mut());
        }
        let headers = response.headers_mut();
        // Pages are for this origin alone.
        if self.listener != ListenerKind::Platform && !is_page {
            self.state.settings.cors.write(&parts.headers, headers);
        }
        let elapsed = started.elapsed();
        if is_client_request {
            self.state.settings.metrics.request(access.operation, response.status(), elapsed);
        }
        let logged = telemetry::Access {
            request_id: &request_id,
            parts: &parts,
            peer,
            operation: access.operation,
            client: access.client.as_ref(),
            status: response.status(),
            code,
            started_at: now,
            elapsed,
            written: access.written,
        };
        if let Some(Principal::Key(caller)) = logged.client
            && self.state.settings.request_log
            && !access.is_message
            && !self.state.request_log.add(self.env(), (caller.tenant_id, caller.id.key_id()), &logged)
        {
            self.state.settings.metrics.requests_not_logged(1);
        }
        logged.record(&span);
        span.in_scope(|| telemetry::access(&logged));
        response.headers_mut().insert(telemetry::REQUEST_ID, request_id);
        response
    }

    /// Returns the memory of requests, of which a listener takes that of its connections. The few connections of operators
    /// have memory of their own, so that health checks are answered whatever others do.
    #[cfg(feature = "standalone")]
    pub(crate) fn request_memory(&self) -> Pool {
        match self.listener {
            ListenerKind::Operators => Pool::of_memory("operators_memory", OPERATORS_MEMORY, self.metrics()),
            _ => self.state.requests.clone(),
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.state.store)
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.state.settings.metrics)
    }

    pub(crate) fn background_reminder(&self) -> &Reminder {
        &self.state.background_reminder
    }

    /// Returns the dashboard if it is on and serves this path.
    #[cfg(feature = "dashboard")]
    fn dashboard(&self, parts: &Parts) -> Option<&Dashboard> {
        self.state
            .dashboard
            .as_ref()
            .filter(|_| self.listener == ListenerKind::Public && Dashboard::serves(parts.uri.path()))
    }

    /// Returns the authorization server, if it is on and part of this listener.
    #[cfg(feature = "dashboard")]
    fn oauth(&self) -> Option<&Oauth> {
        self.state.oauth.as_ref().filter(|_| self.listener == ListenerKind::Public)
    }

    fn listener(&self) -> &Listener {
        match self.listener {
            ListenerKind::Platform => self.state.platform(),
            _ => &self.state.public,
        }
    }

    /// Ends the streams of the dashboard, so that their connections can be closed. Those that begin later end at once.
    pub(crate) fn end_streams(&self) {
        #[cfg(feature = "dashboard")]
        if let Some(dashboard) = &self.state.dashboard {
            dashboard.end_streams();
        }
    }

    fn env(&self) -> &Env {
        self.state.store.env()
    }

    fn route<'a>(&'a self, parts: &'a Parts) -> Result<Route<'a>, Problem> {
        router::check_head(parts)?;
        #[cfg(feature = "dashboard")]
        if let Some(dashboard) = self.dashboard(parts) {
            return Ok(Route::Dashboard(dashboard));
        }
        #[cfg(feature = "dashboard")]
        if let Some(oauth) = self.oauth()
            && let Some(endpoint) = oauth.endpoint(parts.uri.path())
        {
            return Ok(Route::Oauth(oauth, endpoint));
        }
        #[cfg(feature = "dashboard")]
        if let Some(oauth) = &self.state.oauth
            && self.listener == ListenerKind::Platform
            && parts.uri.path() == "/oauth/introspect"
        {
            return Ok(Route::Oauth(oauth, Endpoint::Introspect));
        }
        if self.listener != ListenerKind::Platform
            && self.state.settings.cors.is_preflight(&parts.method, &parts.headers)
        {
            return Ok(Route::Preflight);
        }
        #[cfg(feature = "mcp")]
        if let Some(route) = self.route_for_assistants(parts) {
            return Ok(route);
        }
        match self.listener {
            ListenerKind::Operators => router::route_for_operators(parts),
            #[cfg(feature = "mcp")]
            ListenerKind::Assistants => {
                let router = self.state.mcp.as_ref().and_then(|mcp| mcp.router.as_ref());
                router.ok_or_else(|| self.state.public.router.not_found())?.route(parts)
            }
            ListenerKind::Public | ListenerKind::Platform => self.listener().router.route(parts),
        }
    }

    /// Says that a path is right but for the slash at its end.
    fn explain_slash(&self, parts: &Parts, problem: Problem) -> Problem {
        let (Problem::RouteNotFound(_), Some(path)) = (&problem, parts.uri.path().strip_suffix('/')) else {
            return problem;
        };
        let mut without = parts.clone();
        match path.parse() {
            Ok(uri) => without.uri = uri,
            Err(_) => return problem,
        }
        match self.route(&without) {
            Ok(_) | Err(Problem::MethodNotAllowed(_)) => Problem::SlashAtEnd,
            Err(_) => problem,
        }
    }

    #[cfg(feature = "mcp")]
    fn route_for_assistants<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        let path = parts.uri.path();
        let (mcp, tools) = match self.listener {
            ListenerKind::Public => (self.state.mcp.as_ref(), ToolsPath::at(path)),
            ListenerKind::Platform => (self.state.platform().mcp.as_ref(), ToolsPath::on_platform(path)),
            _ => return None,
        };
        Some(Route::Mcp(mcp?, tools?))
    }

    async fn respond(
        &self,
        route: Route<'_>,
        parts: &Parts,
        body: ArrivingBody<'_>,
        peer: IpAddr,
        access: &mut AccessRecord,
    ) -> Result<Outcome, Problem> {
        match route {
            Route::Operation { routed, account, id, version } => {
                let base = match account {
                    Some(account) => format!("{}/accounts/{account}", version.path()),
                    None if version == Version::Platform => version.path().to_owned(),
                    None => format!("{}{}", self.state.settings.mount, version.for_clients().path()),
                };
                let context = RequestContext { state: &self.state, parts, peer, routed, account, id, version, base };
                let response = match routed.operation.method {
                    Method::GET => {
                        drop(body);
                        context.read(access).await
                    }
                    _ => context.write(body, access).await,
                };
                response.map(Outcome::Response)
            }
            Route::OpenApiDocument(version) => {
                let document = self.listener().documents.response(version);
                let if_none_match = response::tags(&parts.headers, IF_NONE_MATCH);
                Ok(Outcome::Response(document.unless_unmodified(&if_none_match)))
            }
            Route::Home => {
                let (headers, body) = self.state.home.response(&parts.headers);
                Ok(Outcome::Home { headers, body })
            }
            #[cfg(feature = "dashboard")]
            Route::Dashboard(dashboard) => self.respond_with_page(dashboard, parts, body, peer).await,
            #[cfg(feature = "dashboard")]
            Route::Oauth(oauth, endpoint) => self.respond_to_app(oauth, endpoint, parts, body, peer).await,
            #[cfg(feature = "mcp")]
            Route::Mcp(mcp, tools) => {
                // On the heap, since a connection keeps room for the largest of all.
                Box::pin(self.respond_to_assistant(mcp, tools, parts, body, peer, access)).await
            }
            #[cfg(feature = "docs")]
            Route::Docs(file) => {
                let listener = self.listener();
                let docs = listener.docs.as_ref().ok_or_else(|| listener.router.not_found())?;
                Ok(match docs.response(file, &response::tags(&parts.headers, IF_NONE_MATCH)) {
                    Ok((headers, body)) => Outcome::Home { headers, body },
                    Err(etag) => Outcome::Response(ApiResponse::not_modified(etag)),
                })
            }
            Route::Health => status_response("ok"),
            Route::Ready => {
                self.check_database().await?;
                status_response("ready")
            }
            Route::Metrics => {
                // Prometheus names both and wants OpenMetrics more. A client that does not name it, such as curl, may not know it.
                let metrics = &self.state.settings.metrics;
                let open = accept::ranges(&parts.headers).filter(|(range, _)| range == "application/openmetrics-text");
                let open = open.map(|(_, weight)| weight).reduce(f32::max).unwrap_or_default();
                Ok(match open > 0.0 && open >= accept::weight(&parts.headers, "text/plain") {
                    true => Outcome::Metrics(metrics.render(), metrics::CONTENT_TYPE),
                    false => Outcome::Metrics(metrics.render_plain(), metrics::PLAIN_CONTENT_TYPE),
                })
            }
            Route::Preflight => Ok(Outcome::Preflight(self.state.settings.cors.clone())),
            Route::Options(methods) => Ok(Outcome::Options(methods.to_owned())),
        }
    }

    async fn check_database(&self) -> Result<(), Error> {
        let lookup = self.state.store.read("readyz", (), async |tx, ()| Ok(tx.tenant(NO_TENANT).await.map(drop)?));
        let timed_out = |_| StoreError::Unavailable(format!("no response within {READY_TIMEOUT:?}"));
        tokio::time::timeout(READY_TIMEOUT, lookup).await.map_err(timed_out)??;
        Ok(self.state.store.check_writable()?)
    }
}

fn status_response(status: &str) -> Result<Outcome, Problem> {
    Ok(Outcome::Response(ApiResponse::json(StatusCode::OK, &serde_json::json!({ "status": status }))?))
}

/// The address of a client, as an extension of its request.
///
/// An application that mounts the API adds it to each request. Without it, all clients without a valid key share one
/// rate limit, and the log says so once. Behind a reverse proxy it is the address in the header that the proxy sets.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Says, as an extension of a request, that it came over TLS.
///
/// An application that mounts the dashboard and has TLS of its own adds it to each request: then no cookie but a `Secure`
/// one is set or read. Behind a reverse proxy, forms and the fetch metadata of browsers tell.
#[derive(Clone, Copy, Debug)]
pub struct OverTls;

impl<B> tower_service::Service<Request<B>> for Api
where
    B: Incoming + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let api = self.clone();
        let peer = match request.extensions().get() {
            Some(Peer(address)) => *address,
            None => self.state.unknown_peer(),
        };
        Box::pin(async move { Ok(Self::call(&api, request, peer).await) })
    }
}
