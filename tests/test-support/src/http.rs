//! An HTTP client with one pool of keep-alive connections, which all test clients share.

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

/// The timeout of a request, far beyond the server's own. The outcome of a request that times out is unknown.
const PATIENCE: Duration = Duration::from_secs(30);

/// An HTTP client for a server whose address may change.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: Client<HttpConnector, Full<Bytes>>,
}

/// A request.
#[derive(Clone, Debug)]
pub struct TestRequest<'a> {
    /// The method.
    pub method: Method,
    /// The path below `/api/v1`.
    pub path: &'a str,
    /// The text of the API key.
    pub key: &'a str,
    /// The Idempotency-Key, if there is one.
    pub idempotency_key: Option<&'a str>,
    /// The JSON body, if there is one.
    pub body: Option<&'a Value>,
    /// Further headers.
    pub headers: &'a [(&'a str, &'a str)],
}

impl<'a> TestRequest<'a> {
    /// Returns a GET request.
    pub fn get(path: &'a str, key: &'a str) -> Self {
        Self { method: Method::GET, path, key, idempotency_key: None, body: None, headers: &[] }
    }

    /// Returns a POST request.
    pub fn post(path: &'a str, key: &'a str, body: &'a Value) -> Self {
        Self { method: Method::POST, body: Some(body), ..Self::get(path, key) }
    }
}

/// A complete response.
#[derive(Clone, Debug)]
pub struct TestResponse {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// Whether this is the stored response of an earlier request with the same Idempotency-Key.
    pub replayed: bool,
    /// The JSON body.
    pub body: Value,
}

impl Default for HttpClient {
    fn default() -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http() }
    }
}

impl HttpClient {
    /// Sends a GET request without a key and returns the status.
    pub async fn probe(&self, server: SocketAddr, path: &str) -> Result<StatusCode> {
        let request = Request::get(format!("http://{server}{path}")).body(Full::default())?;
        Ok(tokio::time::timeout(PATIENCE, self.client.request(request)).await??.status())
    }

    /// Sends a request once. If there is no response, it is unknown whether the request was carried out.
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
