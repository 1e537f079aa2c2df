//! A world per test: a database of its own, a clock that stands still, randomness that repeats itself, and
//! the service over them, so that ids, times and bodies are exact.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::Value;
use svc_core::accounts::signing::SignedRequest;
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::store::Store;
use svc_core::values::Timestamp;
use svc_core::webhooks::events::Event;
use svc_server::api::routes::{self, Operation};
use svc_server::deliver::resolver::Resolver;
use svc_server::{Api, Settings};

use crate::conform;
use crate::database::Database;
use crate::seed::{self, Key, Seed};

/// A database, the service over it, and what a test needs to know of both.
pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: ManualClock,
    pub(crate) seed: Seed,
    /// Goes last.
    pub(crate) database: Database,
}

/// Settings without rate limits and without look-ups that leave the machine.
pub(crate) fn settings() -> Settings {
    Settings { limit_rates: false, resolver: Arc::new(StubResolver), ..Settings::default() }
}

/// Settings with rate limits.
pub(crate) fn limited() -> Settings {
    Settings { limit_rates: true, ..settings() }
}

/// Knows names under `example.com` and under `private.example`, and no other.
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

impl World {
    pub(crate) fn new() -> Self {
        Self::with(settings(), |store| store)
    }

    pub(crate) fn limited() -> Self {
        Self::with(limited(), |store| store)
    }

    /// With settings, and something around the store.
    pub(crate) fn with(settings: Settings, wrap: impl FnOnce(Arc<dyn Store>) -> Arc<dyn Store>) -> Self {
        let (database, seed) = seed::copy();
        let clock = ManualClock::at(seed::start());
        let store = database.open(Env::new(clock.clone(), SeededEntropy::new(2)));
        let api = Api::new(wrap(Arc::clone(&store)), settings);
        Self { api, store, clock, seed, database }
    }

    /// A second handle on the same database, as another process has.
    pub(crate) fn second_store(&self) -> Arc<dyn Store> {
        self.database.open(Env::new(self.clock.clone(), SeededEntropy::new(3)))
    }

    pub(crate) fn key(&self, role: &str) -> &Key {
        self.seed.keys.get(role).unwrap_or_else(|| panic!("no key {role}"))
    }

    /// The id behind a placeholder.
    pub(crate) fn id(&self, name: &str) -> String {
        self.seed.ids.get(name).unwrap_or_else(|| panic!("no id {name}")).to_string()
    }

    /// Sends a request and checks the answer against the document.
    pub(crate) async fn send(&self, call: Call) -> Reply {
        self.send_to(&self.api, call).await
    }

    /// The same, to another service on this database.
    pub(crate) async fn send_to(&self, api: &Api, call: Call) -> Reply {
        let (method, path) = (call.method.clone(), call.target.clone());
        let peer = call.peer;
        let response = guarded(api.call(call.into_request(self), peer)).await;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let reply = Reply { status: parts.status.as_u16(), headers: parts.headers, body };
        conform::check(&method, &path, &reply);
        reply
    }

    /// Sends a request that must be answered with `status`.
    pub(crate) async fn expect(&self, status: u16, call: Call) -> Reply {
        let shown = format!("{} {}", call.method, call.target);
        let reply = self.send(call).await;
        assert_eq!(reply.status, status, "{shown}: {}", reply.text());
        reply
    }

    /// The events of the tenant after an instant.
    pub(crate) async fn events_after(&self, after: Timestamp) -> Vec<Event> {
        let tenant = self.seed.tenant;
        self.store
            .read("events", move |tx| Box::pin(async move { Ok(tx.events_after(tenant, after, 10_000).await?) }))
            .await
            .unwrap()
    }

    /// The kinds of all events of the tenant since the seed.
    pub(crate) async fn new_events(&self) -> Vec<&'static str> {
        let all = self.events_after(Timestamp::from_micros(0)).await;
        let seeded = SEEDED_EVENTS.len();
        assert_eq!(all[..seeded].iter().map(|event| event.kind.as_str()).collect::<Vec<_>>(), SEEDED_EVENTS);
        all[seeded..].iter().map(|event| event.kind.as_str()).collect()
    }
}

const SEEDED_EVENTS: [&str; 7] = [
    "contact.created",
    "booking.created",
    "quote.created",
    "job.created",
    "invoice.created",
    "contact.created",
    "contact.deleted",
];

/// A request in the making, with the tenant's write key unless told otherwise.
#[derive(Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// Path and query as on the request line.
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) peer: IpAddr,
    key: Option<String>,
    signer: Option<Key>,
    anonymous: bool,
}

impl Call {
    /// A call of a path below `/api/v1`.
    pub(crate) fn new(method: Method, path: &str) -> Self {
        Self::absolute(method, &format!("/api/v1{path}"))
    }

    /// A call of a path as it is.
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

    /// A body as it is, as JSON.
    pub(crate) fn raw(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/json")
    }

    /// Sets a header in place of an earlier one.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        self
    }

    /// Adds a header beside an earlier one.
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

    /// With a key that signs, and a signature.
    pub(crate) fn signed(self, key: &Key) -> Self {
        Self { signer: Some(key.clone()), ..self }.key(key)
    }

    pub(crate) fn anonymous(self) -> Self {
        Self { anonymous: true, ..self }
    }

    pub(crate) fn at_peer(self, peer: &str) -> Self {
        Self { peer: peer.parse().unwrap(), ..self }
    }

    /// Signs what the call is now, at `at` in Unix seconds.
    pub(crate) fn sign_at(self, key: &Key, at: i64) -> Self {
        let timestamp = at.to_string();
        let signature = SignedRequest {
            timestamp: &timestamp,
            method: self.method.as_str(),
            path_and_query: &self.target,
            body: &self.body,
        }
        .sign(key.secret.as_ref().unwrap());
        self.key(key).header("x-svc-timestamp", &timestamp).header("x-svc-signature", &signature)
    }

    fn into_request(mut self, world: &World) -> Request<Full<Bytes>> {
        if let Some(key) = self.signer.take() {
            let now = world.store.env().now().as_seconds();
            self = self.sign_at(&key, now);
        }
        if !self.anonymous && !self.headers.contains_key("authorization") {
            let key = self.key.clone().unwrap_or_else(|| world.key("write").text.clone());
            self = self.header("authorization", &format!("Bearer {key}"));
        }
        let mut request = Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target.parse().unwrap();
        *request.headers_mut() = self.headers;
        request
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Reply {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// What a single record is wrapped in.
    pub(crate) fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    pub(crate) fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn id(&self) -> String {
        self.data()["id"].as_str().unwrap_or_else(|| panic!("no id in {}", self.text())).to_owned()
    }

    /// The one value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next().map(|value| value.to_str().unwrap());
        assert!(values.next().is_none(), "{name} is repeated");
        first
    }

    pub(crate) fn etag(&self) -> &str {
        self.header("etag").unwrap()
    }

    /// Status, headers but those that tell requests apart, and body.
    pub(crate) fn comparable(&self) -> (u16, Vec<(String, String)>, Bytes) {
        let differs = |name: &str| name == "x-request-id" || name == "date" || name.contains("ratelimit");
        let mut headers: Vec<(String, String)> = self
            .headers
            .iter()
            .filter(|(name, _)| !differs(name.as_str()))
            .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
            .collect();
        headers.sort();
        (self.status, headers, self.body.clone())
    }
}

/// What should come at once, or the test fails instead of hanging.
pub(crate) async fn guarded<T>(coming: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), coming).await.unwrap_or_else(|_| panic!("nothing came for 20 s"))
}

/// The operations of the route table.
pub(crate) fn operations() -> Vec<Operation> {
    routes::operations()
}

/// A body that creates a record of this collection.
pub(crate) fn sample(world: &World, collection: &str, number: usize) -> Value {
    let contact = world.id("contact_id");
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

/// A body that changes a record of this collection.
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

/// The placeholder of a collection: `contact_id` of `contacts`.
pub(crate) fn id_name(collection: &str) -> String {
    format!("{}_id", collection.trim_end_matches('s'))
}
