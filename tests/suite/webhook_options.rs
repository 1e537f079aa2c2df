//! What a subscription asks for beyond the contract: left out of responses unless it is set, and secret where it is secret.

use serde_json::{Value, json};
use svc_core::webhooks::options;

use crate::harness::{Call, TestServer, sample};

fn all() -> Value {
    json!({
        "headers": { "X-Team": "ledger", "X-Key": "s3cret-value" },
        "authentication": { "type": "basic", "username": "svc", "password": "s3cret-word" },
        "filter": "data.city == \"Perth\"",
        "payload": "thin",
        "max_per_second": 10,
        "max_in_flight": 2,
        "timeout": 5,
        "retry_schedule": [60, 600],
        "ordering": "record",
        "signature": "ed25519",
    })
}

/// Returns the options as a response has them.
fn shown() -> Value {
    let mut shown = all();
    shown["headers"] = json!(["x-team", "x-key"]);
    shown["authentication"] = json!({ "type": "basic", "username": "svc" });
    shown
}

fn with(options: &Value) -> Value {
    let mut body = json!({ "url": "https://hooks.example.com/svc", "events": ["*"] });
    body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
    body
}

/// The fields that a request has: keys are made by the service.
fn fields() -> impl Iterator<Item = &'static str> {
    options::FIELDS.into_iter().filter(|field| *field != "signing_keys")
}

fn options_of(webhook: &Value) -> Value {
    let members = webhook.as_object().unwrap().iter();
    members
        .filter(|(name, _)| fields().any(|field| field == *name))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[tokio::test]
async fn options_are_shown_only_where_they_are_set_and_without_secrets() {
    let server = TestServer::new();
    let plain = server.expect(201, Call::post("/webhooks", sample(&server, "webhooks", 1))).await;
    assert_eq!(options_of(&plain.data()), json!({}));
    let created = server.expect(201, Call::post("/webhooks", with(&all()))).await;
    assert_eq!(options_of(&created.data()), shown());
    let path = format!("/webhooks/{}", created.id());
    let read = server.expect(200, Call::get(&path)).await;
    assert_eq!((options_of(&read.data()), read.etag()), (shown(), created.etag()));
    let list = server.expect(200, Call::get("/webhooks")).await;
    assert_eq!(options_of(&list.json()["data"][0]), shown());
    assert_eq!(options_of(&list.json()["data"][1]), json!({}));
    for response in [&created, &read, &list] {
        assert!(!response.text().contains("s3cret"), "{}", response.text());
    }
    // A change of one leaves the others.
    let changed = server
        .expect(200, Call::patch(&path, json!({ "timeout": 7, "payload": "contract" })).header("if-match", read.etag()))
        .await;
    let mut want = shown();
    want["timeout"] = 7.into();
    want.as_object_mut().unwrap().remove("payload");
    assert_eq!(options_of(&changed.data()), want);
    let nothing: Value =
        fields().map(|field| (field.to_owned(), Value::Null)).collect::<serde_json::Map<_, _>>().into();
    let cleared = server.expect(200, Call::patch(&path, nothing)).await;
    assert_eq!(options_of(&cleared.data()), json!({}));
    server.expect(412, Call::delete(&path).header("if-match", read.etag())).await;
    server.expect(204, Call::delete(&path).header("if-match", cleared.etag())).await;
}

#[tokio::test]
async fn bad_options_name_the_field_and_the_reason() {
    let server = TestServer::new();
    let mut refused = String::new();
    for options in [
        json!({ "headers": { "X-SVC-Event": "a", "Host": "b" } }),
        json!({ "headers": { "X-Team": "line\nbreak" } }),
        json!({ "headers": ["X-Team"] }),
        json!({ "headers": { "Authorization": "Key 1" }, "authentication": { "type": "bearer", "token": "t" } }),
        json!({ "authentication": { "type": "oauth1" } }),
        json!({ "authentication": { "type": "basic", "username": "svc" } }),
        json!({ "filter": "data.city = 1" }),
        json!({ "filter": 7 }),
        json!({ "payload": "fat" }),
        json!({ "max_per_second": 0, "max_in_flight": 65, "timeout": 31 }),
        json!({ "retry_schedule": [1] }),
        json!({ "retry_schedule": [60, 60, 60, 60, 60, 60] }),
        json!({ "ordering": "tenant" }),
        json!({ "signature": "rsa", "signing_keys": [] }),
    ] {
        let body = server.expect(400, Call::post("/webhooks", with(&options))).await.json();
        refused.push_str(&format!("{options}\n  {body}\n"));
    }
    insta::assert_snapshot!(refused);
}

/// A filter decides before a delivery is written.
#[tokio::test]
async fn an_event_that_does_not_pass_the_filter_has_no_delivery() {
    let server = TestServer::new();
    let webhook =
        server.expect(201, Call::post("/webhooks", with(&json!({ "filter": "data.city == \"Perth\"" })))).await.id();
    for city in ["Perth", "Sydney"] {
        let contact = json!({ "email": format!("{city}@example.com"), "city": city });
        server.expect(201, Call::post("/contacts", contact)).await;
    }
    let tenant = server.seed.tenant;
    let deliveries = server.store.read("test", (tenant, webhook), async |tx, (tenant, webhook)| {
        let filter = svc_core::store::DeliveryFilter { subscription_id: webhook.parse().ok(), ..Default::default() };
        Ok(tx.list_deliveries(*tenant, &filter).await?)
    });
    assert_eq!(deliveries.await.unwrap().len(), 1);
}
