//! HTTP/2: HEAD and early responses as a client library sees them, and frame by frame the limits of a connection and its
//! timeouts.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::SendRequest;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use svc_server::Settings;
use svc_test_support::frames::{
    ACK, END_HEADERS, END_STREAM, ENHANCE_YOUR_CALM, Frame, INITIAL_WINDOW_SIZE, MAX_CONCURRENT_STREAMS, PREFACE,
    REFUSED_STREAM, cancel, field, frame, head, kind, request, settings as settings_of, window,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_rustls::client::TlsStream;

use crate::faults::Gate;
use crate::harness::{Call, Response, SeededServer, create_large_bookings, guarded, settings};
use crate::surface;
use crate::tls::TlsServer;

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(60);
const DOCUMENT: &str = "/api/v1/openapi.json";
const PING: &str = "/api/v1/ping";

/// A server and a client connection to it, with frames written by hand.
struct Http2Connection {
    server: TlsServer,
    stream: TlsStream<TcpStream>,
}

impl Http2Connection {
    async fn open(client_settings: &[(u16, u32)]) -> Self {
        Self::with(SeededServer::new(), client_settings, LONG, LONG).await
    }

    async fn with(
        server: SeededServer,
        client_settings: &[(u16, u32)],
        head_timeout: Duration,
        write_timeout: Duration,
    ) -> Self {
        let set = |server: svc_server::program::serve::Server| {
            server.with_head_timeout(head_timeout).with_keep_alive(head_timeout).with_write_timeout(write_timeout)
        };
        let (server, certificate) = TlsServer::with(server, set).await;
        let stream = server.connect(&certificate, b"h2").await.unwrap();
        let mut connection = Self { server, stream };
        connection.send(PREFACE).await;
        connection.send(&settings_of(client_settings)).await;
        connection
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    fn request(&self, stream: u32, method: &str, path: &str, flags: u8) -> Vec<u8> {
        request(stream, method, path, &self.server.inner.key("write").text, flags)
    }

    /// Returns the next frame that matters, and answers pings. Returns `None` at the end of the connection.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            let frame_read = guarded(Frame::read(&mut self.stream)).await.ok().flatten()?;
            match frame_read.kind {
                kind::PING if frame_read.flags & ACK == 0 => {
                    let _ = self.stream.write_all(&frame(kind::PING, ACK, 0, &frame_read.payload)).await;
                }
                kind::PING | kind::WINDOW_UPDATE => {}
                kind::SETTINGS if frame_read.flags & ACK != 0 => {}
                _ => return Some(frame_read),
            }
        }
    }

    /// Returns the next frame of a kind and skips the frames before it.
    async fn next_of(&mut self, wanted: u8) -> Frame {
        loop {
            let next = self.next().await.unwrap_or_else(|| panic!("the connection ended before a frame {wanted}"));
            if next.kind == wanted {
                return next;
            }
        }
    }

    /// Reads to the end of the connection and returns the error code of its GOAWAY frame.
    async fn goaway_code(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some(next) = self.next().await {
            if next.kind == kind::GOAWAY {
                code = next.number(4);
            }
        }
        code
    }
}

/// A server and a connection of hyper's HTTP/2 client to it, which refuses responses that HTTP/2 does not allow.
struct LibraryClient {
    server: TlsServer,
    sender: SendRequest<Full<Bytes>>,
}

impl LibraryClient {
    async fn open() -> Self {
        let (server, certificate) = TlsServer::with(SeededServer::new(), |server| server).await;
        let stream = TokioIo::new(server.connect(&certificate, b"h2").await.unwrap());
        let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
        tokio::spawn(connection);
        Self { server, sender }
    }

    async fn send(&mut self, method: Method, path: &str, body: Bytes) -> Response {
        let key = &self.server.inner.key("write").text;
        let request = Request::builder()
            .method(method)
            .uri(format!("https://localhost{path}"))
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json")
            .body(Full::new(body))
            .unwrap();
        let shown = format!("{} {path}", request.method());
        let response = guarded(self.sender.send_request(request)).await;
        let (parts, body) = response.unwrap_or_else(|error| panic!("{shown}: {error:?}")).into_parts();
        let body = guarded(body.collect()).await.unwrap_or_else(|error| panic!("{shown}: {error:?}")).to_bytes();
        Response::new(parts.status.as_u16(), parts.headers, body)
    }
}

#[tokio::test]
async fn a_head_response_has_the_headers_of_get_and_no_body() {
    let mut client = LibraryClient::open().await;
    let gets = surface::paths(&client.server.inner).into_iter().filter(|(_, methods)| methods.contains(&Method::GET));
    let mut paths: Vec<String> = gets.map(|(path, _)| path).collect();
    paths.extend(["/api/v1/nothing", "/api/v1/contacts?x=1"].map(str::to_owned));
    for path in paths {
        let get = client.send(Method::GET, &path, Bytes::new()).await;
        let head = client.send(Method::HEAD, &path, Bytes::new()).await;
        assert_eq!((head.status, head.body.len()), (get.status, 0), "{path}");
        let is_random = path.ends_with("/ping");
        assert!(is_random || head.comparable().1 == get.comparable().1, "{path}: {head:?} {get:?}");
        assert_eq!(head.header("content-length"), Some(get.body.len().to_string().as_str()), "{path}");
    }
}

#[tokio::test]
async fn a_response_before_the_body_was_read_arrives() {
    let mut client = LibraryClient::open().await;
    for length in [1024 * 1024 + 1, 3 * 1024 * 1024] {
        let response = client.send(Method::POST, "/api/v1/contacts", vec![b' '; length].into()).await;
        assert_eq!(response.status, 413, "{length}");
    }
    assert_eq!(client.send(Method::GET, PING, Bytes::new()).await.status, 200, "the connection stays open");
}

/// Several clients lose a response when their stream is reset while they are sending.
#[tokio::test]
async fn a_body_is_taken_after_its_response() {
    let mut connection = Http2Connection::open(&[]).await;
    connection.send(&request(1, "POST", "/api/v1/contacts", "not a key", 0)).await;
    // The windows are larger from then on.
    connection.send(&frame(kind::SETTINGS, ACK, 0, &[])).await;
    assert_eq!(connection.next_of(kind::HEADERS).await.stream, 1);
    while connection.next_of(kind::DATA).await.flags & END_STREAM == 0 {}
    let part = [b' '; 16_000];
    for _ in 0..12 {
        connection.send(&frame(kind::DATA, 0, 1, &part)).await;
    }
    connection.send(&frame(kind::DATA, END_STREAM, 1, b"")).await;
    connection.send(&connection.request(3, "GET", PING, END_STREAM)).await;
    let next = connection.next().await.unwrap();
    assert_eq!((next.kind, next.stream), (kind::HEADERS, 3), "the stream was not reset: {next:?}");
}

/// A body without an end is cut off, and so is the connection of a client that sends more than it may.
#[tokio::test]
async fn what_is_taken_after_a_response_is_bounded() {
    let mut connection = Http2Connection::open(&[]).await;
    connection.send(&request(1, "POST", "/api/v1/contacts", "not a key", 0)).await;
    connection.send(&frame(kind::SETTINGS, ACK, 0, &[])).await;
    let mut allowed = 65_535_usize;
    let mut sent = 0;
    let part = [b' '; 16_000];
    loop {
        while allowed >= part.len() {
            connection.send(&frame(kind::DATA, 0, 1, &part)).await;
            (allowed, sent) = (allowed - part.len(), sent + part.len());
        }
        let next = guarded(Frame::read(&mut connection.stream)).await.unwrap().unwrap();
        match next.kind {
            kind::WINDOW_UPDATE if next.stream == 0 => allowed += next.number(0).unwrap() as usize,
            kind::RST_STREAM => break assert_eq!((next.stream, next.number(0)), (1, Some(0)), "without an error"),
            _ => {}
        }
    }
    assert!((4 * 1024 * 1024..5 * 1024 * 1024).contains(&sent), "{sent}");
}

#[tokio::test]
async fn a_request_gets_a_response() {
    let mut connection = Http2Connection::open(&[]).await;
    let settings = connection.next_of(kind::SETTINGS).await.settings();
    assert!(settings.contains(&(MAX_CONCURRENT_STREAMS, 100)), "{settings:?}");
    connection.send(&connection.request(1, "GET", PING, END_STREAM)).await;
    assert!(connection.next_of(kind::HEADERS).await.has_status(200));
    connection.send(&connection.request(3, "GET", "/api/v1/nothing", END_STREAM)).await;
    assert!(connection.next_of(kind::HEADERS).await.has_status(404));
}

#[tokio::test]
async fn a_connection_has_at_most_100_concurrent_streams() {
    let mut connection = Http2Connection::open(&[]).await;
    // Their bodies are never sent, so the streams stay open.
    for number in 0..100 {
        connection.send(&connection.request(number * 2 + 1, "POST", "/api/v1/contacts", 0)).await;
    }
    connection.send(&connection.request(201, "POST", "/api/v1/contacts", 0)).await;
    let refused = connection.next_of(kind::RST_STREAM).await;
    assert_eq!((refused.stream, refused.number(0)), (201, Some(REFUSED_STREAM)));
    // When one stream ends, the next one is accepted.
    connection.send(&frame(kind::DATA, END_STREAM, 1, b"{}")).await;
    let response = connection.next_of(kind::HEADERS).await;
    assert!(response.stream == 1 && response.has_status(400));
    connection.send(&connection.request(203, "GET", PING, END_STREAM)).await;
    assert!(connection.next_of(kind::HEADERS).await.has_status(200));
}

#[tokio::test]
async fn a_flood_of_resets_ends_the_connection() {
    let mut connection = Http2Connection::open(&[]).await;
    let one = |connection: &Http2Connection, number: u32| {
        [connection.request(number * 2 + 1, "GET", PING, END_STREAM), cancel(number * 2 + 1)].concat()
    };
    // A client may cancel a few requests.
    let few: Vec<u8> = (0..20).flat_map(|number| one(&connection, number)).collect();
    connection.send(&few).await;
    connection.send(&connection.request(101, "GET", PING, END_STREAM)).await;
    let response = loop {
        let response = connection.next_of(kind::HEADERS).await;
        if response.stream == 101 {
            break response;
        }
    };
    assert!(response.has_status(200));
    let many: Vec<u8> = (100..1100).flat_map(|number| one(&connection, number)).collect();
    // The server may stop reading before all is written.
    let _ = connection.stream.write_all(&many).await;
    assert_eq!(connection.goaway_code().await, Some(ENHANCE_YOUR_CALM));
}

#[tokio::test]
async fn a_head_over_32_kib_ends_the_connection() {
    let key = SeededServer::new().key("write").text.clone();
    let long = field("x-long", &"x".repeat(120));
    // Below the limit of the connection the service responds; its own limit is 16 KiB.
    let mut connection = Http2Connection::open(&[]).await;
    connection.send(&frame(kind::HEADERS, END_STREAM, 1, &head("GET", PING, &key))).await;
    connection.send(&frame(kind::CONTINUATION, END_HEADERS, 1, &long.repeat(20))).await;
    assert!(connection.next_of(kind::HEADERS).await.has_status(200));
    // Above the limit the service is not called, and the server stops collecting the head.
    connection.send(&frame(kind::HEADERS, END_STREAM, 3, &head("GET", PING, &key))).await;
    for _ in 0..1000 {
        if connection.stream.write_all(&frame(kind::CONTINUATION, 0, 3, &long.repeat(20))).await.is_err() {
            break;
        }
    }
    assert_eq!(connection.goaway_code().await, Some(ENHANCE_YOUR_CALM));
}

#[tokio::test]
async fn an_idle_connection_ends_even_if_it_answers_pings() {
    let mut connection = Http2Connection::with(SeededServer::new(), &[], SHORT, LONG).await;
    let started = Instant::now();
    connection.send(&connection.request(1, "GET", PING, END_STREAM)).await;
    assert!(connection.next_of(kind::HEADERS).await.has_status(200));
    assert_eq!(connection.goaway_code().await, Some(0), "GOAWAY without an error");
    assert!(started.elapsed() >= SHORT);
}

#[tokio::test]
async fn a_connection_with_a_request_in_progress_stays_open() {
    let (server, gate) = Gate::server();
    let mut connection = Http2Connection::with(server, &[], SHORT, SHORT).await;
    gate.hold("createContact");
    connection.send(&connection.request(1, "POST", "/api/v1/contacts", 0)).await;
    connection.send(&frame(kind::DATA, END_STREAM, 1, b"{\"email\":\"slow@example.com\"}")).await;
    gate.arrival().await;
    // This is longer than every timeout of the connection; the server sends pings meanwhile.
    let pause = tokio::time::timeout(SHORT * 5, connection.next_of(kind::HEADERS)).await;
    assert!(pause.is_err(), "{pause:?}");
    gate.release();
    let response = connection.next_of(kind::HEADERS).await;
    assert_eq!((response.stream, response.flags & END_HEADERS), (1, END_HEADERS));
    gate.open();
}

#[tokio::test]
async fn a_response_that_is_not_read_ends_the_connection() {
    // With a window of 0 no byte may be sent. With a window of 1 one byte is sent, and the rest waits in the buffers
    // of the connection.
    for window_size in [0, 1] {
        let mut connection =
            Http2Connection::with(SeededServer::new(), &[(INITIAL_WINDOW_SIZE, window_size)], LONG, SHORT).await;
        connection.send(&connection.request(1, "GET", DOCUMENT, END_STREAM)).await;
        assert!(connection.next_of(kind::HEADERS).await.has_status(200));
        // Further requests do not keep the connection open.
        guarded(async {
            for number in 1.. {
                let other = connection.request(number * 2 + 1, "DELETE", "/api/v1/nothing", END_STREAM);
                let is_open = connection.stream.write_all(&other).await.is_ok();
                let next = tokio::time::timeout(Duration::from_millis(20), connection.next()).await;
                if !is_open || matches!(next, Ok(None)) {
                    return;
                }
            }
        })
        .await;
    }
}

#[tokio::test]
async fn responses_that_are_not_read_give_their_memory_to_other_requests() {
    let settings = Settings { response_memory: 8 * 1024 * 1024, ..settings() };
    let server = SeededServer::with(settings);
    create_large_bookings(&server, 20).await;
    let mut connection = Http2Connection::with(server, &[(INITIAL_WINDOW_SIZE, 1)], LONG, LONG).await;
    for stream in [1, 3] {
        connection.send(&connection.request(stream, "GET", "/api/v1/bookings?limit=20", END_STREAM)).await;
        assert!(connection.next_of(kind::HEADERS).await.has_status(200));
    }
    // Of the 2 MiB of an account two pages hold 0.5 MiB each, and the third needs 1.25 MiB while it is made.
    connection.server.inner.expect(200, Call::get("/bookings?limit=20")).await;
    while connection.next().await.is_some() {}
}

#[tokio::test]
async fn a_response_that_is_read_slowly_arrives_completely() {
    let mut connection = Http2Connection::with(SeededServer::new(), &[(INITIAL_WINDOW_SIZE, 1)], LONG, LONG).await;
    connection.send(&connection.request(1, "GET", DOCUMENT, END_STREAM)).await;
    let mut body = Vec::new();
    loop {
        let data = connection.next_of(kind::DATA).await;
        body.extend(&data.payload);
        if data.flags & END_STREAM != 0 {
            break;
        }
        connection.send(&[window(0, 20_000), window(1, 20_000)].concat()).await;
    }
    let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(document["openapi"], "3.1.0");
}

#[tokio::test]
async fn a_stopping_server_finishes_requests_in_progress() {
    let (server, gate) = Gate::server();
    let mut connection = Http2Connection::with(server, &[], LONG, LONG).await;
    gate.hold("createContact");
    connection.send(&connection.request(1, "POST", "/api/v1/contacts", 0)).await;
    connection.send(&frame(kind::DATA, END_STREAM, 1, b"{\"email\":\"last@example.com\"}")).await;
    gate.arrival().await;
    drop(connection.server.stop.take());
    assert_eq!(connection.next_of(kind::GOAWAY).await.number(4), Some(0));
    gate.release();
    let response = connection.next_of(kind::HEADERS).await;
    assert_eq!(response.stream, 1);
    assert!(
        matches!(connection.goaway_code().await, None | Some(0)),
        "GOAWAY without an error, then the end of the connection"
    );
    gate.open();
}

#[tokio::test]
async fn a_slow_body_gets_body_incomplete() {
    let server = SeededServer::with(Settings { body_timeout: SHORT, ..settings() });
    let mut connection = Http2Connection::with(server, &[], LONG, LONG).await;
    connection.send(&connection.request(1, "POST", "/api/v1/contacts", 0)).await;
    connection.send(&frame(kind::DATA, 0, 1, b"{")).await;
    let body = connection.next_of(kind::DATA).await.payload;
    let response: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(response["code"], "body_incomplete");
}

/// A body is counted by the 16 KiB that its first byte takes. What a connection leaves unfinished is given up for a request that
/// arrives whole: the connection with all its streams, since it waits for its client alone.
#[tokio::test]
async fn unfinished_streams_give_their_memory_to_a_whole_request() {
    let server = SeededServer::with(Settings { request_memory: 512 * 1024, ..settings() });
    let mut connection = Http2Connection::with(server, &[], LONG, LONG).await;
    for number in 0..60 {
        let stream = number * 2 + 1;
        connection.send(&connection.request(stream, "POST", "/api/v1/contacts", 0)).await;
        connection.send(&frame(kind::DATA, 0, stream, &[b' '; 500])).await;
    }
    connection.server.inner.expect(201, Call::post("/contacts", json!({"email": "whole@example.com"}))).await;
    assert_eq!(connection.next_of(kind::SETTINGS).await.flags, 0);
    while let Some(next) = connection.next().await {
        assert!(next.kind == kind::GOAWAY || next.has_status(503), "{next:?}");
    }
}
