//! The baseline of the server: hyper with the settings of svc's server, which reads each request and returns a fixed
//! response.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, DATE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::{Deserialize, Serialize};
use tokio::net::{TcpListener, TcpStream};

use crate::child;
use crate::error::Result;

/// The fixed response, sent as one line of JSON on stdin.
#[derive(Deserialize, Serialize)]
pub(crate) struct FixedResponse {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// The parts of the response. They are cheap to clone except for the headers, which every server builds for each
/// response.
#[derive(Clone)]
struct PreparedResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Serves until stdin is closed.
pub(crate) fn serve() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let response: FixedResponse = serde_json::from_str(&line)?;
    let prepared = prepare(response)?;
    child::runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        child::print_address(listener.local_addr()?)?;
        tokio::select! {
            failed = accept(&listener, &prepared) => failed,
            () = child::stdin_closed() => Ok(()),
        }
    })
}

fn prepare(response: FixedResponse) -> Result<PreparedResponse> {
    let mut headers = HeaderMap::new();
    for (name, value) in response.headers {
        let name: HeaderName = name.parse()?;
        // hyper writes the date itself.
        if name != DATE {
            headers.append(name, HeaderValue::try_from(value)?);
        }
    }
    let body = Bytes::from(response.body);
    headers.insert(CONTENT_LENGTH, body.len().into());
    Ok(PreparedResponse { status: StatusCode::from_u16(response.status)?, headers, body })
}

async fn accept(listener: &TcpListener, prepared: &PreparedResponse) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(connection(stream, prepared.clone()));
    }
}

async fn connection(stream: TcpStream, prepared: PreparedResponse) {
    let service = service_fn(move |request: Request<Incoming>| {
        let PreparedResponse { status, headers, body } = prepared.clone();
        async move {
            // The body is read completely before the response is sent.
            let _ = request.into_body().collect().await;
            let mut response = Response::new(Full::new(body));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            Ok::<_, Infallible>(response)
        }
    });
    // A client that disconnects is no error.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(10))
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
