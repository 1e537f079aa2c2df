//! Ordinary receivers, as subscribers write them in their own tests: what arrives, and what their answers cause.

use std::ops::Range;

use serde_json::Value;
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus};
use wiremock::matchers::{header, header_exists, header_regex, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::engine::Running;

/// The only wait before a retry, in milliseconds: far longer than a test.
const WAIT: u64 = 60_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_one_ordinary_post() {
    let receiver = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/hooks/svc"))
        .and(query_param("from", "svc"))
        .and(header("content-type", "application/json"))
        .and(header("x-svc-event", "contact.created"))
        .and(header("x-svc-attempt", "1"))
        .and(header_regex("x-svc-signature", "^sha256=[0-9a-f]{64}$"))
        .and(header_regex("webhook-signature", "^v1,[0-9A-Za-z+/]{43}=$"))
        .and(header_regex("webhook-timestamp", "^[0-9]{10}$"))
        .and(header_exists("host"))
        .respond_with(ResponseTemplate::new(204))
        .expect(1)
        .mount(&receiver)
        .await;
    let running = Running::start(&[WAIT]).await;
    running.subscribe(&format!("{}/hooks/svc?from=svc", receiver.uri())).await;
    let contact = running.contact("ada@example.com").await;
    running.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await;

    let request = receiver.received_requests().await.unwrap().remove(0);
    let mut names: Vec<&str> = request.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "content-length",
            "content-type",
            "host",
            "user-agent",
            "webhook-id",
            "webhook-signature",
            "webhook-timestamp",
            "x-svc-attempt",
            "x-svc-delivery",
            "x-svc-event",
            "x-svc-signature",
        ],
        "nothing else tells of the service"
    );
    let sent: Value = request.body_json().unwrap();
    let (data, at) = (serde_json::to_string(&contact).unwrap(), sent["delivered_at"].as_str().unwrap());
    let (kind, tenant) = ("contact.created", running.tenant);
    let whole = format!(r#"{{"event":"{kind}","data":{data},"delivered_at":"{at}","tenant_id":"{tenant}"}}"#);
    assert_eq!(String::from_utf8(request.body).unwrap(), whole);
    running.stop().await;
}

/// Sends one delivery that is answered with `answer`; what is stored of it, and in how many seconds it is due.
async fn answered(receiver: &MockServer, answer: ResponseTemplate) -> (Delivery, Option<i64>) {
    receiver.reset().await;
    Mock::given(method("POST")).and(path("/hook")).respond_with(answer).expect(1).mount(receiver).await;
    let running = Running::start(&[WAIT]).await;
    running.subscribe(&format!("{}/hook", receiver.uri())).await;
    running.contact("ada@example.com").await;
    let ended = |deliveries: &[Delivery]| deliveries[0].last_status.is_some();
    let delivery = running.until(ended).await.remove(0);
    let now = running.store.env().now();
    running.stop().await;
    receiver.verify().await;
    let due = delivery.next_attempt_at.map(|at| at.as_seconds() - now.as_seconds());
    (delivery, due)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_decides_what_follows() {
    /// Up to a tenth is added to a wait of our own; what the endpoint asks for is taken as it is.
    const OURS: Range<i64> = 58..67;
    let receiver = MockServer::start().await;
    let patient = |status| ResponseTemplate::new(status).insert_header("retry-after", "120");
    let elsewhere = format!("{}/elsewhere", receiver.uri());
    let moved = |status| ResponseTemplate::new(status).insert_header("location", elsewhere.as_str());
    for (answer, status, due) in [
        (ResponseTemplate::new(200).set_body_json(serde_json::json!({ "received": true })), 200, None),
        (ResponseTemplate::new(202), 202, None),
        (ResponseTemplate::new(410), 410, Some(OURS)),
        (patient(429), 429, Some(118..121)),
        (patient(503), 503, Some(118..121)),
        (ResponseTemplate::new(503), 503, Some(OURS)),
        (moved(302), 302, Some(OURS)),
        (moved(308), 308, Some(OURS)),
    ] {
        let (delivery, wait) = answered(&receiver, answer).await;
        let state = if due.is_none() { DeliveryStatus::Succeeded } else { DeliveryStatus::Pending };
        assert_eq!((delivery.last_status, delivery.status, delivery.attempts), (Some(status), state, 1));
        match (&due, wait) {
            (None, None) => {}
            (Some(due), Some(wait)) if due.contains(&wait) => {}
            other => panic!("{status}: {other:?}"),
        }
        let asked = receiver.received_requests().await.unwrap();
        assert_eq!(asked.len(), 1, "{status}: neither followed nor repeated");
    }
}
