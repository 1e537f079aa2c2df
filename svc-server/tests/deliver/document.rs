//! Deliveries of every kind of event are what the OpenAPI document says under `webhooks`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::operational::PLATFORM_ACCOUNT;
use svc_core::accounts::tenants::{self, DeveloperAccess};
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::platform::operations::public;
use svc_core::resources::bookings::{Booking, BookingCreate, BookingUpdate};
use svc_core::resources::contacts::{Contact, ContactCreate, ContactUpdate};
use svc_core::resources::crud;
use svc_core::resources::invoices::{self, InvoiceCreate};
use svc_core::resources::jobs::{Job, JobCreate, JobUpdate};
use svc_core::resources::quotes::{Quote, QuoteCreate, QuoteUpdate};
use svc_core::store::{DeliveryFilter, EventFilter, EventWithActor, Tx};
use svc_core::values::{EventKind, EventKinds, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryStatus};
use svc_core::webhooks::engine::{AttemptResult, Batch, Policy, run_batch};
use svc_core::webhooks::subscriptions::{self, WebhookCreate, WebhookSubscription};
use svc_core::webhooks::{events, operational};
use svc_server::api::openapi::document;
use svc_server::kernel::versions::Version;
use svc_test_support::fixture::attempt_log;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use super::engine::Sender;

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
    invoices::pay(tx, tenant, invoice.id, invoices::PaymentCreate::default()).await?;
    invoices::refund(tx, tenant, invoice.id, invoices::PaymentCreate::default()).await?;
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
    let fixture = Sender::start(&[]).await;
    let (tenant, url) = (fixture.tenant, receiver.uri());
    let fired =
        fixture.store().write("test", (tenant, url), async |tx, (tenant, url)| fire_every_kind(tx, *tenant, url).await);
    fired.await.unwrap();
    let is_done = |status| status == DeliveryStatus::Succeeded;
    fixture.until(|deliveries| deliveries.iter().all(|delivery| is_done(delivery.status))).await;
    fixture.stop().await;

    let document = document(&public(), "", Version::V1, &EventKinds::default());
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
    let mut names =
        BTreeSet::from(["accept", "content-length", "content-type", "host", "user-agent"].map(str::to_owned));
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

/// Lets each operational event about an account and its endpoints happen once: the endpoint has failed nine times when its next
/// delivery is gone for good.
async fn let_operational_events_happen(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    for access in [DeveloperAccess::Suspended, DeveloperAccess::Approved] {
        tenants::update(tx, tenant.0, |tenant| tenant.developer_access = access).await?;
    }
    let day = Duration::from_secs(24 * 60 * 60);
    keys::create(tx, tenant, KeyCreate { expires_in: Some(day), ..KeyCreate::default() }).await?;
    let hook = WebhookCreate::from_body(&body(&json!({ "url": "https://example.com/hooks", "events": ["*"] })))?;
    let mut hook = crud::create::<WebhookSubscription>(tx, tenant, hook).await?;
    hook.consecutive_failures = 9;
    tx.update_delivery_outcome(tenant, &hook).await?;

    let now = advance_clock(tx, tenant).await?;
    events::emit(tx, tenant, now, &[EventKind::StayCreated], &json!({ "id": 1 })).await?;
    let newest = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
    let mut delivery = tx.list_deliveries(tenant, &newest).await?.remove(0);
    delivery.claim(tx.env().id(now), now.checked_add(day).unwrap());
    tx.update_delivery(&delivery, None).await?;
    let log = AttemptLog { error: Some("status: 410".to_owned()), ..attempt_log(delivery.attempts, now, 410) };
    let outcome = AttemptResult { delivery, log, retry_after: None };
    run_batch(tx, &Policy::default(), &Batch::outcomes_only(tenant, vec![outcome])).await.map(drop)
}

/// Events about apps are compared with the document in `tests/oauth/document.rs`.
#[tokio::test(flavor = "multi_thread")]
async fn operational_events_match_the_document() {
    let fixture = Sender::start(&[]).await;
    let (tenant, store) = (fixture.tenant, Arc::clone(fixture.store()));
    fixture.stop().await;
    let url = "https://ops.example.com/hooks".parse().unwrap();
    operational::set_webhook(&*store, Some(&url)).await.unwrap();
    store.write("test", tenant, async |tx, &tenant| let_operational_events_happen(tx, tenant).await).await.unwrap();
    operational::report_expiring_keys(&*store).await.unwrap();
    operational::publish(&*store).await.unwrap();

    let document: Value = serde_json::from_str(&svc_server::api::openapi::text("platform-v1").unwrap()).unwrap();
    let all = EventFilter::newest(Timestamp::from_micros(0)..Timestamp::MAX, 100);
    let sent = store.read("test", all, async |tx, all| Ok(tx.list_events(PLATFORM_ACCOUNT, all).await?)).await.unwrap();
    let mut kinds = BTreeSet::new();
    for EventWithActor { event, .. } in sent {
        let body = &document["webhooks"][event.kind.as_str()]["post"]["requestBody"]["content"]["application/json"];
        let reference = body["schema"]["properties"]["data"]["$ref"].as_str().unwrap();
        let mut schema = document.pointer(&reference[1..]).unwrap().clone();
        let fields: BTreeSet<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
        schema["components"] = document["components"].clone();
        let data: Value = serde_json::from_str(event.data.get()).unwrap();
        assert_eq!(failures(&schema, &data), [""; 0], "{}: {data}", event.kind);
        assert_eq!(data.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>(), fields, "{}", event.kind);
        kinds.insert(event.kind.to_string());
    }
    let expected = ["account.approved", "delivery.exhausted", "endpoint.paused", "key.expiring"];
    assert_eq!(kinds, expected.map(str::to_owned).into());
}
