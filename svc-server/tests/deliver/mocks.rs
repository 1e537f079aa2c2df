//! Mock receivers, as subscribers use them in their own tests: the request that arrives, and the effect of each response.

use std::ops::Range;

use serde_json::Value;
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus};
use wiremock::matchers::{header, header_exists, header_regex, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::engine::Sender;

/// The delay before the only retry, in milliseconds. It is longer than a test.
const DELAY: u64 = 60_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_one_post_with_these_headers_and_this_body() {
    let receiver = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/hooks/svc"))
        .and(query_param("from", "svc"))
        .and(header("accept", "*/*"))
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
    let fixture = Sender::start(&[DELAY]).await;
    fixture.subscribe(&format!("{}/hooks/svc?from=svc", receiver.uri())).await;
    let contact = fixture.contact("ada@example.com").await;
    fixture.until(|deliveries| deliveries[0].status == DeliveryStatus::Succeeded).await;

    let request = receiver.received_requests().await.unwrap().remove(0);
    let mut names: Vec<&str> = request.headers.keys().map(http::HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "accept",
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
        "no other headers are sent"
    );
    let sent: Value = request.body_json().unwrap();
    let (data, at) = (serde_json::to_string(&contact).unwrap(), sent["delivered_at"].as_str().unwrap());
    let (kind, tenant) = ("contact.created", fixture.tenant);
    let whole = format!(r#"{{"event":"{kind}","data":{data},"delivered_at":"{at}","tenant_id":"{tenant}"}}"#);
    assert_eq!(String::from_utf8(request.body).unwrap(), whole);
    fixture.stop().await;
}

/// Sends one delivery to a receiver with this response. Returns the stored delivery, and in how many seconds it is due.
async fn deliver_to(receiver: &MockServer, response: ResponseTemplate) -> (Delivery, Option<i64>) {
    receiver.reset().await;
    Mock::given(method("POST")).and(path("/hook")).respond_with(response).expect(1).mount(receiver).await;
    let fixture = Sender::start(&[DELAY]).await;
    fixture.subscribe(&format!("{}/hook", receiver.uri())).await;
    fixture.contact("ada@example.com").await;
    let ended = |deliveries: &[Delivery]| deliveries[0].last_status.is_some();
    let delivery = fixture.until(ended).await.remove(0);
    let now = fixture.store().env().now();
    fixture.stop().await;
    receiver.verify().await;
    let due = delivery.next_attempt_at.map(|at| at.as_seconds() - now.as_seconds());
    (delivery, due)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_response_decides_the_status_and_the_next_attempt() {
    /// The configured delay with up to 10 % jitter. A `Retry-After` has no jitter.
    const SCHEDULED: Range<i64> = 58..67;
    let receiver = MockServer::start().await;
    let retry_after = |status| ResponseTemplate::new(status).insert_header("retry-after", "120");
    let elsewhere = format!("{}/elsewhere", receiver.uri());
    let moved = |status| ResponseTemplate::new(status).insert_header("location", elsewhere.as_str());
    for (response, status, due) in [
        (ResponseTemplate::new(200).set_body_json(serde_json::json!({ "received": true })), 200, None),
        (ResponseTemplate::new(202), 202, None),
        (ResponseTemplate::new(404), 404, Some(SCHEDULED)),
        (ResponseTemplate::new(410), 410, None),
        (retry_after(429), 429, Some(118..121)),
        (retry_after(503), 503, Some(118..121)),
        (ResponseTemplate::new(503), 503, Some(SCHEDULED)),
        (moved(302), 302, Some(SCHEDULED)),
        (moved(308), 308, Some(SCHEDULED)),
    ] {
        let (delivery, wait) = deliver_to(&receiver, response).await;
        let expected = match due {
            Some(_) => DeliveryStatus::Pending,
            None if status == 410 => DeliveryStatus::Failed,
            None => DeliveryStatus::Succeeded,
        };
        assert_eq!((delivery.last_status, delivery.status, delivery.attempts), (Some(status), expected, 1));
        match (&due, wait) {
            (None, None) => {}
            (Some(due), Some(wait)) if due.contains(&wait) => {}
            other => panic!("{status}: {other:?}"),
        }
        let requests = receiver.received_requests().await.unwrap();
        assert_eq!(requests.len(), 1, "{status}: the request is neither redirected nor repeated");
    }
}
