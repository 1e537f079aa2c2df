//! An API in this process, called without a socket: requests and their responses.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Deref;
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
use svc_server::outbound::resolver::Resolver;
use svc_server::{Api, ResponseBody, Settings};

use crate::fixture::{Fixture, Key};

/// An API over the store of an account.
pub struct TestServer {
    pub fixture: Fixture,
    /// The API, as [`svc_server::Builder`] or [`Api::with_surfaces`] makes it.
    pub api: Api,
    /// The text of the key of requests that have no other. Without one they have none.
    pub key: Option<String>,
    /// Checks each response to a request that is sent as a [`Call`].
    pub check: fn(&Method, &str, &Response),
}

impl Deref for TestServer {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

/// Returns settings without rate limits and without DNS look-ups.
pub fn settings() -> Settings {
    Settings { limit_rates: false, resolver: Arc::new(StubResolver), ..Settings::default() }
}

/// A resolver that knows names under `example.com` and under `private.example` only.
pub struct StubResolver;

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
    /// Serves an account without a key.
    pub fn new(fixture: Fixture, api: Api) -> Self {
        Self { fixture, api, key: None, check: |_, _, _| {} }
    }

    /// Serves an account, whose requests have a key that reads and writes.
    pub async fn with_key(fixture: Fixture, api: Api) -> Self {
        let key = Some(fixture.key().await.text);
        Self { key, ..Self::new(fixture, api) }
    }

    pub async fn send(&self, call: Call) -> Response {
        self.send_to(&self.api, call).await
    }

    /// Sends a request to another API on the same store.
    pub async fn send_to(&self, api: &Api, call: Call) -> Response {
        let (method, target) = (call.method.clone(), call.target.clone());
        let response = call.complete(self).send(api).await;
        (self.check)(&method, &target, &response);
        response
    }

    /// Sends a request whose body arrives only after `meanwhile` has completed, and its headers before that.
    pub async fn send_slowly(&self, call: Call, meanwhile: impl Future<Output = ()> + Send) -> Response {
        let (method, target, peer) = (call.method.clone(), call.target.clone(), call.peer);
        let (parts, body) = call.complete(self).into_request().into_parts();
        let body = stream::once(async move {
            meanwhile.await;
            Ok::<_, Infallible>(Frame::data(body.collect().await.unwrap().to_bytes()))
        });
        let request = Request::from_parts(parts, StreamBody::new(body));
        let response = Response::read(guarded(self.api.call(request, peer)).await).await;
        (self.check)(&method, &target, &response);
        response
    }

    /// Sends a request whose response must have this status.
    pub async fn expect(&self, status: u16, call: Call) -> Response {
        let shown = format!("{} {}", call.method, call.target);
        let response = self.send(call).await;
        assert_eq!(response.status, status, "{shown}: {}", response.text);
        response
    }
}

/// A request under construction. It carries the key of its server unless another is set.
#[derive(Clone)]
pub struct Call {
    pub method: Method,
    /// Path and query as in the request line.
    pub target: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub peer: IpAddr,
    key: Option<String>,
    signer: Option<Key>,
    anonymous: bool,
}

impl Call {
    /// Creates a call of a path below `/api/v1`.
    pub fn new(method: Method, path: &str) -> Self {
        Self::absolute(method, &format!("/api/v1{path}"))
    }

    pub fn absolute(method: Method, target: &str) -> Self {
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

    pub fn get(path: &str) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn post(path: &str, body: Value) -> Self {
        Self::new(Method::POST, path).json(&body)
    }

    pub fn patch(path: &str, body: Value) -> Self {
        Self::new(Method::PATCH, path).json(&body)
    }

    pub fn delete(path: &str) -> Self {
        Self::new(Method::DELETE, path)
    }

    pub fn json(self, body: &Value) -> Self {
        self.raw(body.to_string())
    }

    /// Sets the body to these bytes, with the media type of JSON.
    pub fn raw(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", "application/json")
    }

    /// Sets the body to a form, and sends no key.
    pub fn form(mut self, fields: String) -> Self {
        self.body = fields.into();
        self.anonymous().header("content-type", "application/x-www-form-urlencoded")
    }

    /// Sets a header and replaces an earlier value.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.insert(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        self
    }

    pub fn headers(self, headers: &[(&str, &str)]) -> Self {
        headers.iter().fold(self, |call, (name, value)| call.header(name, value))
    }

    /// Adds a header and keeps earlier values.
    pub fn and_header(mut self, name: &str, value: &str) -> Self {
        self.headers.append(HeaderName::try_from(name).unwrap(), HeaderValue::try_from(value).unwrap());
        self
    }

    pub fn without(mut self, name: &str) -> Self {
        self.headers.remove(name);
        self
    }

    pub fn key(mut self, key: &Key) -> Self {
        self.key = Some(key.text.clone());
        self
    }

    /// Sends the call with a key that signs, and with a valid signature.
    pub fn signed(self, key: &Key) -> Self {
        Self { signer: Some(key.clone()), ..self }.key(key)
    }

    pub fn anonymous(self) -> Self {
        Self { anonymous: true, ..self }
    }

    pub fn at_peer(self, peer: &str) -> Self {
        Self { peer: peer.parse().unwrap(), ..self }
    }

    /// Signs the call as it is now, at `at` in Unix seconds.
    pub fn sign_at(self, key: &Key, at: i64) -> Self {
        self.sign_as_of(key, &at.to_string())
    }

    /// Signs the request with this text as its timestamp.
    pub fn sign_as_of(self, key: &Key, timestamp: &str) -> Self {
        let signature =
            SignedRequest { timestamp, method: self.method.as_str(), path_and_query: &self.target, body: &self.body }
                .sign(key.secret.as_ref().unwrap());
        self.key(key).header("x-svc-timestamp", timestamp).header("x-svc-signature", &signature)
    }

    /// Sends the call as it is.
    pub async fn send(self, api: &Api) -> Response {
        let peer = self.peer;
        Response::read(guarded(api.call(self.into_request(), peer)).await).await
    }

    /// Adds the signature and the key.
    fn complete(mut self, server: &TestServer) -> Self {
        if let Some(key) = self.signer.take() {
            let now = server.store().env().now().as_seconds();
            self = self.sign_at(&key, now);
        }
        if !self.anonymous
            && !self.headers.contains_key("authorization")
            && let Some(key) = self.key.clone().or_else(|| server.key.clone())
        {
            self = self.header("authorization", &format!("Bearer {key}"));
        }
        self
    }

    fn into_request(self) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.body));
        *request.method_mut() = self.method;
        *request.uri_mut() = self.target.parse().unwrap();
        *request.headers_mut() = self.headers;
        request
    }
}

/// A response that was read to its end.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The body as text, which is empty if it is none.
    pub text: String,
}

impl Response {
    /// Returns a response with this status, these headers and this body.
    pub fn new(status: u16, headers: HeaderMap, body: Bytes) -> Self {
        let text = String::from_utf8(body.to_vec()).unwrap_or_default();
        Self { status, headers, body, text }
    }

    /// Reads a response to its end.
    pub async fn read(response: http::Response<ResponseBody>) -> Self {
        let (parts, body) = response.into_parts();
        Self::new(parts.status.as_u16(), parts.headers, body.collect().await.unwrap().to_bytes())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Returns the record inside the envelope `data`.
    pub fn data(&self) -> Value {
        self.json()["data"].clone()
    }

    /// Returns the code of an error, or nothing.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub fn id(&self) -> String {
        self.data()["id"].as_str().unwrap_or_else(|| panic!("no id in {}", self.text)).to_owned()
    }

    /// Returns the value of a header, which must not be repeated.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next().map(|value| value.to_str().unwrap());
        assert!(values.next().is_none(), "{name} is repeated");
        first
    }

    pub fn etag(&self) -> &str {
        self.header("etag").unwrap()
    }

    /// Returns the status, the headers except those that differ between equal requests, and the body.
    pub fn comparable(&self) -> (u16, Vec<(String, String)>, Bytes) {
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
pub async fn guarded<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), future).await.unwrap_or_else(|_| panic!("no result within 20 s"))
}
