//! What a subscription asks for: further headers, authentication, thin events, a timeout, and access tokens that are got by
//! client credentials, also from token endpoints that mean harm.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use svc_core::input::FromJson as _;
use svc_core::input::json;
use svc_core::values::HostPolicy;
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::engine::{Attempt, AttemptOptions};
use svc_core::webhooks::options::Authentication;
use svc_server::deliver::{HttpWebhookClient, WebhookClient as _};
use svc_server::outbound::resolver::{Resolver, SystemResolver};
use wiremock::matchers::{body_string, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::attempts::{attempt, class, client};
use super::receivers::{After, OK, Receiver, canary, raw_receiver};

const REFUSES: &str = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno";

/// Returns an attempt whose access token comes from this endpoint.
fn with_token_of(url: &str, token_url: &str) -> Attempt {
    let sent = json!({
        "type": "oauth2", "token_url": token_url, "client_id": "svc:1", "client_secret": "s3cret word", "scope": "hooks write",
    });
    let sent = json::parse(sent.to_string().as_bytes()).unwrap();
    let Authentication::OAuth2(credentials) = Authentication::from_json(sent).unwrap() else { unreachable!() };
    let options = AttemptOptions { credentials: Some(credentials), ..AttemptOptions::default() };
    Attempt { options, ..attempt(url) }
}

fn private() -> HttpWebhookClient {
    client(HostPolicy::AllowPrivate, Arc::new(SystemResolver::default()))
}

async fn send(attempt: Attempt) -> AttemptLog {
    private().attempt(attempt).await.log
}

/// Starts a token endpoint that gives `t1`, then `t2` and so on.
async fn token_endpoint(tokens: usize) -> MockServer {
    let server = MockServer::start().await;
    for number in 1..=tokens {
        let granted = json!({ "access_token": format!("t{number}"), "token_type": "Bearer", "expires_in": 3600 });
        Mock::given(method("POST"))
            .and(path("/token"))
            .and(header("content-type", "application/x-www-form-urlencoded"))
            // The id and the secret are form-encoded before they are joined (RFC 6749, section 2.3.1).
            .and(header("authorization", "Basic c3ZjJTNBMTpzM2NyZXQrd29yZA=="))
            .and(body_string("grant_type=client_credentials&scope=hooks+write"))
            .respond_with(ResponseTemplate::new(200).set_body_json(granted))
            .up_to_n_times(1)
            .mount(&server)
            .await;
    }
    server
}

fn token_url(server: &MockServer) -> String {
    format!("{}/token", server.uri())
}

#[tokio::test]
async fn headers_and_a_thin_body_are_sent() {
    let receiver = Receiver::with_responses(&[OK]).await;
    let mut attempt = attempt(&receiver.url("/"));
    attempt.options.is_thin = true;
    attempt.options.headers = vec![
        ("x-team".to_owned(), svc_core::values::Secret::new("ledger")),
        ("authorization".to_owned(), svc_core::values::Secret::new("Bearer t0ken")),
    ];
    let event = attempt.event.id;
    assert!(send(attempt).await.succeeded());
    let received = receiver.next().await;
    assert_eq!(
        (&received.headers["x-team"], &received.headers["authorization"]),
        (&"ledger".parse().unwrap(), &"Bearer t0ken".parse().unwrap())
    );
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!((&body["event_id"], &body["data"]), (&json!(event), &json!({ "id": "1" })));
}

#[tokio::test]
async fn an_attempt_has_the_timeout_of_its_subscription() {
    let hangs = raw_receiver(Vec::new(), After::Hang).await;
    let mut attempt = attempt(&format!("http://{hangs}/"));
    attempt.options.timeout = Some(Duration::from_millis(50));
    let log = send(attempt).await;
    assert_eq!(log.error.as_deref(), Some("timeout: no complete response within 0.05 s"));
}

#[tokio::test]
async fn a_token_is_got_once_for_all_deliveries() {
    let (tokens, receiver) = (token_endpoint(1).await, Receiver::with_responses(&[OK]).await);
    let (client, url) = (private(), receiver.url("/"));
    let attempts = (0..8).map(|_| client.attempt(with_token_of(&url, &token_url(&tokens))));
    for outcome in join_all(attempts).await {
        assert!(outcome.log.succeeded(), "{:?}", outcome.log);
        assert_eq!(receiver.next().await.headers["authorization"], "Bearer t1");
    }
    assert_eq!(tokens.received_requests().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_token_that_is_refused_is_replaced_once() {
    let tokens = token_endpoint(3).await;
    let receiver = Receiver::with_responses(&[REFUSES, OK, REFUSES]).await;
    let (client, url) = (private(), receiver.url("/"));
    let log = client.attempt(with_token_of(&url, &token_url(&tokens))).await.log;
    assert!(log.succeeded(), "{log:?}");
    let sent: Vec<_> = receiver.arrived().await;
    let authorizations: Vec<&str> =
        sent.iter().map(|received| received.headers["authorization"].to_str().unwrap()).collect();
    assert_eq!(authorizations, ["Bearer t1", "Bearer t2"]);
    assert_eq!(sent[0].headers["x-svc-attempt"], sent[1].headers["x-svc-attempt"], "it is one attempt");

    // A receiver that refuses each token ends the attempt.
    let log = client.attempt(with_token_of(&url, &token_url(&tokens))).await.log;
    assert_eq!((log.status, class(&log)), (401, "status"));
    assert_eq!(receiver.arrived().await.len(), 2);
    assert_eq!(tokens.received_requests().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_token_endpoint_that_gives_none_fails_the_attempt() {
    let (receiver, hits) = canary().await;
    let url = format!("http://{receiver}/");
    let huge = format!("HTTP/1.1 200 OK\r\n\r\n{{\"access_token\":\"{}\"}}", "t".repeat(1 << 20));
    let reply = |head: &str, body: &str| {
        format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    };
    let cases = [
        (
            reply("401 Unauthorized", r#"{"error":"invalid_client"}"#),
            "token: the token endpoint responded with 401 Unauthorized: invalid_client",
        ),
        (
            reply("500 Internal Server Error", "<html>"),
            "token: the token endpoint responded with 500 Internal Server Error",
        ),
        (reply("302 Found\r\nlocation: http://127.0.0.1:1/", ""), "token: the token endpoint responded with 302 Found"),
        (reply("200 OK", "<html>"), "token: the token endpoint responded with no token as RFC 6749 has it"),
        (
            reply("200 OK", r#"{"access_token":"a","token_type":"mac"}"#),
            "token: the token endpoint responded with a token that is no bearer token",
        ),
        (
            reply("200 OK", "{\"access_token\":\"a\\r\\nx-evil: 1\"}"),
            "token: the token endpoint responded with a token that no header can have",
        ),
        (
            reply("200 OK", r#"{"access_token":""}"#),
            "token: the token endpoint responded with a token that no header can have",
        ),
        (huge.into_bytes(), "token: the token endpoint responded with no token as RFC 6749 has it"),
        (b"220 smtp ready\r\n".to_vec(), "token: the token endpoint: reset: "),
    ];
    for (response, want) in cases {
        let endpoint = raw_receiver(response, After::Close).await;
        let log = send(with_token_of(&url, &format!("http://{endpoint}/token"))).await;
        let error = log.error.clone().unwrap();
        assert!(log.status == 0 && error.starts_with(want) && !error.contains("s3cret"), "{error}");
    }
    let hangs = raw_receiver(Vec::new(), After::Hang).await;
    let log = send(with_token_of(&url, &format!("http://{hangs}/token"))).await;
    assert_eq!((log.status, class(&log)), (0, "timeout"), "within the timeout of the attempt");
    let log = send(with_token_of(&url, "http://no-such-host.invalid/token")).await;
    assert_eq!(log.error.as_deref(), Some("token: the token endpoint: dns: no-such-host.invalid does not resolve"));
    assert_eq!(hits.load(std::sync::atomic::Ordering::SeqCst), 0, "nothing is sent to the endpoint");
}

/// A resolver by which the receiver is public, and the token endpoint is not.
struct Rebinding;

impl Resolver for Rebinding {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Vec<std::net::IpAddr>> {
        let address = if host == "hooks.example.com" { [93, 184, 215, 14] } else { [127, 0, 0, 1] };
        Box::pin(async move { vec![address.into()] })
    }
}

#[tokio::test]
async fn a_token_endpoint_at_a_private_address_is_not_reached() {
    let (endpoint, hits) = canary().await;
    let client = client(HostPolicy::Public, Arc::new(Rebinding));
    for url in [format!("https://tokens.example.com:{}/", endpoint.port()), format!("http://{endpoint}/")] {
        let log = client.attempt(with_token_of("https://hooks.example.com/", &url)).await.log;
        let error = log.error.clone().unwrap();
        assert!(log.status == -1 && error.starts_with("blocked: the token endpoint: "), "{error}");
    }
    assert_eq!(hits.load(std::sync::atomic::Ordering::SeqCst), 0);
}
