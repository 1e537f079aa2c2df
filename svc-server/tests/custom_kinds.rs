//! Event kinds of the application, over HTTP: subscriptions, the OpenAPI document and deliveries.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use svc_core::error::FieldCode;
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;
use svc_core::values::EventKinds;
use svc_core::webhooks::events::Event;
use svc_server::{Background, Builder};
use svc_test_support::fixture::local_env;
use svc_test_support::{Call, Fixture, TestServer};
use tokio::sync::oneshot;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

/// Returns a server with the event kinds of a file.
async fn server() -> (TestServer, Background) {
    let mut env = local_env();
    env.event_kinds = EventKinds::from_json(include_bytes!("../../fixtures/event-kinds/events.json")).unwrap();
    let fixture = Fixture::on(MemoryStore::new(env)).await;
    let (api, background) = Builder::new(&fixture.svc).build();
    (TestServer::with_key(fixture, api).await, background)
}

#[tokio::test]
async fn the_api_takes_the_kinds_that_are_registered() {
    let (server, _) = server().await;
    let body = |events: &[&str]| json!({ "url": "https://example.com/hooks", "events": events });
    let created = server.expect(201, Call::post("/webhooks", body(&["order.shipped", "job.created"]))).await;
    assert_eq!(created.data()["events"], json!(["order.shipped", "job.created"]));
    let path = format!("/webhooks/{}", created.id());
    let changed = server.expect(200, Call::patch(&path, json!({ "events": ["order.returned"] }))).await;
    assert_eq!(changed.data()["events"], json!(["order.returned"]));

    let unknown = server.expect(400, Call::patch(&path, json!({ "events": ["order.lost"] }))).await.json();
    assert_eq!(unknown["errors"][0]["code"], "invalid_enum", "{unknown}");
    // All failing fields are named at once.
    let wrong = json!({ "url": 7, "events": ["order.lost"] });
    let both = server.expect(400, Call::post("/webhooks", wrong)).await.json();
    assert_eq!(both["errors"].as_array().unwrap().len(), 2, "{both}");

    let document = server.expect(200, Call::get("/openapi.json")).await.json();
    assert_eq!(document["webhooks"].as_object().unwrap().len(), 31);
}

#[tokio::test]
async fn events_of_custom_kinds_are_delivered_also_when_no_longer_registered() {
    let (server, background) = server().await;
    let receiver = MockServer::start().await;
    let (arrived, mut arrivals) = tokio::sync::mpsc::unbounded_channel();
    Mock::given(method("POST"))
        .respond_with(move |request: &wiremock::Request| {
            let body: Value = serde_json::from_slice(&request.body).unwrap();
            assert_eq!(request.headers["x-svc-event"].to_str().unwrap(), body["event"]);
            arrived.send((body["event"].clone(), body["data"].clone())).unwrap();
            ResponseTemplate::new(204)
        })
        .mount(&receiver)
        .await;
    let account = server.account();
    server.webhook(&receiver.uri(), "*").await;
    let (stop, stopped) = oneshot::channel::<()>();
    let background = tokio::spawn(background.run(async { drop(stopped.await) }));

    let order = json!({ "id": "A-18", "to": { "city": "Hobart" } });
    account.events().emit("order.shipped".parse().unwrap(), order.clone()).await.unwrap();
    assert_eq!(arrivals.recv().await.unwrap(), (json!("order.shipped"), order));
    let refused = account.events().emit("order.shipped".parse().unwrap(), json!({ "id": "A-18" })).await;
    assert!(matches!(refused, Err(Error::Validation(_))));

    // Numbers that programs cannot read are refused, wherever they are.
    let huge = "9".repeat(500_000);
    for number in ["1e400", "-1e400", &huge] {
        let data = RawValue::from_string(format!(r#"{{"id":"A-18","to":{{"city":["Hobart",{number}]}}}}"#)).unwrap();
        for kind in ["order.shipped", "stay.created"] {
            let refused = account.events().emit(kind.parse().unwrap(), &data).await;
            let Err(Error::Validation(violations)) = refused else { panic!("{kind} takes {number:.10}") };
            let found = &violations.as_slice()[0];
            assert_eq!((found.field.as_str(), found.code), ("data.to.city.1", FieldCode::OutOfRange));
        }
    }

    // An event of a kind that was registered when it was emitted.
    let missed = server.store().write("test", server.tenant, async |tx, &tenant| {
        let at = tx.advance_clock(tenant).await?.ok_or(Error::NotFound)?;
        let kind: EventKind = "order.lost".parse().unwrap();
        let data = to_raw_value(&json!({ "id": 7 })).unwrap();
        let event = Event { id: tx.env().id(at), tenant_id: tenant, kind, data, created_at: at, only_for: None };
        tx.insert_event(&event).await?;
        let to = tx.matching_subscriptions(tenant, kind).await?.remove(0).subscription_id;
        tx.insert_delivery(&event.delivery_to(tx.env().id(at), to, false)).await?;
        Ok(())
    });
    missed.await.unwrap();
    assert_eq!(arrivals.recv().await.unwrap(), (json!("order.lost"), json!({ "id": 7 })));
    drop(stop);
    background.await.unwrap();
}
