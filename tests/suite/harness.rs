//! The set-up of a test: a service over a database of its own, with a manual clock and seeded randomness, so that
//! ids, times and bodies are exact.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use serde_json::Value;
use svc_core::accounts::signing::SignedRequest;
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::operation::AnyOperation;
use svc_core::platform::operations::public;
use svc_core::store::Store;
use svc_core::values::Timestamp;
use svc_core::webhooks::events::Event;
use svc_server::outbound::resolver::Resolver;
use svc_server::{Api, ResponseBody, Settings, Surfaces};

use crate::conform;
use crate::database::Database;
use crate::seed::{self, Key, Seed};

/// A service with its database, clock and seed data, called without a socket.
pub(crate) struct TestServer {
    pub(crate) api: Api,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
    pub(crate) seed: Seed,
    /// Declared last, so that it is dropped after the store.
    pub(crate) database: Database,
}

/// Returns settings without rate limits and without DNS look-ups.
pub(crate) fn settings() -> Settings {
    Settings { limit_rates: false, resolver: Arc::new(StubResolver), ..Settings::default() }
}

/// Returns settings with rate limits.
pub(crate) fn limited() -> Settings {
    Settings { limit_rates: true, ..settings() }
}

/// A resolver that knows names under `example.com` and under `private.example` only.
pub(crate) struct StubResolver;

impl Resolver for StubResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
        let addresses = match host {
            "split.private.example" => vec![IpAddr::from([93, 184, 215, 14]), IpAddr::from([10, 0, 0, 7])],
            name if name.ends_with("private.example") => vec![IpAddr::from([10, 0, 0, 7])],
            name if name.ends_with("example.com") => vec![IpAddr::from([93, 184, 215, 14])],
            _ => Vec::new(),
        };
        async move { addresses }.boxed()
    }
}

impl TestServer {
    pub(crate) fn new() -> Self {
        Self::with(settings(), |store| store)
    }

    pub(crate) fn limited() -> Self {
        Self::with(limited(), |store| store)
    }

    /// Creates a server with these surfaces and settings.
    pub(crate) fn serving(surfaces: Surfaces, settings: Settings) -> Self {
        Self::of(surfaces, settings, |store| store)
    }

    /// Creates a server with these settings, whose store is wrapped by `wrap`.
    pub(crate) fn with(settings: Settings, wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>) -> Self {
        Self::of(Surfaces::default(), settings, wrap)
    }

    pub(crate) fn of(
        surfaces: Surfaces,
        settings: Settings,
        wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>,
    ) -> Self {
        let (database, seed) = seed::copy();
        let clock = ManualClock::at(seed::start());
        let store = database.open(Env::new(clock.clone(), SeededEntropy::new(2)));
        let api = Api::with_surfaces(wrap(Arc::clone(&store)), settings, surfaces);
        Self { api, store, clock, seed, database }
    }

    /// Opens a second store on the same database, as another process does.
    pub(crate) fn second_store(&self) -> Arc<dyn Store> {
        self.database.open(Env::new(self.clock.clone(), SeededEntropy::new(3)))
    }

    pub(crate) fn key(&self, role: &str) -> &Key {
        self.seed.keys.get(role).unwrap_or_else(|| panic!("no key {role}"))
    }

    /// Returns the id of a placeholder such as `contact_id`.
    pub(crate) fn id(&self, name: &str) -> String {
        self.seed.ids.get(name).unwrap_or_else(|| panic!("no id {name}")).to_string()
    }

    /// Sends a request and checks the response against the OpenAPI document.
    pub(crate) async fn send(&self, call: Call) -> TestResponse {
        self.send_to(&self.api, call).await
    }

    /// Sends a request to another service on this database, and checks the response against the OpenAPI document.
    pub(crate) async fn send_to(&self, api: &Api, call: Call) -> TestResponse {
        let (method, path) = (call.method.clone(), call.target.clone());
        let peer = call.peer;
        read(&method, &path, guarded(api.call(call.into_request(self), peer)).await).await
    }

    /// Sends a request whose body arrives only after `meanwhile` has completed, and its headers before that.
    pub(crate) async fn send_slowly(&self, call: Call, meanwhile: impl Future<Output = ()> + Send) -> TestResponse {
        let (method, path, peer) = (call.method.clone(), call.target.clone(), call.peer);
        let (parts, body) = call.into_request(self).into_parts();
        let body = stream::once(async move {
            meanwhile.await;
            Ok::<_, Infallible>(Frame::data(body.collect().await.unwrap().to_bytes()))
        });
        let request = Request::from_parts(parts, StreamBody::new(body));
        read(&method, &path, guarded(self.api.call(request, peer)).await).await
    }

    /// Sends a request whose response must have this status.
    pub(crate) async fn expect(&self, status: u16, call: Call) -> TestResponse {
        let shown = format!("{} {}", call.method, call.target);
        let response = self.send(call).await;
        assert_eq!(response.status, status, "{shown}: {}", response.text());
        response
    }

    /// Returns the tenant's events after an instant.
    pub(crate) async fn events_after(&self, after: Timestamp) -> Vec<Event> {
        let tenant = self.seed.tenant;
        self.store
            .read("events", (tenant, after), async |tx, &(tenant, after)| {
                Ok(tx.events_after(tenant, after, 10_000).await?)
            })
            .await
            .unwrap()
    }

    /// Returns the kinds of the tenant's events since the seed.
    pub(crate) async fn new_events(&self) -> Vec<String> {
        let all = self.events_after(Timestamp::from_micros(0)).await;
        let seeded = SEEDED_EVENTS.len();
        assert_eq!(all[..seeded].iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), SEEDED_EVENTS);
        all[seeded..].iter().map(|event| event.kind.to_string()).collect()
    }
}

/// Reads a response and checks it against the OpenAPI document.
async fn read(method: &Method, path: &str, response: http::Response<ResponseBody>) -> TestResponse {
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let response = TestResponse { status: parts.status.as_u16(), headers: parts.headers, body };
    conform::check(method, path, &response);
    response
}

/// The kinds of the events that the seed writes.
const SEEDED_EVENTS: [&str; 7] = [
    "contact.created",
    "booking.created",
    "quote.created",
    "job.created",
    "invoice.created",
    "contact.created",
    "contact.deleted",
];

/// A request under construction. It carries the tenant's write key unless another key is set.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query as in the request line.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) peer: IpAddr,
    key: Option<String>,
    signer: Option<Key>,
    anonymous: bool,
}

impl Call {
    /// Creates a call of a path below `/api/v1`.
    pub(crate) fn new(method: Method, path: &str) -> Self {
        Self::absolute(method, &format!("/api/v1{path}"))
    }

    /// Creates a call of an absolute path.
    pub(crate) fn absolute(method: Method, target: &str) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::HOST, HeaderValue::from_static("api.example.com"));
        Self {
            method,
            target: target.to_owned(),
            headers,
            body: Bytes::new(),
            peer: Ipv4Addr::new(192, 0, 2, 1).into(),
            key: None,
            signer: None,
            anonymous: false,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn post(path: &str, body: Value) -> Self {
        Self::new(Method::POST, path).json(&body)
    }

    pub(crate) fn patch(path: &str, body: Value) -> Self {
        Self::new(Method::PATCH, path).json(&body)
    }

    pub(crate) fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.raw(body.to_string())
    }

    /// Sets the body to these bytes, with the media type of JSON.
    pub(crate) fn raw(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/json")
    }

    /// Sets the body to a form.
    pub(crate) fn form(mut self, fields: String) -> Self {
        self.body = fields.into();
        self.anonymous().header("content-type", "application/x-www-form-urlencoded")
    }

    /// Sets a header and replaces an earlier value.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        self
    }

    /// Adds a header and keeps earlier values.
    pub(crate) fn and_header(mut self, name: &str, value: &str) -> Self {
        self.headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    pub(crate) fn key(mut self, key: &Key) -> Self {
        self.key = Some(key.text.clone());
        self
    }

    /// Sends the call with a key that signs, and with a valid signature.
    pub(crate) fn signed(self, key: &Key) -> Self {
        Self { signer: Some(key.clone()), ..self }.key(key)
    }

    pub(crate) fn anonymous(self) -> Self {
        Self { anonymous: true, ..self }
    }

    pub(crate) fn at_peer(self, peer: &str) -> Self {
        Self { peer: peer.parse().unwrap(), ..self }
    }

    /// Signs the call as it is now, at `at` in Unix seconds.
    pub(crate) fn sign_at(self, key: &Key, at: i64) -> Self {
        self.sign_as_of(key, &at.to_string())
    }

    /// Signs the request with this text as its timestamp.
    pub(crate) fn sign_as_of(self, key: &Key, timestamp: &str) -> Self {
        let signature =
            SignedRequest { timestamp, method: self.method.as_str(), path_and_query: &self.target, body: &self.body }
                .sign(key.secret.as_ref().unwrap());
        self.key(key).header("x-svc-timestamp", timestamp).header("x-svc-signature", &signature)
    }

    fn into_request(mut self, server: &TestServer) -> Request<Full<Bytes>> {
        if let Some(key) = self.signer.take() {
            let now = server.store.env().now().as_seconds();
            self = self.sign_at(&key, now);
        }
        if !self.anonymous && !self.headers.contains_key("authorization") {
            let key = self.key.clone().unwrap_or_else(|| server.key("write").text.clone());
            self = self.header("authorization", &format!("Bearer {key}"));
        }
        let mut request = Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target.parse().unwrap();
        *request.headers_mut() = self.headers;
        request
    }
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestResponse {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Returns the record inside the envelope `data`.
    pub(crate) fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn id(&self) -> String {
        self.data()["id"].as_str().unwrap_or_else(|| panic!("no id in {}", self.text())).to_owned()
    }

    /// Returns the value of a header, which must not be repeated.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next().map(|value| value.to_str().unwrap());
        assert!(values.next().is_none(), "{name} is repeated");
        first
    }

    pub(crate) fn etag(&self) -> &str {
        self.header("etag").unwrap()
    }

    /// Returns the status, the headers except those that differ between equal requests, and the body.
    pub(crate) fn comparable(&self) -> (u16, Vec<(String, String)>, Bytes) {
        let is_volatile = |name: &str| name == "x-request-id" || name == "date" || name.contains("ratelimit");
        let mut headers: Vec<(String, String)> = self
            .headers
            .iter()
            .filter(|(name, _)| !is_volatile(name.as_str()))
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        headers.sort();
        (self.status, headers, self.body.clone())
    }
}

/// Awaits a future that must complete soon; panics after 20 seconds instead of hanging.
pub(crate) async fn guarded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.unwrap_or_else(|_| panic!("no result within 20 s"))
}

/// Returns the operations of the contract.
pub(crate) fn operations() -> Vec<&'static dyn AnyOperation> {
    public()
}

/// Returns a body that creates a record in this collection.
pub(crate) fn sample(server: &TestServer, collection: &str, number: usize) -> Value {
    let contact = server.id("contact_id");
    match collection {
        "contacts" => serde_json::json!({ "email": format!("person{number}@example.com"), "first_name": "Grace" }),
        "bookings" => serde_json::json!({
            "contact_id": contact, "service_name": "Blocked drain", "start_time": "2026-03-21T09:00:00Z",
        }),
        "quotes" => serde_json::json!({ "contact_id": contact, "total": 99.95 }),
        "jobs" => serde_json::json!({ "title": format!("Job {number}"), "contact_id": contact }),
        "webhooks" => serde_json::json!({ "url": "https://hooks.example.com/more", "events": ["contact.created"] }),
        other => panic!("nothing is created in {other}"),
    }
}

/// Creates bookings of the largest size.
pub(crate) async fn create_large_bookings(server: &TestServer, count: usize) {
    let mut booking = sample(server, "bookings", 0);
    // Control characters take most room in JSON.
    booking["notes"] = "\u{1}".repeat(4096).into();
    booking["service_name"] = "\u{10ffff}".repeat(255).into();
    for _ in 0..count {
        server.expect(201, Call::post("/bookings", booking.clone())).await;
    }
}

/// Returns a body that changes a record of this collection.
pub(crate) fn change(collection: &str) -> Value {
    match collection {
        "contacts" => serde_json::json!({ "city": "Perth" }),
        "bookings" => serde_json::json!({ "notes": "Ring twice." }),
        "quotes" => serde_json::json!({ "total": 120 }),
        "jobs" => serde_json::json!({ "priority": "high" }),
        "webhooks" => serde_json::json!({ "description": "Ledger" }),
        other => panic!("nothing is changed in {other}"),
    }
}

/// Returns the placeholder of a collection's id: `contact_id` for `contacts`.
pub(crate) fn id_name(collection: &str) -> String {
    format!("{}_id", collection.trim_end_matches('s'))
}
