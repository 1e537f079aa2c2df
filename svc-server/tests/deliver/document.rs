//! Deliveries of every kind of event are what the OpenAPI document says under `webhooks`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::bookings::{Booking, BookingCreate, BookingUpdate};
use svc_core::resources::contacts::{Contact, ContactCreate, ContactUpdate};
use svc_core::resources::crud;
use svc_core::resources::invoices::{self, InvoiceCreate};
use svc_core::resources::jobs::{Job, JobCreate, JobUpdate};
use svc_core::resources::quotes::{Quote, QuoteCreate, QuoteUpdate};
use svc_core::store::Tx;
use svc_core::values::{EventKind, EventKinds, TenantId};
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::events;
use svc_core::webhooks::subscriptions::{self, WebhookCreate, WebhookSubscription};
use svc_server::api::openapi::document;
use svc_server::api::routes::{Version, operations};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::engine::Fixture;

fn body(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Fires events of all kinds, of records with few fields and with many, and a test of each kind.
async fn fire_every_kind(tx: &mut dyn Tx, tenant: TenantId, url: &str) -> Result<(), Error> {
    let hook = WebhookCreate::from_body(&body(&json!({ "url": url, "events": ["*"], "signature": "ed25519" })))?;
    let hook = crud::create::<WebhookSubscription>(tx, tenant, hook).await?;
    for kind in EventKind::BUILT_IN {
        subscriptions::send_test(tx, tenant, hook.id, Some(*kind)).await?;
    }

    let contact =
        crud::create::<Contact>(tx, tenant, ContactCreate::from_body(br#"{"email": "ada@example.com"}"#)?).await?;
    let full = json!({
        "email": "ada@example.com", "first_name": "Ada", "last_name": "Nguyen", "phone": "0491 570 006",
        "company_name": "Harbour Cafe", "city": "Sydney", "state": "NSW", "postcode": "2000",
    });
    crud::update::<Contact>(tx, tenant, contact.id, ContactUpdate::from_body(&body(&full))?).await?;

    let booking = json!({ "contact_id": contact.id, "service_name": "Repair", "start_time": "2026-03-14T15:00:00Z" });
    let booking = crud::create::<Booking>(tx, tenant, BookingCreate::from_body(&body(&booking))?).await?;
    let cancelled = BookingUpdate::from_body(br#"{"status": "cancelled", "notes": "rain"}"#)?;
    crud::update::<Booking>(tx, tenant, booking.id, cancelled).await?;

    let quote = json!({ "contact_id": contact.id, "total": 1320.5 });
    let quote = crud::create::<Quote>(tx, tenant, QuoteCreate::from_body(&body(&quote))?).await?;
    for status in ["accepted", "declined"] {
        let update = QuoteUpdate::from_body(&body(&json!({ "status": status })))?;
        crud::update::<Quote>(tx, tenant, quote.id, update).await?;
    }

    let job = json!({ "title": "Replace hot water system", "status": "scheduled", "contact_id": contact.id });
    let job = crud::create::<Job>(tx, tenant, JobCreate::from_body(&body(&job))?).await?;
    let completed = JobUpdate::from_body(br#"{"status": "completed", "actual_total": 990}"#)?;
    crud::update::<Job>(tx, tenant, job.id, completed).await?;

    let invoice = json!({ "contact_id": contact.id, "total": 1320.5, "due_date": "2026-03-28" });
    let invoice = invoices::create(tx, tenant, InvoiceCreate::from_body(&body(&invoice))?).await?;
    invoices::send(tx, tenant, invoice.id).await?;
    invoices::resend(tx, tenant, invoice.id).await?;
    invoices::pay(tx, tenant, invoice.id, None).await?;
    invoices::refund(tx, tenant, invoice.id, None).await?;
    let draft = invoices::create(tx, tenant, InvoiceCreate::from_body(br#"{"total": 0}"#)?).await?;
    invoices::void(tx, tenant, draft.id).await?;

    crud::delete::<Contact>(tx, tenant, contact.id).await?;
    for kind in EventKind::BUILT_IN.iter().filter(|kind| kind.is_external()) {
        events::record_external(tx, tenant, *kind, &json!({ "id": 4711, "guests": ["Ada Nguyen"] })).await?;
        events::record_external(tx, tenant, *kind, &json!({ "id": "stay-1" })).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn deliveries_of_every_kind_match_the_document() {
    let receiver = MockServer::start().await;
    Mock::given(any()).respond_with(ResponseTemplate::new(204)).mount(&receiver).await;
    let fixture = Fixture::start(&[]).await;
    let (tenant, url) = (fixture.tenant, receiver.uri());
    let fired =
        fixture.store.write("test", (tenant, url), async |tx, (tenant, url)| fire_every_kind(tx, *tenant, url).await);
    fired.await.unwrap();
    let is_done = |status| status == DeliveryStatus::Succeeded;
    fixture.until(|deliveries| deliveries.iter().all(|delivery| is_done(delivery.status))).await;
    fixture.stop().await;

    let document = document(&operations(), "", Version::V1, &EventKinds::default());
    let (mut kinds, mut tests) = (BTreeSet::new(), BTreeSet::new());
    for request in receiver.received_requests().await.unwrap() {
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        let kind = sent["event"].as_str().unwrap();
        let webhook = &document["webhooks"][kind]["post"];
        check_headers(&document, webhook, &request);
        let mut schema = webhook["requestBody"]["content"]["application/json"]["schema"].clone();
        schema["components"] = document["components"].clone();
        assert_eq!(failures(&schema, &sent), [""; 0], "{sent}");
        let is_sample = sent["data"] == webhook["requestBody"]["content"]["application/json"]["example"]["data"];
        assert_eq!(request.headers.contains_key("x-svc-test"), is_sample, "{sent}");
        if is_sample { &mut tests } else { &mut kinds }.insert(kind.to_owned());
    }
    let all: BTreeSet<String> = EventKind::BUILT_IN.iter().map(|kind| kind.to_string()).collect();
    assert_eq!((&kinds, &tests), (&all, &all));
}

/// Checks that a delivery has the headers of the document, and no others besides those of every POST.
fn check_headers(document: &Value, webhook: &Value, request: &Request) {
    let mut names = BTreeSet::from(["content-length", "content-type", "host", "user-agent"].map(str::to_owned));
    for parameter in webhook["parameters"].as_array().unwrap() {
        let parameter = document.pointer(&parameter["$ref"].as_str().unwrap()[1..]).unwrap();
        let name = parameter["name"].as_str().unwrap().to_ascii_lowercase();
        if parameter["required"] != true && !request.headers.contains_key(&name) {
            continue;
        }
        let text = request.headers[name.as_str()].to_str().unwrap();
        let value = match parameter["schema"]["type"].as_str() {
            Some("integer") => json!(text.parse::<i64>().unwrap()),
            _ => json!(text),
        };
        assert_eq!(failures(&parameter["schema"], &value), [""; 0], "{name}");
        names.insert(name);
    }
    assert_eq!(request.headers.keys().map(|name| name.as_str().to_owned()).collect::<BTreeSet<_>>(), names);
    assert_eq!(
        (request.method.as_str(), &request.headers["content-type"]),
        ("POST", &"application/json".parse().unwrap())
    );
}

fn failures(schema: &Value, value: &Value) -> Vec<String> {
    let validator = jsonschema::draft202012::options().should_validate_formats(true).build(schema).unwrap();
    validator.iter_errors(value).map(|error| error.to_string()).collect()
}
