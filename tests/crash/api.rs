//! The client side of HTTP: one pool of kept-alive connections for all clients.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::Result;

/// Far beyond what the server takes. What stays unanswered for so long counts as unknown.
const PATIENCE: Duration = Duration::from_secs(30);

/// Speaks to the server, wherever that listens at the moment.
#[derive(Clone)]
pub(crate) struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
}

/// A request.
pub(crate) struct Ask<'a> {
    pub(crate) method: Method,
    /// Below `/api/v1`.
    pub(crate) path: &'a str,
    /// The text of the API key.
    pub(crate) key: &'a str,
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) body: Option<&'a Value>,
}

/// An answer that arrived whole.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// Whether it is that to an earlier request with the same Idempotency-Key.
    pub(crate) replayed: bool,
    pub(crate) body: Value,
}

impl Http {
    pub(crate) fn new() -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// Sends a request once. Without an answer nobody knows whether it was carried out.
    pub(crate) async fn send(&self, server: SocketAddr, ask: &Ask<'_>) -> Result<Reply> {
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(format!("http://{server}/api/v1{}", ask.path))
            .header("authorization", format!("Bearer {}", ask.key));
        if let Some(key) = ask.idempotency_key {
            request = request.header("idempotency-key", key);
        }
        let body = match ask.body {
            Some(body) => {
                request = request.header("content-type", "application/json");
                Bytes::from(body.to_string())
            }
            None => Bytes::new(),
        };
        let request = request.body(Full::new(body))?;
        tokio::time::timeout(PATIENCE, async {
            let (parts, body) = self.client.request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            let replayed = parts.headers.contains_key("idempotent-replayed");
            Ok(Reply { status: parts.status, replayed, body: serde_json::from_slice(&body)? })
        })
        .await?
    }
}
