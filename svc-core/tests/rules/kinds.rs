//! Checks that an operation fires each kind of event.

use std::collections::BTreeSet;

use serde_json::json;
use svc_core::error::Error;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices;
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::{self, Quote};
use svc_core::values::EventKind;
use svc_core::webhooks::events;

use super::Rules;
use super::invoices::{PAY, RESEND, SEND, VOID};

#[test]
fn every_kind_is_fired_by_an_operation() {
    let fixture = Rules::new();
    let tenant = fixture.tenant;
    let contact: Contact = fixture.create(json!({ "email": "ada@example.com" })).unwrap();
    fixture.update::<Contact>(contact.id, json!({ "city": "Perth" })).unwrap();

    let invoice = fixture.invoice(json!({ "total": 100, "contact_id": contact.id })).unwrap().id;
    for step in [SEND, RESEND, PAY] {
        fixture.step(step, invoice).unwrap();
    }
    fixture
        .write((tenant, invoice), async |tx, &(tenant, invoice)| {
            invoices::refund(tx, tenant, invoice, invoices::PaymentCreate::default()).await
        })
        .unwrap();
    let voided = fixture.invoice(json!({ "total": 100 })).unwrap().id;
    fixture.step(VOID, voided).unwrap();

    let quote = |status: &str| {
        let quote: Quote = fixture.create(json!({ "contact_id": contact.id, "total": 5 })).unwrap();
        fixture.update::<Quote>(quote.id, json!({ "status": status })).unwrap().id
    };
    let (accepted, declined) = (quote("sent"), quote("viewed"));
    fixture
        .write((tenant, accepted), async |tx, &(tenant, accepted)| quotes::accept(tx, tenant, accepted).await)
        .unwrap();
    fixture
        .write((tenant, declined), async |tx, &(tenant, declined)| quotes::decline(tx, tenant, declined).await)
        .unwrap();

    let times = json!({ "contact_id": contact.id, "service_name": "Tune-up", "start_time": "2026-03-20T09:00:00Z" });
    let booking: Booking = fixture.create(times).unwrap();
    fixture.update::<Booking>(booking.id, json!({ "status": "cancelled" })).unwrap();
    let job: Job = fixture.create(json!({ "title": "New tap", "status": "scheduled" })).unwrap();
    fixture.update::<Job>(job.id, json!({ "status": "completed" })).unwrap();
    fixture.delete::<Contact>(contact.id).unwrap();

    for kind in EventKind::BUILT_IN.iter().copied().filter(|kind| kind.is_external()) {
        let emitted = fixture.write((tenant, kind), async |tx, &(tenant, kind)| {
            events::record_external(tx, tenant, kind, &json!({ "id": "stay-1" })).await?;
            Ok::<_, Error>(())
        });
        emitted.unwrap();
    }

    let fired: BTreeSet<EventKind> = fixture.new_events().iter().map(|event| event.kind).collect();
    assert_eq!(fired, EventKind::BUILT_IN.iter().copied().collect());
    assert_eq!(fired.len(), 29, "the contract lists 29 kinds");
}
