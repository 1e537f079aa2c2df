//! The baseline of deliveries: the HTTP client of the sender, which posts one request repeatedly over keep-alive
//! connections, without database, signature and log.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::{Deserialize, Serialize};

use crate::child;
use crate::error::Result;

/// The request to repeat, sent as one line of JSON on stdin.
#[derive(Deserialize, Serialize)]
pub(crate) struct RepeatedPost {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// Concurrent requests.
    pub(crate) connections: u32,
}

impl RepeatedPost {
    /// Creates it from a request as it was received, to be posted to `url`.
    pub(crate) fn from_received(request: &[u8], url: String, connections: u32) -> Result<Self> {
        let (head, body) = std::str::from_utf8(request)?.split_once("\r\n\r\n").ok_or("a request without a head")?;
        let headers = head.lines().filter_map(|line| line.split_once(": "));
        // The client writes these two headers itself.
        let headers = headers.filter(|(name, _)| !["host", "content-length"].contains(name));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(Self { url, headers, body: body.to_owned(), connections })
    }
}

/// Posts until stdin is closed.
pub(crate) fn post() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let post: RepeatedPost = serde_json::from_str(&line)?;
    let uri: Uri = post.url.parse()?;
    let mut headers = HeaderMap::new();
    for (name, value) in &post.headers {
        headers.append(name.parse::<HeaderName>()?, HeaderValue::try_from(value)?);
    }
    let body = Bytes::from(post.body);
    child::runtime()?.block_on(async {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        for _ in 0..post.connections {
            tokio::spawn(repeat(client.clone(), uri.clone(), headers.clone(), body.clone()));
        }
        child::print_line("posting")?;
        child::stdin_closed().await;
        Ok(())
    })
}

async fn repeat(client: Client<HttpConnector, Full<Bytes>>, uri: Uri, headers: HeaderMap, body: Bytes) -> Result<()> {
    loop {
        let mut request = Request::post(uri.clone()).body(Full::new(body.clone()))?;
        *request.headers_mut() = headers.clone();
        let response = client.request(request).await?;
        response.into_body().collect().await?;
    }
}
