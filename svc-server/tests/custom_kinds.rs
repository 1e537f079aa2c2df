//! Event kinds of the application, over HTTP: subscriptions, the OpenAPI document and deliveries.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use svc_core::env::Env;
use svc_core::error::FieldCode;
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;
use svc_core::values::{EventKinds, HostPolicy};
use svc_core::webhooks::events::Event;
use svc_server::{Api, Background, Builder};
use tokio::sync::oneshot;
use wiremock::matchers::method;
use wiremock::{Mock, MockServer, ResponseTemplate};

/// A service with the event kinds of a file.
struct Fixture {
    svc: Svc,
    tenant: TenantId,
    key: String,
    api: Api,
    background: Background,
}

impl Fixture {
    async fn new() -> Self {
        let mut env = Env::system();
        env.webhook_hosts = HostPolicy::AllowPrivate;
        env.event_kinds = EventKinds::from_json(include_bytes!("../../fixtures/event-kinds/events.json")).unwrap();
        let svc = Svc::new(MemoryStore::new(env));
        let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await.unwrap().id;
        let key = svc.account(tenant).keys().create(KeyCreate { write: true, ..KeyCreate::default() }).await.unwrap();
        let (api, background) = Builder::new(&svc).build();
        Self { svc, tenant, key: key.text.reveal().to_owned(), api, background }
    }

    /// Returns the status and the body of a response.
    async fn call(&self, method: &str, path: &str, body: Value) -> (u16, Value) {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .header("authorization", format!("Bearer {}", self.key));
        let body = if body.is_null() { Bytes::new() } else { body.to_string().into() };
        let response = self.api.call(request.body(Full::new(body)).unwrap(), [127, 0, 0, 1].into()).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&body).unwrap_or_default())
    }
}

#[tokio::test]
async fn the_api_takes_the_kinds_that_are_registered() {
    let fixture = Fixture::new().await;
    let body = |events: &[&str]| json!({ "url": "https://example.com/hooks", "events": events });
    let (status, created) = fixture.call("POST", "/api/v1/webhooks", body(&["order.shipped", "job.created"])).await;
    assert_eq!((status, &created["data"]["events"]), (201, &json!(["order.shipped", "job.created"])));
    let path = format!("/api/v1/webhooks/{}", created["data"]["id"].as_str().unwrap());
    let (status, changed) = fixture.call("PATCH", &path, json!({ "events": ["order.returned"] })).await;
    assert_eq!((status, &changed["data"]["events"]), (200, &json!(["order.returned"])));

    let (status, unknown) = fixture.call("PATCH", &path, json!({ "events": ["order.lost"] })).await;
    assert_eq!((status, &unknown["errors"][0]["code"]), (400, &json!("invalid_enum")), "{unknown}");
    // All failing fields are named at once.
    let wrong = json!({ "url": 7, "events": ["order.lost"] });
    let (status, both) = fixture.call("POST", "/api/v1/webhooks", wrong).await;
    assert_eq!((status, both["errors"].as_array().unwrap().len()), (400, 2), "{both}");

    let (status, document) = fixture.call("GET", "/api/v1/openapi.json", Value::Null).await;
    assert_eq!((status, document["webhooks"].as_object().unwrap().len()), (200, 31));
}

#[tokio::test]
async fn events_of_custom_kinds_are_delivered_also_when_no_longer_registered() {
    let fixture = Fixture::new().await;
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
    let account = fixture.svc.account(fixture.tenant);
    let url = WebhookUrl::parse(&receiver.uri()).unwrap();
    account.webhooks().create(WebhookCreate::new(url, EventSet::All)).await.unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let background = tokio::spawn(fixture.background.run(async { drop(stopped.await) }));

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
    let tenant = fixture.tenant;
    let missed = fixture.svc.store().write("test", tenant, async |tx, &tenant| {
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
