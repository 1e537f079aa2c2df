//! Every kind of event has an operation that fires it.

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

use crate::House;
use crate::invoices::{PAY, RESEND, SEND, VOID};

#[test]
fn every_kind_is_fired_by_an_operation() {
    let house = House::new();
    let tenant = house.tenant;
    let contact: Contact = house.create(json!({ "email": "ada@example.com" })).unwrap();
    house.update::<Contact>(contact.id, json!({ "city": "Perth" })).unwrap();

    let invoice = house.invoice(json!({ "total": 100, "contact_id": contact.id })).unwrap().id;
    for step in [SEND, RESEND, PAY] {
        house.step(step, invoice).unwrap();
    }
    house.write(move |tx| Box::pin(invoices::refund(tx, tenant, invoice, None))).unwrap();
    let voided = house.invoice(json!({ "total": 100 })).unwrap().id;
    house.step(VOID, voided).unwrap();

    let quote = |status: &str| {
        let quote: Quote = house.create(json!({ "contact_id": contact.id, "total": 5 })).unwrap();
        house.update::<Quote>(quote.id, json!({ "status": status })).unwrap().id
    };
    let (accepted, declined) = (quote("sent"), quote("viewed"));
    house.write(move |tx| Box::pin(quotes::accept(tx, tenant, accepted))).unwrap();
    house.write(move |tx| Box::pin(quotes::decline(tx, tenant, declined))).unwrap();

    let times = json!({ "contact_id": contact.id, "service_name": "Tune-up", "start_time": "2026-03-20T09:00:00Z" });
    let booking: Booking = house.create(times).unwrap();
    house.update::<Booking>(booking.id, json!({ "status": "cancelled" })).unwrap();
    let job: Job = house.create(json!({ "title": "New tap", "status": "scheduled" })).unwrap();
    house.update::<Job>(job.id, json!({ "status": "completed" })).unwrap();
    house.delete::<Contact>(contact.id).unwrap();

    for kind in EventKind::ALL.iter().copied().filter(|kind| kind.is_external()) {
        let emitted = house.write(move |tx| {
            Box::pin(async move {
                events::record_external(tx, tenant, kind, &json!({ "id": "stay-1" })).await?;
                Ok::<_, Error>(())
            })
        });
        emitted.unwrap();
    }

    let fired: BTreeSet<EventKind> = house.new_events().iter().map(|event| event.kind).collect();
    assert_eq!(fired, EventKind::ALL.iter().copied().collect());
    assert_eq!(fired.len(), 29, "as many as the contract lists");
}
