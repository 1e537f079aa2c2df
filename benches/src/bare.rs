//! The yardstick: hyper with the settings of svc's server, which reads the request and returns one answer.

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

use crate::Result;
use crate::child;

/// What is returned to every request, as one line of JSON on stdin.
#[derive(Deserialize, Serialize)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Its parts, ready to be sent. Cheap to clone, but for the table of headers, which every server makes anew.
#[derive(Clone)]
struct Prepared {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Serves until stdin ends.
pub(crate) fn serve() -> Result<()> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let answer: Answer = serde_json::from_str(&line)?;
    let prepared = prepare(answer)?;
    child::runtime()?.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        child::announce(listener.local_addr()?)?;
        tokio::select! {
            failed = accept(&listener, &prepared) => failed,
            () = child::told_to_stop() => Ok(()),
        }
    })
}

fn prepare(answer: Answer) -> Result<Prepared> {
    let mut headers = HeaderMap::new();
    for (name, value) in answer.headers {
        let name: HeaderName = name.parse()?;
        // hyper writes the date by itself.
        if name != DATE {
            headers.append(name, HeaderValue::try_from(value)?);
        }
    }
    let body = Bytes::from(answer.body);
    headers.insert(CONTENT_LENGTH, body.len().into());
    Ok(Prepared { status: StatusCode::from_u16(answer.status)?, headers, body })
}

async fn accept(listener: &TcpListener, prepared: &Prepared) -> Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(connection(stream, prepared.clone()));
    }
}

async fn connection(stream: TcpStream, prepared: Prepared) {
    let service = service_fn(move |request: Request<Incoming>| {
        let Prepared { status, headers, body } = prepared.clone();
        async move {
            // A body that was announced arrives whole before the answer.
            let _ = request.into_body().collect().await;
            let mut response = Response::new(Full::new(body));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            Ok::<_, Infallible>(response)
        }
    });
    // A client that goes away is no failure.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(10))
        .max_buf_size(64 * 1024)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}
