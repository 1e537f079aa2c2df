//! Erasing contacts: in steps, whatever they had, and never those of others.

use serde_json::{Value, json};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::error::Error;
use svc_core::personal::{self, Erasure, ErasureCreate, STEP};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::resources::jobs::Job;
use svc_core::values::TenantId;

use crate::{Fixture, json_of};

fn erase(fixture: &Fixture, tenant: TenantId, id: ContactId) -> Result<Erasure, Error> {
    let input = ErasureCreate { reason: "asked by letter".parse().unwrap() };
    fixture.write((tenant, id, input), async |tx, (tenant, id, input)| personal::erase(tx, *tenant, *id, input).await)
}

/// Every field of a record is either emptied or part of its skeleton. A new one has to be in one of the lists.
#[test]
fn every_field_of_a_record_is_erased_or_a_skeleton() {
    let fixture = Fixture::new();
    let contact: Contact = fixture
        .create(json!({
            "email": "ada@example.com", "first_name": "Ada", "last_name": "Lovelace", "phone": "1", "company_name": "Engines",
            "city": "Perth", "state": "WA", "postcode": "6000",
        }))
        .unwrap();
    let job: Job = fixture
        .create(json!({
            "title": "Mend", "job_type": "repair", "priority": "low", "contact_id": contact.id, "site_address": "1 Ada St",
            "site_suburb": "Perth", "site_state": "WA", "site_postcode": "6000", "estimated_total": 10,
            "scheduled_start": "2026-03-20T09:00:00Z", "scheduled_end": "2026-03-20T10:00:00Z",
        }))
        .unwrap();
    let booking: Booking = fixture
        .create(json!({ "contact_id": contact.id, "service_name": "Visit", "notes": "Ada", "start_time": "2026-03-20T09:00:00Z" }))
        .unwrap();
    fixture.new_events();
    erase(&fixture, fixture.tenant, contact.id).unwrap();
    let events = fixture.new_events();
    assert_eq!((events.len(), events[0].data.get()), (1, format!(r#"{{"id":"{}"}}"#, contact.id).as_str()));
    let skeletons = [
        (
            json_of(&job),
            json_of(&fixture.get(job.id).unwrap()),
            "job_number title status job_type priority scheduled_start \
             scheduled_end estimated_total",
        ),
        (json_of(&booking), json_of(&fixture.get(booking.id).unwrap()), "service_name start_time end_time status"),
    ];
    for (before, after, kept) in skeletons {
        for (field, value) in before.as_object().unwrap().iter().filter(|(_, value)| !value.is_null()) {
            let is_kept = kept.split_whitespace().chain(["id", "contact_id", "created_at"]).any(|name| name == field);
            let want = if is_kept { value } else { &Value::Null };
            if field != "updated_at" {
                assert_eq!(&after[field], want, "{field}");
            }
        }
        assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    }
    let (tenant, id) = (fixture.tenant, contact.id);
    let data = fixture.write((tenant, id), async |tx, &(tenant, id)| personal::data_of(tx, tenant, id).await).unwrap();
    let left = json_of(&data.contact);
    let left: Vec<&String> =
        left.as_object().unwrap().iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name).collect();
    assert_eq!(left, ["id", "created_at", "updated_at", "deleted_at"]);
    assert!(!json_of(&data.events).to_string().contains("Ada"), "{data:?}");
}

#[test]
fn a_contact_with_many_events_is_erased_in_steps() {
    let fixture = Fixture::new();
    let contact = fixture.contact();
    for number in 1..=STEP + 20 {
        fixture.update::<Contact>(contact, json!({ "phone": number.to_string() })).unwrap();
    }
    fixture.delete::<Contact>(contact).unwrap();
    let steps: Vec<Erasure> = (0..3).map(|_| erase(&fixture, fixture.tenant, contact).unwrap()).collect();
    let step = |contacts, events, is_complete| Erasure { contacts, events, is_complete, ..Erasure::default() };
    // With the events of its creation and its deletion.
    assert_eq!(steps, [step(1, STEP, false), step(0, 22, true), step(0, 0, true)]);
}

#[test]
fn the_contact_of_another_account_is_not_found() {
    let fixture = Fixture::new();
    let contact = fixture.contact();
    let other = fixture.write((), async |tx, ()| tenants::create(tx, TenantCreate::named("Other")).await).unwrap().id;
    assert_eq!(erase(&fixture, other, contact), Err(Error::NotFound));
    let data = fixture.write((other, contact), async |tx, &(tenant, id)| personal::data_of(tx, tenant, id).await);
    assert_eq!(data.map(drop), Err(Error::NotFound));
    assert!(fixture.get(contact).unwrap().email.is_some());
}
