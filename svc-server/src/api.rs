//! The way of a request. The order of its checks is part of the contract (decisions §1): route, method, key,
//! rate limit, scope and developer access, signature, body, parameters, and then the rules.
//!
//! A read is one job of the store, which looks the key up and answers. A write is two: the key first, and
//! once the body has been read, the change with its idempotency record.

pub mod auth;
mod body;
mod change;
pub mod cors;
pub mod handlers;
pub mod in_flight_keys;
pub mod limits;
mod message;
pub mod openapi;
pub mod problem;
mod request_context;
pub mod response;
pub mod routes;
mod upkeep;

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use svc_core::accounts::keys::Caller;
use svc_core::accounts::limits::WriteRateLimits;
use svc_core::env::Env;
use svc_core::error::{Error, StoreError};
use svc_core::store::Store;
use svc_core::values::TenantId;
use svc_core::webhooks::retention::DeletedCounts;
use tokio::sync::Semaphore;
use tracing::Instrument as _;
use uuid::Uuid;

use self::body::BodyRoom;
pub use self::body::{Incoming, MAX_BODY};
pub use self::message::{MAX_HEADERS, MAX_URI};
use self::request_context::RequestContext;
use crate::api::cors::Cors;
use crate::api::in_flight_keys::InFlightKeys;
use crate::api::limits::{Cap, Limits, RateLimitStatus};
use crate::api::openapi::Document;
use crate::api::problem::Problem;
use crate::api::response::ApiResponse;
use crate::api::routes::Operation;
use crate::api::upkeep::{LastUsed, Retained};
use crate::deliver::resolver::{Resolver, SystemResolver};
use crate::metrics::Metrics;
use crate::telemetry;

/// The versions that are served. Both are the same so far.
pub const VERSIONS: [&str; 2] = ["/api/v1", "/api/v2"];

/// What an operator can set.
pub struct Settings {
    /// Requests a minute of one key, or of one address without a key.
    pub rate_limit: u32,
    /// Writes a minute of one key per method and route, in place of the defaults.
    pub write_rate_limits: WriteRateLimits,
    /// Whether limits are enforced.
    pub limit_rates: bool,
    /// How long answers are kept under their Idempotency-Key.
    pub idempotency_ttl: Duration,
    /// How long events are kept, with their finished deliveries and logs.
    pub retention: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Origins that browsers may call from.
    pub cors: Cors,
    /// The path under which a host application mounts the service, such as `/business`; empty for none.
    pub mount: String,
    /// Looks webhook hosts up.
    pub resolver: Arc<dyn Resolver>,
    /// Where requests are counted.
    pub metrics: Arc<Metrics>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate_limit: 60,
            write_rate_limits: WriteRateLimits::default(),
            limit_rates: true,
            idempotency_ttl: Duration::from_secs(24 * 60 * 60),
            retention: Duration::from_secs(30 * 24 * 60 * 60),
            body_timeout: Duration::from_secs(30),
            cors: Cors::default(),
            mount: String::new(),
            resolver: Arc::new(SystemResolver::default()),
            metrics: Arc::default(),
        }
    }
}

/// The API as a service. Cheap to clone; clones share everything.
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
#[derive(Clone)]
pub struct Api {
    inner: Arc<Inner>,
    /// Whether only operators are served, who have no business with the data.
    for_operators: bool,
}

struct Inner {
    store: Arc<dyn Store>,
    settings: Settings,
    operations: Vec<Operation>,
    /// Positions of the operations by path and method.
    router: matchit::Router<Vec<(Method, usize)>>,
    caps: Vec<Option<Cap>>,
    limits: Limits,
    in_flight: InFlightKeys,
    bodies: BodyRoom,
    /// One large body is parsed at a time.
    large_bodies: Arc<Semaphore>,
    document: Document,
    last_used: LastUsed,
    retained: Retained,
}

/// What is known of a request once it is answered.
#[derive(Default)]
struct AccessRecord {
    operation: Option<&'static str>,
    caller: Option<Caller>,
    status: Option<RateLimitStatus>,
}

/// What a request is about: found before anything else is looked at.
enum Route<'a> {
    Operation { position: usize, id: Option<&'a str>, version: &'static str },
    Document(usize),
    Health,
    Ready,
    Metrics,
    Preflight,
}

impl Api {
    /// The API over a store.
    pub fn new(store: Arc<dyn Store>, settings: Settings) -> Self {
        let operations = routes::operations();
        let mut paths: Vec<(&str, Vec<(Method, usize)>)> = Vec::new();
        for (position, operation) in operations.iter().enumerate() {
            let entry = (operation.method.clone(), position);
            match paths.iter_mut().find(|(path, _)| *path == operation.path) {
                Some((_, methods)) => methods.push(entry),
                None => paths.push((&operation.path, vec![entry])),
            }
        }
        let mut router = matchit::Router::new();
        for (path, methods) in paths {
            #[expect(clippy::expect_used, reason = "the table is fixed; a test builds this")]
            router.insert(path, methods).expect("paths that do not conflict");
        }
        let cap_of = |operation: &Operation| {
            let (collection, default) = operation.write_cap()?;
            let limit = settings.write_rate_limits.of(collection).map_or(default, NonZeroU32::get);
            Some(Cap { operation: operation.id, collection, limit })
        };
        let caps = operations.iter().map(cap_of).collect();
        let document = Document::new(&operations, &settings.mount);
        let limits = Limits::new(settings.rate_limit, settings.limit_rates, Arc::clone(&store));
        let inner = Inner {
            store,
            settings,
            operations,
            router,
            caps,
            limits,
            in_flight: InFlightKeys::default(),
            bodies: BodyRoom::default(),
            large_bodies: Arc::new(Semaphore::new(1)),
            document,
            last_used: LastUsed::default(),
            retained: Retained::default(),
        };
        Self { inner: Arc::new(inner), for_operators: false }
    }

    /// The same service for operators: it answers `/healthz`, `/readyz` and `/metrics` and nothing else.
    #[must_use]
    pub fn for_operators(&self) -> Self {
        Self { inner: Arc::clone(&self.inner), for_operators: true }
    }

    /// Answers one request from `peer`. Never fails: every failure is an answer.
    pub async fn call<B: Incoming>(&self, request: Request<B>, peer: IpAddr) -> Response<Full<Bytes>> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let now = self.env().now();
        let request_id = message::request_id(&parts.headers, self.env(), now);
        let route = self.inner.route(&parts, self.for_operators);
        let mut access = AccessRecord { operation: self.inner.operation(&route), ..AccessRecord::default() };
        let outside = self.for_operators || matches!(parts.uri.path(), "/healthz" | "/readyz");
        let span = telemetry::request_span(&request_id, &parts, access.operation);
        let result = match route {
            Ok(route) => self.answer(route, &parts, body, peer, &mut access).instrument(span.clone()).await,
            Err(problem) => Err(problem),
        };
        if let Err(Problem::Core(Error::Store(cause))) = &result {
            let request_id = request_id.to_str().unwrap_or_default();
            tracing::error!(request_id, operation = access.operation, %cause, "a request failed");
        }
        let code = result.as_ref().err().map(Problem::code);
        let mut response = message::render(result);
        let headers = response.headers_mut();
        message::protect(&parts.method, headers);
        if !outside {
            let status = access.status.unwrap_or_else(|| self.inner.limits.peek(self.inner.limits.of_peer(peer), now));
            status.write(headers);
        }
        self.inner.settings.cors.write(&parts.headers, headers);
        let elapsed = started.elapsed();
        if !outside {
            self.inner.settings.metrics.request(access.operation, response.status(), elapsed);
        }
        let access = telemetry::Access {
            request_id: &request_id,
            parts: &parts,
            peer,
            operation: access.operation,
            tenant: access.caller.as_ref().map(|caller| caller.tenant_id),
            key: access.caller.as_ref().map(|caller| caller.key_id),
            status: response.status(),
            code,
            elapsed,
        };
        access.record(&span);
        telemetry::access(&access);
        response.headers_mut().insert(message::REQUEST_ID, request_id);
        response
    }

    /// Does what is due beside requests: notes when keys were last used, drops expired answers and signatures, counts
    /// the deliveries that wait, for metrics.
    ///
    /// # Errors
    /// [`Error::Store`]; nothing is lost then, and the next call does it.
    pub async fn upkeep(&self) -> Result<(), Error> {
        self.flush_last_used().await?;
        upkeep::prune(&*self.inner.store, self.inner.settings.idempotency_ttl).await?;
        upkeep::measure(&*self.inner.store, &self.inner.settings.metrics).await
    }

    /// Deletes events whose time is over, with their finished deliveries, logs and replays, in small steps beside
    /// requests. To be called every minute or so, apart from [`Api::upkeep`]: after a long pause it takes its time.
    /// Returns what it deleted.
    ///
    /// # Errors
    /// [`Error::Store`]; the next call goes on.
    pub async fn retain(&self) -> Result<DeletedCounts, Error> {
        self.inner.retained.sweep(&*self.inner.store, self.inner.settings.retention).await
    }

    /// Notes when keys were last used.
    ///
    /// # Errors
    /// [`Error::Store`]; nothing is lost then, and the next call does it.
    pub async fn flush_last_used(&self) -> Result<(), Error> {
        self.inner.last_used.flush(&*self.inner.store).await
    }

    fn env(&self) -> &Env {
        self.inner.store.env()
    }

    async fn answer<B: Incoming>(
        &self,
        route: Route<'_>,
        parts: &Parts,
        body: B,
        peer: IpAddr,
        access: &mut AccessRecord,
    ) -> Result<Answer, Problem> {
        match route {
            Route::Health => {
                Ok(Answer::ApiResponse(ApiResponse::json(StatusCode::OK, &serde_json::json!({ "status": "ok" }))?))
            }
            Route::Ready => {
                let look = self
                    .inner
                    .store
                    .read("readyz", |tx| Box::pin(async move { Ok(tx.tenant(NO_TENANT).await.map(drop)?) }));
                let late = |_| StoreError::Unavailable(format!("no answer within {READY_TIMEOUT:?}"));
                tokio::time::timeout(READY_TIMEOUT, look).await.map_err(late)??;
                Ok(Answer::ApiResponse(ApiResponse::json(StatusCode::OK, &serde_json::json!({ "status": "ready" }))?))
            }
            Route::Metrics => Ok(Answer::Metrics(self.inner.settings.metrics.render())),
            Route::Preflight => Ok(Answer::Preflight(self.inner.settings.cors.clone())),
            Route::Document(version) => {
                let response = self.inner.document.response(version);
                Ok(message::unless_none_match(response, &parts.headers))
            }
            Route::Operation { position, id, version } => {
                let base = format!("{}{version}", self.inner.settings.mount);
                let context = RequestContext { api: &self.inner, parts, peer, position, id, base };
                if self.inner.operations[position].method == Method::GET {
                    context.read(access).await
                } else {
                    context.write(body, access).await
                }
            }
        }
    }
}

/// How long `/readyz` waits for the database.
const READY_TIMEOUT: Duration = Duration::from_secs(2);
/// Asked for by `/readyz`: whether the database answers, not what.
const NO_TENANT: TenantId = TenantId(Uuid::nil());

/// The outcome of a request that did not fail.
enum Answer {
    ApiResponse(ApiResponse),
    NotModified { etag: String },
    Metrics(String),
    Preflight(Cors),
}

impl Inner {
    fn operation(&self, route: &Result<Route<'_>, Problem>) -> Option<&'static str> {
        match route {
            Ok(Route::Operation { position, .. }) => Some(self.operations[*position].id),
            _ => None,
        }
    }

    fn route<'a>(&self, parts: &'a Parts, for_operators: bool) -> Result<Route<'a>, Problem> {
        message::check_size_and_host(parts)?;
        let path = parts.uri.path();
        if self.settings.cors.is_preflight(&parts.method, &parts.headers) {
            return Ok(Route::Preflight);
        }
        match path {
            "/healthz" => return only_get(parts, Route::Health),
            "/readyz" => return only_get(parts, Route::Ready),
            "/metrics" if for_operators => return only_get(parts, Route::Metrics),
            _ if for_operators => return Err(Problem::RouteNotFound),
            _ => {}
        }
        let found = VERSIONS.iter().enumerate().find_map(|(number, version)| {
            path.strip_prefix(version).filter(|rest| rest.starts_with('/')).map(|rest| (number, *version, rest))
        });
        let (number, version, rest) = found.ok_or(Problem::RouteNotFound)?;
        if rest == "/openapi.json" {
            return only_get(parts, Route::Document(number));
        }
        let matched = self.router.at(rest).map_err(|_| Problem::RouteNotFound)?;
        let wanted = if parts.method == Method::HEAD { &Method::GET } else { &parts.method };
        match matched.value.iter().find(|(method, _)| method == wanted) {
            Some((_, position)) => Ok(Route::Operation { position: *position, id: matched.params.get("id"), version }),
            None => Err(Problem::MethodNotAllowed(allow(matched.value))),
        }
    }
}

fn only_get<'a>(parts: &Parts, route: Route<'a>) -> Result<Route<'a>, Problem> {
    match parts.method {
        Method::GET | Method::HEAD => Ok(route),
        _ => Err(Problem::MethodNotAllowed("GET, HEAD".to_owned())),
    }
}

fn allow(methods: &[(Method, usize)]) -> String {
    let mut names = Vec::new();
    for (method, _) in methods {
        names.push(method.as_str());
        if *method == Method::GET {
            names.push("HEAD");
        }
    }
    names.join(", ")
}

/// Says who is on the other side, for hosts that mount the service: an extension of the request.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

impl<B> tower_service::Service<Request<B>> for Api
where
    B: Incoming + 'static,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let api = self.clone();
        let peer = request.extensions().get().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |Peer(address)| *address);
        Box::pin(async move { Ok(Self::call(&api, request, peer).await) })
    }
}
