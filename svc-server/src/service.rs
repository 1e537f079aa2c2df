//! The way of a request. The order of its checks is part of the contract (decisions §1): route, method, key,
//! rate limit, scope and developer access, signature, body, parameters, and then the rules.
//!
//! A read is one job of the store, which looks the key up and answers. A write is two: the key first, and
//! once the body has been read, the change with its idempotency record.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HOST, IF_MATCH, IF_NONE_MATCH, LOCATION};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::Body;
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::idempotency;
use svc_core::keys::{self, Caller};
use svc_core::store::{Store, StoreError, Tx};
use svc_core::types::{HostPolicy, TenantId, Timestamp, WebhookUrl};
use uuid::Uuid;

use crate::api::{Prepared, Target, Work};
use crate::auth::{self, SignatureHeaders};
use crate::cors::Cors;
use crate::idempotency::{Guard, InFlight};
use crate::limits::{Cap, Limits, Standing, Subject};
use crate::openapi::Document;
use crate::problem::Problem;
use crate::reply::Reply;
use crate::resolve::{Resolver, SystemResolver};
use crate::routes::{self, Operation};
use crate::telemetry;
use crate::upkeep::{self, LastUsed};

/// Largest body, in bytes.
pub const MAX_BODY: usize = 1024 * 1024;
/// Longest request target, in bytes.
pub const MAX_URI: usize = 8 * 1024;
/// Largest sum of header names and values, in bytes.
pub const MAX_HEADERS: usize = 16 * 1024;
/// How long a signature is remembered: twice the tolerance, as its timestamp may lie in the future.
const SIGNATURE_MEMORY: Duration = Duration::from_secs(601);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The versions that are served. Both are the same so far.
pub const VERSIONS: [&str; 2] = ["/api/v1", "/api/v2"];

/// What an operator can set.
pub struct Settings {
    /// Requests a minute of one key, or of one address without a key.
    pub rate_limit: u32,
    /// Writes a minute of one key per method and route, by collection, in place of the defaults.
    pub write_rate_limits: HashMap<String, u32>,
    /// Whether limits are enforced.
    pub limit_rates: bool,
    /// How long answers are kept under their Idempotency-Key.
    pub idempotency_ttl: Duration,
    /// How long a body may take to arrive.
    pub body_timeout: Duration,
    /// Origins that browsers may call from.
    pub cors: Cors,
    /// The path under which a host application mounts the service, such as `/business`; empty for none.
    pub mount: String,
    /// Looks webhook hosts up.
    pub resolver: Arc<dyn Resolver>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rate_limit: 60,
            write_rate_limits: HashMap::new(),
            limit_rates: true,
            idempotency_ttl: Duration::from_secs(24 * 60 * 60),
            body_timeout: Duration::from_secs(30),
            cors: Cors::default(),
            mount: String::new(),
            resolver: Arc::new(SystemResolver),
        }
    }
}

/// The API as a service. Cheap to clone; clones share everything.
///
/// ```
/// use svc_core::{env::Env, store::memory::MemoryStore};
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
pub struct Api(Arc<Inner>);

struct Inner {
    store: Arc<dyn Store>,
    settings: Settings,
    operations: Vec<Operation>,
    /// Positions of the operations by path and method.
    router: matchit::Router<Vec<(Method, usize)>>,
    caps: Vec<Option<Cap>>,
    limits: Limits,
    in_flight: InFlight,
    document: Document,
    last_used: LastUsed,
}

/// What is known of a request once it is answered.
#[derive(Default)]
struct Account {
    operation: Option<&'static str>,
    caller: Option<Caller>,
    standing: Option<Standing>,
}

/// What a request is about: found before anything else is looked at.
enum Route<'a> {
    Operation { position: usize, id: Option<&'a str>, version: &'static str },
    Document(usize),
    Health,
    Ready,
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
        let cap_of = |(position, operation): (usize, &Operation)| {
            let default = routes::DEFAULT_WRITE_CAPS.iter().find(|(name, _)| *name == operation.collection)?;
            let limit = settings.write_rate_limits.get(operation.collection).copied().unwrap_or(default.1);
            (operation.method != Method::GET).then_some(Cap { operation: position, limit })
        };
        let caps = operations.iter().enumerate().map(cap_of).collect();
        let document = Document::new(&operations, &settings.mount);
        let limits = Limits::new(settings.rate_limit, settings.limit_rates);
        Self(Arc::new(Inner {
            store,
            settings,
            operations,
            router,
            caps,
            limits,
            in_flight: InFlight::default(),
            document,
            last_used: LastUsed::default(),
        }))
    }

    /// Answers one request from `peer`. Never fails: every failure is an answer.
    pub async fn call<B: Incoming>(&self, request: Request<B>, peer: IpAddr) -> Response<Full<Bytes>> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let now = self.env().now();
        let request_id = request_id(&parts.headers, self.env(), now);
        let mut account = Account::default();
        let route = self.0.route(&parts);
        let outside = matches!(parts.uri.path(), "/healthz" | "/readyz");
        let result = match route {
            Ok(route) => self.answer(route, &parts, body, peer, &mut account).await,
            Err(problem) => Err(problem),
        };
        if let Err(Problem::Core(Error::Store(cause))) = &result {
            let request_id = request_id.to_str().unwrap_or_default();
            tracing::error!(request_id, operation = account.operation, %cause, "a request failed");
        }
        let code = result.as_ref().err().map(Problem::code);
        let mut response = render(result);
        let headers = response.headers_mut();
        if !outside {
            let standing = account.standing.unwrap_or_else(|| self.0.limits.peek(Subject::peer(peer), now));
            standing.write(headers);
        }
        self.0.settings.cors.write(&parts.headers, headers);
        telemetry::access(&telemetry::Access {
            request_id: &request_id,
            parts: &parts,
            peer,
            operation: account.operation,
            tenant: account.caller.as_ref().map(|caller| caller.tenant),
            key: account.caller.as_ref().map(|caller| caller.key),
            status: response.status(),
            code,
            elapsed: started.elapsed(),
        });
        response.headers_mut().insert(REQUEST_ID, request_id);
        response
    }

    /// Does what is due beside requests: notes when keys were last used, drops expired answers and signatures.
    ///
    /// # Errors
    /// [`Error::Store`]; nothing is lost then, and the next call does it.
    pub async fn upkeep(&self) -> Result<(), Error> {
        self.0.last_used.flush(&*self.0.store).await?;
        upkeep::prune(&*self.0.store, self.0.settings.idempotency_ttl).await
    }

    fn env(&self) -> &Env {
        self.0.store.env()
    }

    async fn answer<B: Incoming>(
        &self,
        route: Route<'_>,
        parts: &Parts,
        body: B,
        peer: IpAddr,
        account: &mut Account,
    ) -> Result<Answer, Problem> {
        match route {
            Route::Health => Ok(Answer::Reply(Reply::json(StatusCode::OK, &serde_json::json!({ "status": "ok" }))?)),
            Route::Ready => {
                self.0
                    .store
                    .read("readyz", |tx| Box::pin(async move { Ok(tx.tenant(NO_TENANT).await.map(drop)?) }))
                    .await?;
                Ok(Answer::Reply(Reply::json(StatusCode::OK, &serde_json::json!({ "status": "ready" }))?))
            }
            Route::Preflight => Ok(Answer::Preflight(self.0.settings.cors.clone())),
            Route::Document(version) => {
                let reply = self.0.document.reply(version);
                Ok(unless_none_match(reply, &parts.headers))
            }
            Route::Operation { position, id, version } => {
                account.operation = Some(self.0.operations[position].id);
                let base = format!("{}{version}", self.0.settings.mount);
                let visit = Visit { api: &self.0, parts, peer, position, id, base };
                if self.0.operations[position].method == Method::GET {
                    visit.read(account).await
                } else {
                    visit.write(body, account).await
                }
            }
        }
    }
}

/// Asked for by `/readyz`: whether the database answers, not what.
const NO_TENANT: TenantId = TenantId(Uuid::nil());

/// The outcome of a request that did not fail.
enum Answer {
    Reply(Reply),
    NotModified { etag: String },
    Preflight(Cors),
}

impl Inner {
    fn route<'a>(&self, parts: &'a Parts) -> Result<Route<'a>, Problem> {
        check_size_and_host(parts)?;
        let path = parts.uri.path();
        if self.settings.cors.is_preflight(&parts.method, &parts.headers) {
            return Ok(Route::Preflight);
        }
        match path {
            "/healthz" => return only_get(parts, Route::Health),
            "/readyz" => return only_get(parts, Route::Ready),
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

fn check_size_and_host(parts: &Parts) -> Result<(), Problem> {
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

/// One request on its way to its operation.
struct Visit<'a> {
    api: &'a Arc<Inner>,
    parts: &'a Parts,
    peer: IpAddr,
    position: usize,
    id: Option<&'a str>,
    base: String,
}

/// What admitting a key comes to. What fails after the key was found still counts against it.
struct Admitted {
    caller: Caller,
    standing: Standing,
    result: Result<Option<Reply>, Problem>,
}

impl Visit<'_> {
    fn operation(&self) -> &Operation {
        &self.api.operations[self.position]
    }

    fn now(&self) -> Timestamp {
        self.api.store.env().now()
    }

    fn target<'t>(&'t self, body: &'t [u8]) -> Target<'t> {
        Target { id: self.id, query: self.parts.uri.query().unwrap_or_default(), body, base: &self.base }
    }

    async fn read(&self, account: &mut Account) -> Result<Answer, Problem> {
        let prepared = (self.operation().prepare)(&self.target(&[]));
        let (caller, reply) = self.admit(Some(prepared.map(|prepared| prepared.work)), account).await?;
        let reply = reply.ok_or_else(|| StoreError::Fault("a read gave no answer".to_owned()))?;
        let answer = unless_none_match(reply, &self.parts.headers);
        if matches!(answer, Answer::NotModified { .. }) {
            let (subject, cap) = (Subject::Key(caller.key), self.api.caps[self.position]);
            account.standing = Some(self.api.limits.refund(subject, cap, self.now()));
        }
        Ok(answer)
    }

    async fn write<B: Incoming>(&self, body: B, account: &mut Account) -> Result<Answer, Problem> {
        let (caller, _) = self.admit(None, account).await?;
        let signature = match caller.signing_secret {
            Some(_) => Some(SignatureHeaders::find(&self.parts.headers)?),
            None => None,
        };
        let body = if self.operation().takes_body() || signature.is_some() {
            read_body(body, self.api.settings.body_timeout).await?
        } else {
            Bytes::new()
        };
        if let Some(signature) = signature {
            let mac = signature.verify(&caller, self.parts, &self.api.settings.mount, &body, self.now())?;
            self.claim(&caller, mac).await?;
        }
        if self.operation().takes_body() {
            check_media_type(&self.parts.headers, &body)?;
        }
        let Prepared { work, url } = (self.operation().prepare)(&self.target(&body))?;
        let ticket = self.ticket(&caller, &body)?.map(Arc::new);
        let kept_since = self.now().minus(self.api.settings.idempotency_ttl);
        if let Some(url) = url
            && !self.is_recorded(caller.tenant, ticket.as_ref(), kept_since).await?
        {
            self.check_resolved(&url).await?;
        }
        let change = Change { work, tenant: caller.tenant, ticket, kept_since, condition: self.condition(&body)? };
        self.run(change).await.map(Answer::Reply)
    }

    /// Looks the key up, counts the request and checks what the key may do. `work` follows in the same job.
    async fn admit(
        &self,
        work: Option<Result<Work, Error>>,
        account: &mut Account,
    ) -> Result<(Caller, Option<Reply>), Problem> {
        let hash = auth::bearer(&self.parts.headers).map_err(|error| self.stranger(error, account))?;
        let (api, position) = (Arc::clone(self.api), self.position);
        let name = if work.is_some() { self.operation().id } else { "authenticate" };
        let admitted = self.api.store.read(name, move |tx| {
            let (api, work) = (Arc::clone(&api), work.clone());
            Box::pin(async move {
                let caller = keys::authenticate(tx, hash).await?;
                let (subject, now) = (Subject::Key(caller.key), tx.env().now());
                let (standing, result) = match api.limits.take(subject, api.caps[position], now) {
                    Err((standing, retry_after)) => (standing, Err(Problem::RateLimited { retry_after })),
                    Ok(standing) => match caller.require(api.operations[position].scope) {
                        Err(error) => (standing, Err(error.into())),
                        Ok(()) => (standing, perform(tx, &caller, work).await),
                    },
                };
                Ok(Admitted { caller, standing, result })
            })
        });
        let Admitted { caller, standing, result } = admitted.await.map_err(|error| self.stranger(error, account))?;
        self.api.last_used.note(caller.key, self.now());
        account.standing = Some(standing);
        account.caller = Some(caller.clone());
        Ok((caller, result?))
    }

    /// A request without a valid key counts against its address.
    fn stranger(&self, error: Error, account: &mut Account) -> Problem {
        if matches!(error, Error::Store(_)) {
            return error.into();
        }
        let taken = self.api.limits.take(Subject::peer(self.peer), None, self.now());
        let (standing, problem) = match taken {
            Ok(standing) => (standing, error.into()),
            Err((standing, retry_after)) => (standing, Problem::RateLimited { retry_after }),
        };
        account.standing = Some(standing);
        problem
    }

    /// A signature is accepted once, whatever comes of its request.
    async fn claim(&self, caller: &Caller, mac: [u8; 32]) -> Result<(), Problem> {
        let key = caller.key;
        let fresh = self.api.store.write("signature.claim", move |tx| {
            Box::pin(async move {
                let now = tx.env().now();
                let until = now.checked_add(SIGNATURE_MEMORY).unwrap_or(now);
                Ok(tx.claim_signature(key, &mac, until).await?)
            })
        });
        if fresh.await? {
            return Ok(());
        }
        Err(Error::SignatureInvalid("This signature was used before; sign each request with the time of its sending.")
            .into())
    }

    /// Whether the answer is known already, whatever the host resolves to by now.
    async fn is_recorded(
        &self,
        tenant: TenantId,
        ticket: Option<&Arc<Ticket>>,
        kept_since: Timestamp,
    ) -> Result<bool, Problem> {
        let Some(ticket) = ticket.cloned() else { return Ok(false) };
        let recorded = self.api.store.read("idempotency.recorded", move |tx| {
            let ticket = Arc::clone(&ticket);
            Box::pin(async move { Ok(tx.recorded(tenant, &ticket.key, kept_since).await?.is_some()) })
        });
        Ok(recorded.await?)
    }

    /// A name that resolves to an address that is not public is refused; one that does not resolve is not.
    async fn check_resolved(&self, url: &WebhookUrl) -> Result<(), Problem> {
        if self.api.store.env().webhook_hosts == HostPolicy::AllowPrivate {
            return Ok(());
        }
        url.check_host(HostPolicy::Public).map_err(|issue| issue.on("url"))?;
        let Some(name) = url.domain() else { return Ok(()) };
        let addresses = self.api.settings.resolver.resolve(name).await;
        Ok(WebhookUrl::check_addresses(&addresses).map_err(|issue| issue.on("url"))?)
    }

    fn ticket(&self, caller: &Caller, body: &[u8]) -> Result<Option<Ticket>, Problem> {
        if self.parts.method != Method::POST {
            return Ok(None);
        }
        let mut values = self.parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else { return Ok(None) };
        // What is no text is as wrong as an empty key, and repeated keys are no key.
        let key = if values.next().is_none() { value.to_str().unwrap_or("\u{fffd}") } else { "\u{fffd}" };
        idempotency::check_key(key)?;
        let path = &self.operation().path;
        Ok(Some(Ticket {
            key: key.to_owned(),
            fingerprint: idempotency::fingerprint(self.parts.method.as_str(), path, body),
            _guard: self.api.in_flight.begin(caller.tenant, key)?,
        }))
    }

    fn condition(&self, body: &[u8]) -> Result<Option<Condition>, Problem> {
        let tags = tags(&self.parts.headers, IF_MATCH);
        // A header that names no tag matches none; it does not make the change unconditional.
        match (self.operation().current, self.parts.headers.contains_key(IF_MATCH)) {
            (Some(current), true) => Ok(Some(Condition { tags, current: current(&self.target(body))?.work })),
            _ => Ok(None),
        }
    }

    async fn run(&self, change: Change) -> Result<Reply, Problem> {
        let (tenant, ticket) = (change.tenant, change.ticket.clone());
        let change = Arc::new(change);
        let changed = self.api.store.write(self.operation().id, move |tx| {
            let change = Arc::clone(&change);
            Box::pin(async move { change.run(tx).await })
        });
        let result = changed.await;
        // A conflict changed nothing, so its answer is kept in a transaction of its own.
        if let (Some(ticket), Err(error @ Error::EmailTaken { .. })) = (ticket, &result) {
            let problem = Problem::Core(error.clone());
            let kept = Reply { status: problem.status(), body: problem.body(), ..Reply::no_content() };
            let recorded = self.api.store.write("idempotency.record", move |tx| {
                let (ticket, kept) = (Arc::clone(&ticket), kept.clone());
                Box::pin(async move {
                    let recorded = kept.record(ticket.fingerprint, tx.env().now());
                    Ok(tx.record(tenant, &ticket.key, &recorded).await?)
                })
            });
            recorded.await?;
        }
        Ok(result?)
    }
}

async fn perform(
    tx: &mut dyn Tx,
    caller: &Caller,
    work: Option<Result<Work, Error>>,
) -> Result<Option<Reply>, Problem> {
    match work {
        None => Ok(None),
        Some(work) => Ok(Some(work?(tx, caller.tenant).await?)),
    }
}

/// A change and what it depends on: one transaction.
struct Change {
    work: Work,
    tenant: TenantId,
    ticket: Option<Arc<Ticket>>,
    /// Answers that were kept before this are forgotten.
    kept_since: Timestamp,
    condition: Option<Condition>,
}

/// An Idempotency-Key in use. Its guard goes with the job, which may outlive the client.
struct Ticket {
    key: String,
    fingerprint: [u8; 32],
    _guard: Guard,
}

/// An `If-Match`.
struct Condition {
    tags: Vec<String>,
    current: Work,
}

impl Change {
    async fn run(&self, tx: &mut dyn Tx) -> Result<Reply, Error> {
        let tenant = self.tenant;
        if let Some(ticket) = &self.ticket
            && let Some(recorded) = tx.recorded(tenant, &ticket.key, self.kept_since).await?
        {
            let same = recorded.fingerprint == ticket.fingerprint;
            return if same { Ok(Reply::replay(recorded)) } else { Err(Error::IdempotencyKeyReused) };
        }
        let before = match &self.condition {
            Some(condition) => (condition.current)(tx, tenant).await?.etag,
            None => None,
        };
        let reply = (self.work)(tx, tenant).await?;
        // Compared last, as 404 and 409 come before 412; the transaction is undone then.
        if let (Some(condition), Some(before)) = (&self.condition, before)
            && !condition.tags.iter().any(|tag| tag == "*" || *tag == before)
        {
            return Err(Error::PreconditionFailed);
        }
        if let Some(ticket) = &self.ticket {
            let recorded = reply.record(ticket.fingerprint, tx.env().now());
            tx.record(tenant, &ticket.key, &recorded).await?;
        }
        Ok(reply)
    }
}

/// The tags of a conditional header, over all its lines.
fn tags(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(|tag| tag.trim().to_owned()).filter(|tag| !tag.is_empty()).collect()
}

fn unless_none_match(reply: Reply, headers: &HeaderMap) -> Answer {
    let Some(etag) = &reply.etag else { return Answer::Reply(reply) };
    // Weak comparison (RFC 9110 §13.1.2).
    let same = |tag: &String| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag;
    if tags(headers, IF_NONE_MATCH).iter().any(same) {
        return Answer::NotModified { etag: etag.clone() };
    }
    Answer::Reply(reply)
}

async fn read_body<B: Incoming>(body: B, timeout: Duration) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(Problem::BodyTooLarge);
    }
    let collected = tokio::time::timeout(timeout, Limited::new(body, MAX_BODY).collect()).await;
    match collected {
        Err(_) => Err(Problem::BodyIncomplete("The body did not arrive in time; send it again.")),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::BodyTooLarge),
        Ok(Err(_)) => Err(Problem::BodyIncomplete("The body did not arrive whole; send it again.")),
    }
}

fn check_media_type(headers: &HeaderMap, body: &[u8]) -> Result<(), Problem> {
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

fn request_id(headers: &HeaderMap, env: &Env, now: Timestamp) -> HeaderValue {
    let allowed = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    let given = headers
        .get(REQUEST_ID)
        .filter(|value| (1..=128).contains(&value.len()) && value.as_bytes().iter().all(allowed));
    // A UUID is always a valid header value.
    given
        .cloned()
        .unwrap_or_else(|| HeaderValue::try_from(env.id(now).to_string()).unwrap_or(HeaderValue::from_static("-")))
}

fn render(result: Result<Answer, Problem>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    let mut body = Bytes::new();
    let headers = response.headers_mut();
    // Tags and addresses are made of hex, UUIDs and fixed paths.
    let mut put =
        |name: HeaderName, value: String| HeaderValue::try_from(value).map(|value| headers.insert(name, value));
    let status = match result {
        Ok(Answer::Reply(reply)) => {
            let _ = reply.etag.map(|etag| put(ETAG, etag));
            let _ = reply.location.map(|location| put(LOCATION, location));
            if reply.replayed {
                let _ = put(REPLAYED, "true".to_owned());
            }
            body = reply.body;
            reply.status
        }
        Ok(Answer::NotModified { etag }) => {
            let _ = put(ETAG, etag);
            StatusCode::NOT_MODIFIED
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
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(CONTENT_LENGTH, body.len().into());
        *response.body_mut() = Full::new(body);
    }
    response
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

/// A request body.
pub trait Incoming: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send {}

impl<B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + Send> Incoming for B {}
