//! What is tried again, when, and with which key.

use std::time::Duration;

use serde_json::json;
use svc_client::prelude::*;
use svc_client::{TransportErrorKind, svc_core};
use svc_core::resources::contacts::ContactId;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use wiremock::ResponseTemplate;

use crate::fixture::{ID, InTurn, builder, client, contact, header, ok, problem, requests, serve};

fn id() -> ContactId {
    ID.parse().unwrap()
}

fn ada() -> ContactCreate {
    ContactCreate::new("ada@example.com".parse().unwrap())
}

#[tokio::test]
async fn a_create_is_repeated_with_the_same_key_and_another_create_has_another() {
    let server = serve(vec![problem(503, "unavailable"), problem(429, "rate_limited"), ok(201)]).await;
    let (client, waits) = client(&server);
    client.contacts().create(&ada()).await.unwrap();
    client.contacts().create(&ada()).await.unwrap();
    let requests = requests(&server).await;
    let keys: Vec<_> = requests.iter().map(|request| header(request, "idempotency-key").unwrap()).collect();
    assert_eq!(keys.len(), 4);
    assert!(keys[0] == keys[1] && keys[1] == keys[2] && keys[2] != keys[3], "{keys:?}");
    assert!(requests.iter().all(|request| request.body == br#"{"email":"ada@example.com"}"#));
    assert_eq!(waits.all().len(), 2);
}

#[tokio::test]
async fn a_key_of_the_caller_is_sent_as_it_is() {
    let server = serve(vec![ok(201)]).await;
    let (client, _) = client(&server);
    client.contacts().create_with_key(&ada(), "order 17").await.unwrap();
    assert_eq!(header(&requests(&server).await[0], "idempotency-key"), Some("order 17"));
    for key in ["", "ä", "a\nb", &"x".repeat(256)] {
        let error = client.contacts().create_with_key(&ada(), key).await.unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    }
    assert_eq!(requests(&server).await.len(), 1);
}

#[tokio::test]
async fn waits_grow_and_are_random_below_their_bound() {
    let server = serve(vec![problem(503, "unavailable")]).await;
    let (builder, waits) = builder(&server.uri());
    let policy = RetryPolicy::default()
        .attempts(7)
        .total(Duration::from_secs(3600))
        .waits(Duration::from_secs(1), Duration::from_secs(5));
    let client = builder.retry(policy).build().unwrap();
    let error = client.contacts().get(id()).await.unwrap_err();
    assert_eq!((error.status(), error.attempts()), (Some(503), 7));
    let bounds = [1, 2, 4, 5, 5, 5].map(Duration::from_secs);
    let waits = waits.all();
    assert_eq!(waits.len(), bounds.len());
    for (wait, bound) in waits.iter().zip(bounds) {
        assert!(*wait <= bound, "{waits:?}");
    }
    assert!(waits.windows(2).any(|pair| pair[0] != pair[1]), "{waits:?}");
    assert_eq!(requests(&server).await.len(), 7);
}

#[tokio::test]
async fn a_retry_after_is_waited_for_in_full() {
    let seconds = problem(429, "rate_limited").insert_header("retry-after", "17");
    // The clock of the test says 15:09:26.535897.
    let date = problem(503, "unavailable").insert_header("retry-after", "Sat, 14 Mar 2026 15:09:36 GMT");
    let past = problem(503, "unavailable").insert_header("retry-after", "Sat, 14 Mar 2026 15:09:16 GMT");
    let exact = ResponseTemplate::new(429)
        .insert_header("retry-after", "18")
        .set_body_json(json!({ "error": "Slow down.", "code": "rate_limited", "retry_after_ms": 17_250 }));
    let html = ResponseTemplate::new(503).insert_header("retry-after", "3").set_body_string("<html>busy</html>");
    let nonsense = problem(503, "unavailable").insert_header("retry-after", "soon");
    for (response, at_least) in [
        (seconds, Duration::from_secs(17)),
        (date, Duration::from_micros(9_464_103)),
        (past, Duration::ZERO),
        (exact, Duration::from_millis(17_250)),
        (html, Duration::from_secs(3)),
        (nonsense, Duration::ZERO),
    ] {
        let server = serve(vec![response, ok(200)]).await;
        let (client, waits) = client(&server);
        client.contacts().get(id()).await.unwrap();
        let waits = waits.all();
        // The first wait without a Retry-After is at most 250 ms.
        let most = at_least + Duration::from_millis(250);
        assert!(waits.len() == 1 && waits[0] >= at_least && waits[0] <= most, "{waits:?}, not {at_least:?}");
    }
}

#[tokio::test]
async fn a_wait_beyond_the_total_fails_at_once() {
    let long = problem(429, "rate_limited").insert_header("retry-after", "91");
    let server = serve(vec![long]).await;
    let (client, waits) = client(&server);
    let error = client.contacts().get(id()).await.unwrap_err();
    assert_eq!((error.status(), error.attempts()), (Some(429), 1));
    assert_eq!(error.retry_after(), Some(Duration::from_secs(91)));
    assert_eq!(waits.all(), []);

    // Waits add up.
    let server = serve(vec![problem(429, "rate_limited").insert_header("retry-after", "44")]).await;
    let (client, waits) = crate::fixture::client(&server);
    assert_eq!(client.contacts().get(id()).await.unwrap_err().attempts(), 3);
    assert_eq!(waits.all().len(), 2);
}

#[tokio::test]
async fn what_the_service_refuses_is_not_repeated() {
    for status in [400, 401, 403, 404, 405, 408, 409, 412, 413, 415, 500] {
        let server = serve(vec![problem(status, "some_code")]).await;
        let (client, waits) = client(&server);
        let error = client.contacts().create(&ada()).await.unwrap_err();
        assert_eq!((error.status(), error.code(), error.attempts()), (Some(status), Some("some_code"), 1));
        assert_eq!((waits.all().len(), requests(&server).await.len()), (0, 1));
    }
}

#[tokio::test]
async fn a_create_whose_first_attempt_is_still_running_is_asked_for_again() {
    let server = serve(vec![problem(409, "idempotency_in_progress"), ok(201)]).await;
    let (client, waits) = client(&server);
    client.contacts().create(&ada()).await.unwrap();
    assert_eq!(waits.all().len(), 1);
}

#[tokio::test]
async fn a_delete_that_was_done_before_its_response_was_lost_succeeds() {
    let server = serve(vec![problem(503, "unavailable"), problem(404, "not_found")]).await;
    let (client, _) = client(&server);
    client.contacts().delete(id()).await.unwrap();

    // A 429 did nothing, so what is missing was missing before.
    let server = serve(vec![problem(429, "rate_limited"), problem(404, "not_found")]).await;
    let (client, _) = crate::fixture::client(&server);
    assert_eq!(client.contacts().delete(id()).await.unwrap_err().status(), Some(404));
}

#[tokio::test]
async fn never_makes_one_attempt() {
    let server = serve(vec![problem(503, "unavailable")]).await;
    let (builder, waits) = builder(&server.uri());
    let client = builder.retry(RetryPolicy::never()).build().unwrap();
    assert_eq!(client.contacts().get(id()).await.unwrap_err().attempts(), 1);
    assert_eq!(waits.all(), []);
}

/// Accepts connections, and ends each after it has read a request and written the next of these texts.
async fn cutting(texts: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for text in texts {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 65_536];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    });
    url
}

fn whole(status: &str) -> String {
    let body = json!({ "data": contact() }).to_string();
    format!("HTTP/1.1 {status}\r\netag: \"v1\"\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_lost_connection_is_tried_again() {
    let half = whole("201 Created");
    let half = half[..half.len() - 10].to_owned();
    let url = cutting(vec![String::new(), "HTTP/1.1 201".into(), half, whole("201 Created")]).await;
    let (builder, waits) = builder(&url);
    let created = builder.build().unwrap().contacts().create(&ada()).await.unwrap();
    assert_eq!(created.first_name.as_ref().unwrap().as_str(), "Ada");
    assert_eq!(waits.all().len(), 3);
}

#[tokio::test]
async fn the_error_of_a_lost_connection_says_what_happened() {
    let url = cutting(vec![String::new()]).await;
    let (builder, _) = builder(&url);
    let client = builder.retry(RetryPolicy::never()).build().unwrap();
    let Error::Transport(error) = client.contacts().get(id()).await.unwrap_err() else { panic!("no response") };
    assert_eq!((error.kind, error.attempts), (TransportErrorKind::ConnectionLost, 1));
}

#[tokio::test]
async fn a_service_that_is_not_there_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (builder, waits) = builder(&url);
    let error = builder.build().unwrap().contacts().get(id()).await.unwrap_err();
    let Error::Transport(error) = error else { panic!("{error}") };
    assert_eq!((error.kind, error.attempts), (TransportErrorKind::NotConnected, 4));
    assert_eq!(waits.all().len(), 3);
    assert_eq!(error.to_string(), "no connection to the service after 4 attempts");
}

#[tokio::test]
async fn an_attempt_without_a_response_times_out() {
    let server = wiremock::MockServer::start().await;
    let slow = ok(200).set_delay(Duration::from_secs(60));
    wiremock::Mock::given(wiremock::matchers::any())
        .respond_with(InTurn::new(vec![slow, ok(200)]))
        .mount(&server)
        .await;
    let (builder, waits) = builder(&server.uri());
    let client = builder.timeout(Duration::from_millis(300)).build().unwrap();
    client.contacts().get(id()).await.unwrap();
    assert_eq!(waits.all().len(), 1);
}
