//! What the client sends to the platform API.

use futures_util::TryStreamExt as _;
use serde_json::{Value, json};
use svc_client::platform::prelude::*;
use wiremock::{MockServer, ResponseTemplate};

use crate::fixture::{ID, NOW, builder, header, problem, requests, serve};

const ACCOUNT: &str = "0195a3c8-8a00-7000-8000-00000000a001";

fn invoice() -> Value {
    json!({
        "id": ID, "invoice_number": "INV-0001", "contact_id": null, "status": "partial", "issue_date": "2026-03-14",
        "due_date": null, "total": 149.5, "amount_paid": 100, "currency": "AUD", "sent_at": null, "paid_at": null,
        "created_at": NOW, "updated_at": NOW,
    })
}

fn paid() -> ResponseTemplate {
    ResponseTemplate::new(200).insert_header("etag", "\"v2\"").set_body_json(json!({ "data": invoice() }))
}

fn account(server: &MockServer) -> AccountClient {
    let (builder, _) = builder(&server.uri());
    builder.build_platform().unwrap().account(ACCOUNT.parse().unwrap())
}

#[tokio::test]
async fn a_payment_is_repeated_under_its_idempotency_key() {
    let server = serve(vec![problem(503, "unavailable"), problem(429, "rate_limited"), paid()]).await;
    let invoices = account(&server).invoices();
    let id = ID.parse().unwrap();
    let version = invoices.pay(id, &PaymentCreate::of("100.00".parse().unwrap())).await.unwrap().etag;
    assert_eq!(version.as_str(), "\"v2\"");
    invoices.pay(id, &PaymentCreate::default()).await.unwrap();
    invoices.with_idempotency_key("bank-transfer-17").unwrap().refund(id, &PaymentCreate::default()).await.unwrap();

    let sent = requests(&server).await;
    let keys: Vec<_> = sent.iter().map(|request| header(request, "idempotency-key").unwrap()).collect();
    assert!(keys[0] == keys[1] && keys[1] == keys[2], "{keys:?}");
    assert_ne!(keys[2], keys[3]);
    assert_eq!(keys[4], "bank-transfer-17");
    let bodies: Vec<_> = sent.iter().map(|request| String::from_utf8_lossy(&request.body)).collect();
    assert_eq!(bodies[2..], [r#"{"amount":100}"#, "{}", "{}"]);
    assert_eq!(sent[4].url.path(), format!("/platform/v1/accounts/{ACCOUNT}/invoices/{ID}/refund"));
    assert!(invoices.with_idempotency_key("ü").is_err());
}

#[tokio::test]
async fn a_step_that_is_not_allowed_is_not_repeated() {
    let server = serve(vec![problem(409, "not_allowed")]).await;
    let refused = account(&server).invoices().void(ID.parse().unwrap()).await.unwrap_err();
    assert_eq!((refused.code(), refused.attempts()), (Some("not_allowed"), 1));
    // A step has no body, and so no media type.
    let sent = requests(&server).await;
    assert_eq!((sent.len(), sent[0].body.len(), header(&sent[0], "content-type")), (1, 0, None));
}

#[tokio::test]
async fn a_list_is_asked_for_what_it_takes() {
    let empty = ResponseTemplate::new(200).set_body_json(json!({ "data": [], "next_cursor": null }));
    let server = serve(vec![empty]).await;
    let account = account(&server);
    let of_webhook = WebhookDeliveryListFilter { status: Some(DeliveryStatus::Failed), ..Default::default() };
    let filter = DeliveryListFilter { subscription_id: None, of_webhook };
    let _: Vec<_> = account.keys().list().all().try_collect().await.unwrap();
    let _: Vec<_> = account.deliveries().list().filter(filter).all().try_collect().await.unwrap();
    account.audit_log().list().page().await.unwrap();
    let since = NOW.parse().unwrap();
    let _: Vec<_> = account.webhooks().attempts(ID.parse().unwrap(), since).try_collect().await.unwrap();
    let queries: Vec<_> =
        requests(&server).await.iter().map(|request| request.url.query().unwrap_or_default().to_owned()).collect();
    assert_eq!(queries, ["", "limit=200&status=failed", "", "since=2026-03-14T15%3A09%3A26.535897Z"]);
}

#[tokio::test]
async fn an_event_keeps_the_digits_of_its_data() {
    let event = json!({ "id": ID, "tenant_id": ACCOUNT, "kind": "stay.created", "data": {}, "is_test": false,
        "created_at": NOW });
    let text = json!({ "data": { "event": event, "deliveries": [] } }).to_string();
    let text = text.replace(r#""data":{},"#, r#""data":{"id":"stay-1","rate":1.50},"#);
    let server = serve(vec![ResponseTemplate::new(201).set_body_raw(text, "application/json")]).await;
    let data: AnyObject = serde_json::from_str(r#"{"id":"stay-1","rate":1.50}"#).unwrap();
    let emitted = account(&server).events().emit(EventKind::StayCreated, data.clone()).await.unwrap();
    assert_eq!(emitted.event.data, data);
    let sent = requests(&server).await;
    assert_eq!(sent[0].body, br#"{"kind":"stay.created","data":{"id":"stay-1","rate":1.50}}"#);
}
