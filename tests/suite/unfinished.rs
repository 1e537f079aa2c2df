//! What clients leave unfinished or idle, and requests that are written in another way, over real sockets: places at the
//! listener, memory of requests, keep-alive, and what is no HTTP/1.1.

use std::time::Duration;

use futures_util::FutureExt as _;
use http::Method;
use serde_json::json;
use svc_server::{DashboardSettings, OauthSettings, Settings, Surfaces};

use crate::client::{Connection, ListeningServer};
use crate::faults::Gate;
use crate::harness::{Call, SeededServer, settings};
use crate::wire::with_body;

const SHORT: Duration = Duration::from_millis(50);

/// A balancer in front keeps its connections for a minute or longer.
#[tokio::test]
async fn a_connection_waits_longer_for_its_next_request_than_for_a_head() {
    let server = ListeningServer::with(SeededServer::new(), 10, |server| server.with_head_timeout(SHORT)).await;
    let ping = server.head("GET", "/api/v1/ping") + "\r\n";
    let mut kept = server.connect().await;
    for _ in 0..3 {
        kept.write(&ping).await;
        assert_eq!(kept.response("GET", "/api/v1/ping").await.status, 200);
        assert!(server.connect().await.is_closed().await, "a connection that sends nothing");
    }
    kept.write("GET /api/v1/ping HTTP/1.1\r\nHost: local").await;
    assert!(kept.is_closed().await, "the head of its next request is unfinished");
}

#[tokio::test]
async fn a_connection_over_the_limit_takes_the_place_of_the_one_that_was_idle_longest() {
    let server = ListeningServer::with(SeededServer::new(), 2, |server| server).await;
    let ping = server.head("GET", "/api/v1/ping") + "\r\n";
    let mut open: Vec<Connection> = Vec::new();
    for number in 0..10 {
        let mut connection = server.connect().await;
        connection.write(&ping).await;
        assert_eq!(connection.response("GET", "/api/v1/ping").await.status, 200);
        open.push(connection);
        if number > 1 {
            assert!(open.remove(1).is_closed().await, "it was idle longest");
        }
        // The first is never idle for long.
        open[0].write(&ping).await;
        assert_eq!(open[0].response("GET", "/api/v1/ping").await.status, 200);
    }
}

#[tokio::test]
async fn a_connection_over_the_limit_waits_while_all_requests_are_handled() {
    let (server, gate) = Gate::server();
    let server = ListeningServer::with(server, 1, |server| server).await;
    let path = "/api/v1/contacts";
    gate.hold("createContact");
    let mut busy = server.connect().await;
    busy.write(with_body(&server.head("POST", path), "{\"email\":\"busy@example.com\"}")).await;
    gate.arrival().await;
    let mut other = server.connect().await;
    other.write(server.head("GET", "/api/v1/ping") + "\r\n").await;
    let mut response = Box::pin(other.response("GET", "/api/v1/ping"));
    assert!(response.as_mut().now_or_never().is_none());
    gate.release();
    assert_eq!(busy.response("POST", path).await.status, 201);
    assert_eq!(response.await.status, 200);
    gate.open();
}

#[tokio::test]
async fn health_checks_are_answered_whatever_others_leave_unfinished() {
    let mut inner = SeededServer::new();
    inner.server.api = inner.api.for_operators();
    let server = ListeningServer::with(inner, 4, |server| server).await;
    let mut unfinished = Vec::new();
    for number in 0..20 {
        let mut connection = server.connect().await;
        let end = ["", "\r\n", "Content-Length: 9\r\n\r\nx"][number % 3];
        connection.write(format!("POST /healthz HTTP/1.1\r\nHost: localhost\r\n{end}")).await;
        unfinished.push(connection);
        let mut check = server.connect().await;
        check.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        assert_eq!(check.raw("GET").await.unwrap().status, 200);
    }
}

/// What clients leave unfinished takes memory from what they have left before, at every endpoint that takes a body, and not from
/// requests that arrive whole, although all have one address.
#[tokio::test]
async fn unfinished_requests_take_memory_from_unfinished_requests() {
    let oauth = Some(OauthSettings::new("http://localhost".parse().unwrap()));
    let surfaces = Surfaces {
        dashboard: Some(DashboardSettings { oauth, ..DashboardSettings::default() }),
        mcp: Some(Vec::new()),
        ..Surfaces::default()
    };
    let settings = Settings { request_memory: 512 * 1024, ..settings() };
    let server = ListeningServer::new(SeededServer::serving(surfaces, settings)).await;
    for path in ["/api/v1/contacts", "/oauth/token", "/oauth/revoke", "/oauth/authorize", "/dashboard/sign-in", "/mcp"]
    {
        let unfinished_head = format!("{}X: {}", server.head("POST", path), "x".repeat(15_000));
        let unfinished_body = format!(
            "{}Origin: http://localhost\r\nContent-Type: application/json\r\nContent-Length: 20001\r\n\r\n{}",
            server.head("POST", path),
            " ".repeat(20_000)
        );
        for start in [unfinished_head, unfinished_body] {
            let mut unfinished = Vec::new();
            for number in 0..10 {
                let mut connection = server.connect().await;
                connection.write(&start).await;
                unfinished.push(connection);
                let mut other = server.connect().await;
                let body = format!("{{\"last_name\":\"{number}\"}}");
                other.write(with_body(&server.head("POST", "/api/v1/contacts"), &body)).await;
                let response = other.response("POST", "/api/v1/contacts").await;
                assert_ne!(response.status, 503, "{path}: {}", response.text);
            }
            // The oldest was given up: its connection is closed, or its request has 503.
            let status = unfinished[0].raw("POST").await.map(|response| response.status);
            assert!(matches!(status, None | Some(503)), "{path}: {status:?}");
        }
    }
}

#[tokio::test]
async fn http_2_without_tls_is_refused_at_once() {
    let server = ListeningServer::new(SeededServer::new()).await;
    let mut connection = server.connect().await;
    connection.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    let response = connection.raw("GET").await.unwrap();
    let text = "This port speaks HTTP/1.1, and HTTP/2 over TLS to clients that negotiate it by ALPN.\n";
    assert_eq!((response.status, response.text.as_str()), (400, text));
}

#[tokio::test]
async fn a_path_with_needless_encoding_is_the_plain_path() {
    let server = SeededServer::new();
    let (id, signer) = (server.id("contact_id"), server.key("signed"));
    let encoded = id.replacen('0', "%30", 1);
    server.expect(200, Call::absolute(Method::GET, "/api/v1/%63ontacts").key(server.key("write"))).await;
    assert_eq!(server.expect(200, Call::get(&format!("/%63ontacts/{encoded}"))).await.data()["id"], json!(id));
    // A signature covers what was sent.
    let create = Call::post("/%63ontacts", json!({ "email": "plain@example.com" })).signed(signer);
    server.expect(201, create).await;
    for other in ["/api/v1%2Fcontacts", "/api/v1/x/%2e%2e/contacts", "/api/v1/%43ontacts"] {
        server.expect(404, Call::absolute(Method::GET, other).key(server.key("write"))).await;
    }
}

#[tokio::test]
async fn a_body_in_another_charset_is_refused() {
    let server = SeededServer::new();
    let create = || Call::post("/contacts", json!({ "email": "charset@example.com" }));
    let latin = create().header("content-type", "application/json; charset=iso-8859-1");
    assert_eq!(server.expect(415, latin).await.code(), "unsupported_media_type");
    server.expect(201, create().header("content-type", "application/json; charset=UTF-8")).await;
}
