//! The client side of HTTP: one pool of kept-alive connections for all clients.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::Result;

/// Far beyond what the server takes. What stays unanswered for so long counts as unknown.
const PATIENCE: Duration = Duration::from_secs(30);

/// Speaks to the server, wherever that listens at the moment.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: Client<HttpConnector, Full<Bytes>>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct TestRequest<'a> {
    /// Its method.
    pub method: Method,
    /// Below `/api/v1`.
    pub path: &'a str,
    /// The text of the API key.
    pub key: &'a str,
    /// What it is done once under.
    pub idempotency_key: Option<&'a str>,
    /// JSON, or nothing.
    pub body: Option<&'a Value>,
    /// Others than those that follow from the rest.
    pub headers: &'a [(&'a str, &'a str)],
}

impl<'a> TestRequest<'a> {
    /// A GET.
    pub fn get(path: &'a str, key: &'a str) -> Self {
        Self { method: Method::GET, path, key, idempotency_key: None, body: None, headers: &[] }
    }

    /// A POST.
    pub fn post(path: &'a str, key: &'a str, body: &'a Value) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path, key) }
    }
}

/// An answer that arrived whole.
#[derive(Clone, Debug)]
pub struct TestResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Whether it is that to an earlier request with the same Idempotency-Key.
    pub replayed: bool,
    /// Its JSON.
    pub body: Value,
}

impl Default for HttpClient {
    fn default() -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http() }
    }
}

impl HttpClient {
    /// The status of a GET without a key.
    ///
    /// # Errors
    /// No answer.
    pub async fn probe(&self, server: SocketAddr, path: &str) -> Result<StatusCode> {
        let request = Request::get(format!("http://{server}{path}")).body(Full::default())?;
        Ok(tokio::time::timeout(PATIENCE, self.client.request(request)).await??.status())
    }

    /// Sends a request once. Without an answer nobody knows whether it was carried out.
    ///
    /// # Errors
    /// No answer, or none in JSON.
    pub async fn send(&self, server: SocketAddr, request: &TestRequest<'_>) -> Result<TestResponse> {
        let mut builder = Request::builder()
            .method(request.method.clone())
            .uri(format!("http://{server}/api/v1{}", request.path))
            .header("authorization", format!("Bearer {}", request.key));
        if let Some(key) = request.idempotency_key {
            builder = builder.header("idempotency-key", key);
        }
        for (name, value) in request.headers {
            builder = builder.header(*name, *value);
        }
        let body = match request.body {
            Some(body) => {
                builder = builder.header("content-type", "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let request = builder.body(Full::new(body))?;
        tokio::time::timeout(PATIENCE, async {
            let (parts, body) = self.client.request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            let replayed = parts.headers.contains_key("idempotent-replayed");
            let body = serde_json::from_slice(&body)?;
            Ok(TestResponse { status: parts.status, headers: parts.headers, replayed, body })
        })
        .await?
    }
}
