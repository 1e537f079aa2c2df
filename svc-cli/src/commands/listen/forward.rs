//! Forwards a request to an `http://` server and returns its response.

use std::time::Duration;

use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Method, Request, Response, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::MAX_BODY;

/// The timeout of the whole exchange. It is longer than the sender's, so that the sender sees a slow server as slow.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Headers that are not forwarded: hop-by-hop headers (RFC 9110 §7.6.1) and those that hyper sets.
const NOT_FORWARDED: [HeaderName; 9] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
    CONTENT_LENGTH,
    HOST,
];

/// Posts a body with its headers to `url` and returns the response.
///
/// # Errors
/// The reason why there is no complete response.
pub(super) async fn send(url: &Uri, headers: &HeaderMap, body: Bytes) -> Result<Response<Full<Bytes>>, String> {
    let exchanged = tokio::time::timeout(TIMEOUT, exchange(url, headers, body)).await;
    exchanged.unwrap_or_else(|_| Err(format!("no response within {} s", TIMEOUT.as_secs())))
}

async fn exchange(url: &Uri, headers: &HeaderMap, body: Bytes) -> Result<Response<Full<Bytes>>, String> {
    let host = url.host().unwrap_or_default();
    let address = (host.trim_matches(['[', ']']), url.port_u16().unwrap_or(80));
    let stream = TcpStream::connect(address).await.map_err(|error| format!("no connection: {error}"))?;
    let broken = |error: hyper::Error| format!("no response: {error}");
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(connection);

    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.path_and_query().map_or_else(Uri::default, |path| Uri::from(path.clone()));
    *request.headers_mut() = end_to_end(headers);
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let host = HeaderValue::from_str(authority).map_err(|error| format!("invalid request: {error}"))?;
    request.headers_mut().insert(HOST, host);

    let (mut head, body) = sender.send_request(request).await.map_err(broken)?.into_parts();
    if head.status.is_informational() {
        return Err(format!("no final response, only {}", head.status));
    }
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(|error| format!("incomplete response: {error}"))?;
    head.headers = end_to_end(&head.headers);
    Ok(Response::from_parts(head, Full::new(body.to_bytes())))
}

/// Returns the headers without those of the connection.
fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let mut kept = headers.clone();
    for name in NOT_FORWARDED {
        kept.remove(name);
    }
    kept
}
