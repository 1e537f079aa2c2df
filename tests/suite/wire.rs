//! HTTP/1.1 over real sockets: limits of heads and bodies, early responses, timeouts, keep-alive, pipelining and graceful
//! shutdown.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use svc_server::Settings;
use svc_server::program::serve::Server;

use crate::client::{Connection, ListeningServer};
use crate::faults::Gate;
use crate::harness::{Call, SeededServer, create_large_bookings, guarded, settings};

const MIB: usize = 1024 * 1024;
const SHORT: Duration = Duration::from_millis(50);

async fn listening() -> ListeningServer {
    ListeningServer::new(SeededServer::new()).await
}

pub(crate) fn with_body(head: &str, body: &str) -> String {
    format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_head_response_has_the_headers_of_get_and_no_body() {
    let server = listening().await;
    let contact = format!("/api/v1/contacts/{}", server.inner.id("contact_id"));
    let mut connection = server.connect().await;
    for path in
        ["/api/v1/contacts", &contact, "/api/v1/openapi.json", "/healthz", "/api/v1/nothing", "/api/v1/jobs?x=1"]
    {
        connection.write(server.head("GET", path) + "\r\n").await;
        let get = connection.response("GET", path).await;
        // If a body followed, the next response could not be parsed.
        connection.write(server.head("HEAD", path) + "\r\n").await;
        let head = connection.response("HEAD", path).await;
        assert_eq!((head.status, head.comparable().1), (get.status, get.comparable().1), "{path}");
        assert_eq!(head.header("content-length"), Some(get.body.len().to_string().as_str()));
    }
}

#[tokio::test]
async fn exactly_one_host_header_is_required() {
    let server = listening().await;
    let key = &server.inner.key("write").text;
    for hosts in ["", "Host: a\r\nHost: a\r\n", "Host: a\r\nHost: b\r\n"] {
        let mut connection = server.connect().await;
        let request = format!("GET /api/v1/ping HTTP/1.1\r\n{hosts}Authorization: Bearer {key}\r\n\r\n");
        connection.write(&request).await;
        let response = connection.response("GET", "/api/v1/ping").await;
        assert_eq!((response.status, &response.json()["field"]), (400, &json!("Host")), "{hosts}");
    }
    // HTTP/1.0 requires no Host and closes the connection.
    let mut connection = server.connect().await;
    connection.write(format!("GET /api/v1/ping HTTP/1.0\r\nAuthorization: Bearer {key}\r\n\r\n")).await;
    assert_eq!(connection.response("GET", "/api/v1/ping").await.status, 200);
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn a_host_header_is_a_host_with_an_optional_port() {
    let server = listening().await;
    let key = &server.inner.key("write").text;
    let mut connection = server.connect().await;
    let valid =
        ["a", "api.example.com", "api.example.com:8080", "my_host:", "127.0.0.1:80", "[::1]", "[2001:db8::1]:443"];
    let invalid = [
        "", " ", "a b", "a, b", "a/b", "a?b", "a#b", "user@a", "http://a", "a:b", "a:80:80", "a:+80", "a:65536", ":80",
        "[::1", "::1", "[a]", "[]", "a\\b", "a<b>", "a\u{e9}",
    ];
    for (hosts, status) in [(&valid[..], 200), (&invalid, 400)] {
        for host in hosts {
            let head = format!("GET /api/v1/ping HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {key}\r\n\r\n");
            connection.write(head).await;
            let response = connection.response("GET", "/api/v1/ping").await;
            assert_eq!(response.status, status, "{host:?}: {}", response.text);
            if status == 400 {
                assert_eq!(response.json()["errors"][0]["code"], "invalid_format", "{host:?}");
            }
        }
    }
    // The host of an absolute request target.
    connection.write(server.head("GET", "http://user@localhost/api/v1/ping") + "\r\n").await;
    assert_eq!(connection.response("GET", "/api/v1/ping").await.status, 400);
}

/// The parser of request targets drops a fragment, so it can neither change what is requested nor be refused.
#[tokio::test]
async fn a_fragment_is_not_part_of_the_request() {
    let server = listening().await;
    let mut connection = server.connect().await;
    for (target, status) in
        [("/api/v1/ping#/../contacts", 200), ("/api/v1/contacts?limit=1#&limit=x", 200), ("/api/v1#/ping", 404)]
    {
        connection.write(server.head("GET", target) + "\r\n").await;
        let requested = target.split('#').next().unwrap();
        assert_eq!(connection.response("GET", requested).await.status, status, "{target}");
    }
}

/// hyper takes any transfer coding before a last `chunked`. The service would read the coded bytes as the body.
#[tokio::test]
async fn a_transfer_encoding_other_than_chunked_is_refused() {
    let server = listening().await;
    let head = server.head("POST", "/api/v1/contacts") + "Content-Type: application/json\r\n";
    for coding in [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: , chunked",
        "Transfer-Encoding: identity, chunked",
    ] {
        let mut connection = server.connect().await;
        connection.write(format!("{head}{coding}\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n")).await;
        let response = connection.response("POST", "/api/v1/contacts").await;
        assert_eq!((response.status, &response.json()["field"]), (400, &json!("Transfer-Encoding")), "{coding}");
        assert_eq!(response.header("connection"), Some("close"), "{coding}");
        assert!(connection.is_closed().await, "two parsers could read the rest differently: {coding}");
    }
}

/// 180 clients that write a whole request before they read its response, which the server sends when it has read the head
/// or the first MiB of the body.
#[tokio::test(flavor = "multi_thread")]
async fn an_early_response_reaches_clients_that_are_still_sending() {
    let limits = Settings { rate_limit: 1, limit_rates: true, ..settings() };
    let limited = ListeningServer::new(SeededServer::with(limits)).await;
    let server = listening().await;
    let path = "/api/v1/contacts";
    // The limit of the key is used up.
    let mut connection = limited.connect().await;
    connection.write(limited.head("GET", "/api/v1/ping") + "\r\n").await;
    assert_eq!(connection.response("GET", "/api/v1/ping").await.status, 200);
    let anonymous = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n");
    let json = "Content-Type: application/json\r\n";
    let text = "Content-Type: text/plain\r\n";
    let cases = [
        (&server, 401, format!("{anonymous}{json}"), 900_000),
        (&server, 401, format!("{anonymous}{json}"), 3_000_000),
        (&server, 413, server.head("POST", path) + json, 1_100_000),
        (&server, 413, server.head("POST", path) + json, 3_000_000),
        (&server, 415, server.head("POST", path) + text, 1_000_000),
        (&limited, 429, limited.head("POST", path) + json, 3_000_000),
    ];
    // One case after the other, as the bodies that are read share 32 MiB.
    for (server, status, head, length) in cases {
        let body = " ".repeat(length);
        let requests = [
            format!("{head}Content-Length: {length}\r\n\r\n{body}"),
            format!("{head}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n"),
        ]
        .map(Arc::<str>::from);
        let mut clients = tokio::task::JoinSet::new();
        for request in requests.iter().cycle().take(30).cloned() {
            let address = server.address;
            clients.spawn(async move {
                let mut connection = Connection::to(address).await;
                guarded(connection.write(&*request)).await;
                assert_eq!(connection.response("POST", path).await.status, status);
                // The body was within the limit of what the server drops, so the connection stays open.
                connection.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
                assert_eq!(connection.response("GET", "/healthz").await.status, 200);
            });
        }
        assert_eq!(clients.join_all().await.len(), 30);
    }
}

/// The server says at once that it will close the connection after a body that it does not want, and drops what is sent
/// nevertheless, up to a limit.
#[tokio::test]
async fn a_connection_ends_after_a_body_that_is_much_too_large() {
    let server = listening().await;
    let path = "/api/v1/contacts";
    let head = server.head("POST", path) + "Content-Type: application/json\r\n";
    let mut connection = server.connect().await;
    connection.write(format!("{head}Content-Length: {}\r\n\r\n", 1024 * MIB)).await;
    for _ in 0..3 {
        connection.write(" ".repeat(MIB)).await;
    }
    let response = connection.response("POST", path).await;
    assert_eq!((response.status, response.header("connection")), (413, Some("close")));
    assert!(connection.is_closed().await);
    // A body without a length is cut off.
    let mut connection = server.connect().await;
    connection.write(format!("{head}Transfer-Encoding: chunked\r\n\r\n")).await;
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(MIB));
    let endless = async { while connection.try_write(&chunk).await {} };
    guarded(endless).await;
}

/// What hyper refuses itself is followed by no reset either.
#[tokio::test]
async fn a_client_with_a_malformed_head_may_go_on_sending() {
    let server = listening().await;
    for (head, status) in [
        (format!("GET / HTTP/1.1\r\nX-Long: {}\r\n", "x".repeat(60_000)), 431),
        (format!("GET /{} HTTP/1.1\r\n", "x".repeat(60_000)), 431),
        ("POST / HTTP/1.1\r\nContent-Length: x\r\n".to_owned(), 400),
    ] {
        let mut connection = server.connect().await;
        connection.write(format!("{head}\r\n")).await;
        assert_eq!(connection.raw("GET").await.map(|response| response.status), Some(status));
        assert!(connection.is_closed().await);
        // The server has ended its side only: what a client is still sending is no error for it.
        for _ in 0..3 {
            connection.write(" ".repeat(MIB)).await;
        }
    }
}

#[tokio::test]
async fn a_request_target_may_have_8_kib() {
    let server = listening().await;
    let mut connection = server.connect().await;
    for (length, status) in [(8192, 400), (8193, 414), (30_000, 414)] {
        let start = "/api/v1/contacts?email=";
        let path = format!("{start}{}", "x".repeat(length - start.len()));
        connection.write(server.head("GET", &path) + "\r\n").await;
        assert_eq!(connection.response("GET", &path).await.status, status, "{length}");
    }
    connection.write(server.head("GET", "/api/v1/ping") + "\r\n").await;
    assert_eq!(connection.response("GET", "/api/v1/ping").await.status, 200, "the connection stays open");
}

#[tokio::test]
async fn headers_may_have_16_kib() {
    let server = listening().await;
    let mut connection = server.connect().await;
    for (length, status) in [(15_000, 200), (16_384, 431), (30_000, 431)] {
        let long = format!("X-Long: {}\r\n", "x".repeat(length));
        connection.write(server.head("GET", "/api/v1/ping") + &long + "\r\n").await;
        assert_eq!(connection.response("GET", "/api/v1/ping").await.status, status, "{length}");
    }
    // Many small headers.
    let many: String = (0..80).map(|number| format!("X-{number}: {}\r\n", "x".repeat(250))).collect();
    connection.write(server.head("GET", "/api/v1/ping") + &many + "\r\n").await;
    assert_eq!(connection.response("GET", "/api/v1/ping").await.status, 431);
}

#[tokio::test]
async fn a_body_with_a_length_may_have_1_mib() {
    let server = listening().await;
    let path = "/api/v1/contacts";
    let fill = |length: usize| {
        let start = "{\"email\":\"big@example.com\"";
        format!("{start}{}}}", " ".repeat(length - start.len() - 1))
    };
    let mut connection = server.connect().await;
    connection.write(with_body(&server.head("POST", path), &fill(MIB))).await;
    assert_eq!(connection.response("POST", path).await.status, 201, "exactly 1 MiB");
    // A greater length is refused before any of the body arrives.
    let mut connection = server.connect().await;
    let head =
        format!("{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", server.head("POST", path), MIB + 1);
    connection.write(head).await;
    let response = connection.response("POST", path).await;
    assert_eq!((response.status, response.code().as_str()), (413, "body_too_large"));
}

#[tokio::test]
async fn a_chunked_body_may_have_1_mib() {
    let server = listening().await;
    let path = "/api/v1/contacts";
    let head = server.head("POST", path) + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut connection = server.connect().await;
    connection.write(&head).await;
    connection.write("10\r\n{\"email\":\"c@exam\r\n9\r\nple.com\"}\r\n0\r\n\r\n").await;
    assert_eq!(connection.response("POST", path).await.status, 201);
    let mut connection = server.connect().await;
    connection.write(&head).await;
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    for _ in 0..17 {
        connection.try_write(&chunk).await;
    }
    let response = connection.response("POST", path).await;
    assert_eq!((response.status, response.code().as_str()), (413, "body_too_large"));
}

#[tokio::test]
async fn expect_continue_gets_100() {
    let server = listening().await;
    let path = "/api/v1/contacts";
    let body = "{\"email\":\"e@example.com\"}";
    let head = server.head("POST", path) + "Content-Type: application/json\r\nExpect: 100-continue\r\n";
    let mut connection = server.connect().await;
    connection.write(format!("{head}Content-Length: {}\r\n\r\n", body.len())).await;
    assert_eq!(connection.raw("POST").await.unwrap().status, 100);
    connection.write(body).await;
    assert_eq!(connection.response("POST", path).await.status, 201);
    // A body that is refused by its length is not requested.
    let mut connection = server.connect().await;
    connection.write(format!("{head}Content-Length: {}\r\n\r\n", 2 * MIB)).await;
    let response = connection.response("POST", path).await;
    assert_eq!((response.status, response.header("connection")), (413, Some("close")));
    assert!(connection.is_closed().await, "it is not known whether the body follows");
}

#[tokio::test]
async fn a_slow_head_ends_the_connection() {
    let set = |server: Server| server.with_head_timeout(SHORT).with_keep_alive(SHORT);
    let server = ListeningServer::with(SeededServer::new(), 10, set).await;
    let mut silent = server.connect().await;
    let mut halfway = server.connect().await;
    halfway.write("GET /api/v1/ping HTTP/1.1\r\nHost: local").await;
    let mut idle = server.connect().await;
    idle.write(server.head("GET", "/api/v1/ping") + "\r\n").await;
    assert_eq!(idle.response("GET", "/api/v1/ping").await.status, 200);
    for connection in [&mut silent, &mut halfway, &mut idle] {
        // hyper may send 408 by itself, or just close the connection.
        if let Some(response) = connection.raw("GET").await {
            assert_eq!(response.status, 408);
        }
        assert!(connection.is_closed().await);
    }
}

#[tokio::test]
async fn a_slow_body_gets_408() {
    let server = SeededServer::with(Settings { body_timeout: SHORT, ..settings() });
    let server = ListeningServer::new(server).await;
    let path = "/api/v1/contacts";
    let mut connection = server.connect().await;
    let head = server.head("POST", path) + "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"email\":";
    connection.write(head).await;
    let response = connection.response("POST", path).await;
    assert_eq!((response.status, response.code().as_str()), (408, "body_incomplete"));
    assert_eq!(response.header("connection"), Some("close"));
    assert!(connection.is_closed().await, "the rest of the body must not be read as a request");
    assert_eq!(server.inner.new_events().await, [""; 0]);
}

#[tokio::test]
async fn an_incomplete_body_writes_nothing() {
    let server = listening().await;
    let mut connection = server.connect().await;
    let head = server.head("POST", "/api/v1/contacts") + "Content-Type: application/json\r\nContent-Length: 25\r\n\r\n";
    connection.write(head + "{\"email\":\"b@example.com\"").await;
    drop(connection);
    let mut other = server.connect().await;
    other.write(server.head("GET", "/api/v1/ping") + "\r\n").await;
    assert_eq!(other.response("GET", "/api/v1/ping").await.status, 200);
    assert_eq!(server.inner.new_events().await, [""; 0]);
}

#[tokio::test]
async fn a_connection_stays_open_after_errors() {
    let server = listening().await;
    let mut connection = server.connect().await;
    let contacts = "/api/v1/contacts";
    let unknown = format!("{contacts}/{}", server.inner.id("unknown_id"));
    for (status, method, path, body) in [
        (404, "GET", "/nothing", ""),
        (405, "PUT", contacts, "{}"),
        (404, "GET", unknown.as_str(), ""),
        (400, "POST", contacts, "{"),
        (400, "GET", "/api/v1/contacts?limit=0", ""),
        (409, "POST", contacts, "{\"email\":\"existing@example.com\"}"),
        (404, "DELETE", unknown.as_str(), ""),
        (404, "POST", "/nothing", "unread"),
        (200, "GET", contacts, ""),
    ] {
        connection.write(with_body(&server.head(method, path), body)).await;
        assert_eq!(connection.response(method, path).await.status, status, "{method} {path}");
    }
    connection.write("GET /api/v1/ping HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert_eq!(connection.response("GET", "/api/v1/ping").await.status, 401);
    connection.write(server.head("GET", "/api/v1/ping") + "Connection: close\r\n\r\n").await;
    assert_eq!(connection.response("GET", "/api/v1/ping").await.status, 200);
    assert!(connection.is_closed().await);
}

#[tokio::test]
async fn pipelined_requests_get_their_responses_in_order() {
    let server = listening().await;
    let mut connection = server.connect().await;
    let mut bytes = String::new();
    for number in 0..20 {
        let id = format!("X-Request-Id: {number}\r\n");
        let head = |method, path| server.head(method, path) + &id;
        bytes += &match number % 3 {
            0 => with_body(&head("POST", "/api/v1/contacts"), &format!("{{\"email\":\"p{number}@example.com\"}}")),
            1 => head("GET", "/api/v1/contacts?limit=1") + "\r\n",
            _ => head("GET", "/nothing") + "\r\n",
        };
    }
    connection.write(bytes).await;
    for number in 0..20 {
        let (status, method, path) = match number % 3 {
            0 => (201, "POST", "/api/v1/contacts"),
            1 => (200, "GET", "/api/v1/contacts?limit=1"),
            _ => (404, "GET", "/nothing"),
        };
        let response = connection.response(method, path).await;
        assert_eq!((response.status, response.header("x-request-id")), (status, Some(number.to_string().as_str())));
        if status == 200 {
            let newest = &response.json()["data"][0]["email"];
            assert_eq!(
                *newest,
                json!(format!("p{}@example.com", number - 1)),
                "each request sees the writes before it"
            );
        }
    }
}

/// Requests that two parsers could read differently are refused, and the connection is closed.
#[tokio::test]
async fn ambiguous_requests_are_refused() {
    let server = listening().await;
    let head = server.head("POST", "/api/v1/contacts") + "Content-Type: application/json\r\n";
    for ambiguous in [
        "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
        "Content-Length: 2\r\nTransfer-Encoding: chunked, identity\r\n\r\n{}",
        "Content-Length: x\r\n\r\n{}",
        "Content-Length: -1\r\n\r\n{}",
        "Transfer-Encoding: gzip\r\n\r\n{}",
        "Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n",
        "Bad Header: x\r\nContent-Length: 2\r\n\r\n{}",
        "Folded: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
    ] {
        let mut connection = server.connect().await;
        connection.write(format!("{head}{ambiguous}")).await;
        let response = connection.raw("POST").await;
        let status = response.as_ref().map_or(400, |response| response.status);
        assert!(matches!(status, 400 | 408), "{ambiguous:?}: {response:?}");
        assert!(connection.is_closed().await, "{ambiguous:?}");
    }
    // With both headers the body is chunked (RFC 9112 §6.3), and the connection is closed after it.
    let mut connection = server.connect().await;
    let both = "Content-Length: 500\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    connection.write(format!("{head}{both}")).await;
    assert_eq!(connection.raw("POST").await.unwrap().status, 400);
    assert_eq!(server.inner.new_events().await, [""; 0]);
}

#[tokio::test]
async fn a_stopping_server_finishes_requests_and_closes_idle_connections() {
    let (server, gate) = Gate::server();
    let mut server = ListeningServer::new(server).await;
    let path = "/api/v1/contacts";
    let mut idle = server.connect().await;
    idle.write(server.head("GET", "/api/v1/ping") + "\r\n").await;
    idle.response("GET", "/api/v1/ping").await;
    gate.hold("createContact");
    let mut busy = server.connect().await;
    busy.write(with_body(&server.head("POST", path), "{\"email\":\"last@example.com\"}")).await;
    gate.arrival().await;
    server.stop();
    assert!(idle.is_closed().await, "an idle connection is closed at once");
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err(), "no new connection is accepted");
    assert!(!server.running.is_finished());
    gate.release();
    let response = busy.response("POST", path).await;
    assert_eq!(response.status, 201);
    assert!(busy.is_closed().await);
    (&mut server.running).await.unwrap();
    gate.open();
    let read = server.inner.expect(200, Call::get(&format!("/contacts/{}", response.id()))).await;
    assert_eq!(read.data()["email"], "last@example.com");
}

#[tokio::test]
async fn anonymous_clients_are_limited_by_their_socket_address() {
    let server = SeededServer::with(Settings { rate_limit: 2, limit_rates: true, ..settings() });
    let server = ListeningServer::new(server).await;
    let mut connection = server.connect().await;
    for status in [401, 401, 429] {
        // Without a trusted proxy these headers are ignored.
        let spoofed = format!("X-Forwarded-For: 203.0.113.{status}\r\nForwarded: for=203.0.113.{status}\r\n");
        connection.write(format!("GET /api/v1/ping HTTP/1.1\r\nHost: a\r\n{spoofed}\r\n")).await;
        assert_eq!(connection.response("GET", "/api/v1/ping").await.status, status);
    }
    connection.write(server.head("GET", "/api/v1/ping") + "\r\n").await;
    assert_eq!(connection.response("GET", "/api/v1/ping").await.status, 200);
}

/// A client sends requests without end and reads no response. Once the buffers are full, the server closes the
/// connection.
#[tokio::test]
async fn a_client_that_reads_no_response_is_disconnected() {
    let server = ListeningServer::with(SeededServer::new(), 10, |server| server.with_write_timeout(SHORT)).await;
    let mut connection = server.connect().await;
    let request = server.head("GET", "/api/v1/openapi.json") + "\r\n";
    guarded(async { while connection.try_write(&request).await {} }).await;
    let mut other = server.connect().await;
    other.write(server.head("GET", "/api/v1/ping") + "\r\n").await;
    assert_eq!(other.response("GET", "/api/v1/ping").await.status, 200, "the server still responds");
}

#[tokio::test]
async fn clients_that_read_get_the_memory_of_clients_that_do_not() {
    let settings = Settings { response_memory: 16 * MIB, ..settings() };
    let server = ListeningServer::new(SeededServer::with(settings)).await;
    create_large_bookings(&server.inner, 20).await;
    let list = "/api/v1/bookings?limit=20";
    let request = server.head("GET", list) + "\r\n";
    let mut stalled = Vec::new();
    // Their pages of 0.5 MiB are twice what the share of an account can hold.
    for _ in 0..16 {
        let mut connection = Connection::with_tiny_buffer(server.address).await;
        connection.write(&request).await;
        connection.begins().await;
        stalled.push(connection);
    }
    let mut reading = server.connect().await;
    reading.write(&request).await;
    let page = reading.response("GET", list).await;
    assert_eq!(page.status, 200);
    assert!(page.body.len() > 500_000, "{}", page.body.len());
    assert!(stalled[0].read_to_end().await < MIB / 4, "the first client lost its connection");
    assert_eq!(stalled[15].response("GET", list).await.body, page.body, "the last client did not");
}

/// The memory that is reserved for a record is 64 KiB, as a page may need more than twice its length while it is made.
#[tokio::test]
async fn the_largest_record_has_26_kb() {
    let server = SeededServer::new();
    create_large_bookings(&server, 1).await;
    let page = server.expect(200, Call::get("/bookings?limit=1")).await;
    assert!((25_000..27_000).contains(&page.body.len()), "{}", page.body.len());
}
