//! Erasing contacts: in steps, whatever they had, and never those of others.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::error::Error;
use svc_core::personal::{self, ContactData, ContactDataParams, Erasure, ErasureCreate, STEP};
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::resources::jobs::Job;
use svc_core::store::DeliveryFilter;
use svc_core::values::{TenantId, Text};
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use svc_test_support::fixture::attempt_log;

use super::{Rules, json_of, time};

fn erase(fixture: &Rules, tenant: TenantId, id: ContactId) -> Result<Erasure, Error> {
    let input = ErasureCreate { reason: "asked by letter".parse().unwrap() };
    fixture.write((tenant, id, input), async |tx, (tenant, id, input)| personal::erase(tx, *tenant, *id, input).await)
}

/// Every field of a record is either emptied or part of its skeleton. A new one has to be in one of the lists.
#[test]
fn every_field_of_a_record_is_erased_or_a_skeleton() {
    let fixture = Rules::new();
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
        .create(json!({
            "contact_id": contact.id, "service_name": "Visit", "notes": "Ada", "start_time": "2026-03-20T09:00:00Z",
        }))
        .unwrap();
    fixture.new_events();
    erase(&fixture, fixture.tenant, contact.id).unwrap();
    let (tenant, id) = (fixture.tenant, contact.id);
    let data = fixture
        .write((tenant, id), async |tx, &(tenant, id)| {
            personal::page(tx, tenant, id, &ContactDataParams::default()).await
        })
        .unwrap();
    let events = json_of(&data.events);
    let event = |kind: &str| {
        let found = events.as_array().unwrap().iter().find(|event| event["kind"] == kind);
        found.unwrap_or_else(|| panic!("{kind}: {events}"))["data"].clone()
    };
    assert_eq!(event("contact.deleted"), json!({ "id": contact.id }));
    let records = [
        (json_of(&contact), json_of(&data.contact), event("contact.created"), "deleted_at"),
        (
            json_of(&job),
            json_of(&fixture.get(job.id).unwrap()),
            event("job.created"),
            "job_number title status job_type priority contact_id scheduled_start scheduled_end actual_start actual_end \
             estimated_total actual_total quote_id invoice_id",
        ),
        (
            json_of(&booking),
            json_of(&fixture.get(booking.id).unwrap()),
            event("booking.created"),
            "contact_id service_name start_time end_time status",
        ),
    ];
    for (before, after, in_event, skeleton) in records {
        let is_kept = |field: &str| skeleton.split(' ').chain(["id", "created_at"]).any(|name| name == field);
        for (field, value) in before.as_object().unwrap().iter().filter(|(field, _)| *field != "updated_at") {
            if is_kept(field) {
                assert_eq!((&after[field], &in_event[field]), (value, value), "{field} stays");
            } else {
                assert!(!value.is_null(), "{field} is to be erased, so this test has to set it, or it is to be kept");
                assert_eq!((&after[field], &in_event[field]), (&Value::Null, &Value::Null), "{field} is erased");
            }
        }
        assert!(after["updated_at"].as_str() > before["updated_at"].as_str());
    }
}

/// A response that came while the contact was erased goes when it is erased again.
#[test]
fn a_response_that_came_too_late_is_erased_by_another_time() {
    let fixture = Rules::new();
    let webhook = json!({ "url": "https://example.com/", "events": ["contact.created"] });
    fixture.create::<WebhookSubscription>(webhook).unwrap();
    let contact = fixture.contact();
    let tenant = fixture.tenant;
    assert!(erase(&fixture, tenant, contact).unwrap().is_complete);
    let log = AttemptLog {
        duration_ms: 1,
        response_body: Some("ada@example.com".to_owned()),
        ..attempt_log(1, time("2026-03-14T15:09:26Z"), 200)
    };
    let delivery = fixture.write((tenant, log), async |tx, (tenant, log)| {
        let mut delivery = tx.list_deliveries(*tenant, &DeliveryFilter::default()).await?.remove(0);
        delivery.attempts = 1;
        tx.update_delivery(&delivery, delivery.lease).await?;
        tx.insert_attempt(*tenant, delivery.id, log).await?;
        Ok(delivery.id)
    });
    let delivery = delivery.unwrap();
    assert_eq!(erase(&fixture, tenant, contact).unwrap().events, 1);
    let log = fixture
        .write((tenant, delivery), async |tx, &(tenant, id)| {
            let mut log = tx.attempts(tenant, id, u32::MAX, u32::MAX).await?;
            log.reverse();
            Ok(log)
        })
        .unwrap();
    assert_eq!((log.len(), log[0].response_body.as_deref()), (1, None));
}

/// No two jobs of an account change at the same time, or a copy that follows the changes would miss one of them.
#[test]
fn the_jobs_of_a_contact_are_erased_in_steps_and_change_one_after_the_other() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    for number in 0..STEP {
        fixture.create::<Job>(json!({ "title": number.to_string(), "contact_id": contact })).unwrap();
    }
    let tenant = fixture.tenant;
    let mut jobs = 0;
    let steps = (1..).find(|_| {
        let step = erase(&fixture, tenant, contact).unwrap();
        jobs += step.jobs;
        step.is_complete
    });
    // Each job is a change, and so is its event; the contact has one event.
    assert_eq!((steps, jobs), (Some(3), STEP));
    let data = fixture.write((tenant, contact), async |tx, &(tenant, id)| {
        personal::page(tx, tenant, id, &ContactDataParams::default()).await
    });
    let times: BTreeSet<_> = data.unwrap().jobs.iter().map(|job| job.updated_at).collect();
    assert_eq!(times.len(), STEP as usize);
}

#[test]
fn a_contact_with_many_events_is_erased_in_steps() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    for number in 1..=STEP + 20 {
        fixture.update::<Contact>(contact, json!({ "phone": number.to_string() })).unwrap();
    }
    fixture.delete::<Contact>(contact).unwrap();
    let steps: Vec<Erasure> = (0..4).map(|_| erase(&fixture, fixture.tenant, contact).unwrap()).collect();
    let step = |contacts, events, is_complete| Erasure { contacts, events, is_complete, ..Erasure::default() };
    // With the events of its creation and its deletion. The newest event says of the erasure no more than the id. Another time
    // goes through all of them again.
    assert_eq!(steps, [step(1, STEP - 1, false), step(0, 23, true), step(0, 0, false), step(0, 0, true)]);
}

/// Returns how many steps an erasure takes, and what it has emptied.
fn steps(fixture: &Rules, contact: ContactId) -> (u32, Erasure) {
    let (mut steps, mut all) = (0, Erasure::default());
    while !all.is_complete {
        let step = erase(fixture, fixture.tenant, contact).unwrap();
        assert!(step.jobs + step.bookings + step.events <= STEP, "a step is bounded: {step:?}");
        (steps, all) = (steps + 1, all.and(step));
    }
    (steps, all)
}

/// A step looks at no more than so many records and events, whatever the contact has and whatever of it is empty already. So
/// twice as much takes twice as many steps, and no step becomes slower.
#[test]
fn an_erasure_takes_as_many_steps_as_the_contact_has_records_and_events() {
    let found = [1, 2, 4].map(|size| {
        let fixture = Rules::new();
        let contact = fixture.contact();
        let booking = json!({
            "contact_id": contact, "service_name": "Visit", "notes": "Ada", "start_time": "2026-03-20T09:00:00Z",
        });
        for _ in 0..size * STEP / 2 {
            let id = fixture.create::<Booking>(booking.clone()).unwrap().id;
            fixture.update::<Booking>(id, json!({ "notes": "Ada L." })).unwrap();
        }
        // Each booking has two events; the contact has two, one of which says nothing but that it is gone.
        let (first, all) = steps(&fixture, contact);
        let (again, nothing) = steps(&fixture, contact);
        assert_eq!((all.bookings, all.events), (size * STEP / 2, size * STEP + 1));
        assert_eq!(nothing, Erasure { is_complete: true, ..Erasure::default() });
        let data = fixture.write((fixture.tenant, contact), async |tx, &(tenant, id)| {
            personal::page(tx, tenant, id, &ContactDataParams::default()).await
        });
        assert!(!json_of(&data.unwrap()).to_string().contains("Ada"));
        (first, again)
    });
    assert_eq!(found, [(2, 2), (4, 4), (7, 7)]);
}

#[test]
fn a_record_with_more_events_than_a_step_is_erased_in_steps() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let booking: Booking = fixture
        .create(json!({ "contact_id": contact, "service_name": "Visit", "start_time": "2026-03-20T09:00:00Z" }))
        .unwrap();
    for number in 0..2 * STEP {
        fixture.update::<Booking>(booking.id, json!({ "notes": number.to_string() })).unwrap();
    }
    let (count, all) = steps(&fixture, contact);
    assert_eq!((count, all.bookings), (3, 1));
    assert_eq!(all.events, 2 * STEP + 1, "what had no notes has nothing to erase");
    assert_eq!(fixture.get::<Booking>(booking.id).unwrap().notes, None);
}

#[test]
fn the_contact_of_another_account_is_not_found() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let other = fixture.write((), async |tx, ()| tenants::create(tx, TenantCreate::named("Other")).await).unwrap().id;
    assert_eq!(erase(&fixture, other, contact), Err(Error::NotFound));
    let data = fixture.write((other, contact), async |tx, &(tenant, id)| {
        personal::page(tx, tenant, id, &ContactDataParams::default()).await
    });
    assert_eq!(data.map(drop), Err(Error::NotFound));
    assert!(fixture.get(contact).unwrap().email.is_some());
}

/// Whoever has got events of the contact by its city learns of its end, which does not tell the city.
#[test]
fn a_filter_sees_what_the_contact_was() {
    let fixture = Rules::new();
    let contact: Contact = fixture.create(json!({ "email": "ada@example.com", "city": "Perth" })).unwrap();
    for city in ["Perth", "Sydney"] {
        let body =
            json!({ "url": "https://example.com/", "events": ["*"], "filter": format!("data.city == \"{city}\"") });
        fixture.create::<WebhookSubscription>(body).unwrap();
    }
    fixture.new_events();
    erase(&fixture, fixture.tenant, contact.id).unwrap();
    let event = fixture.new_events().remove(0);
    let (tenant, filter) = (fixture.tenant, DeliveryFilter::of_event(event.id));
    let deliveries =
        fixture.write((tenant, filter), async |tx, (tenant, filter)| Ok(tx.list_deliveries(*tenant, filter).await?));
    assert_eq!((deliveries.unwrap().len(), event.data.get().contains("Perth")), (1, false));
}

/// Returns a page of what is known of a contact.
fn page(fixture: &Rules, id: ContactId, cursor: Option<String>) -> Result<ContactData, Error> {
    let input = (fixture.tenant, id, ContactDataParams { cursor });
    fixture.write(input, async |tx, (tenant, id, params)| personal::page(tx, *tenant, *id, params).await)
}

#[test]
fn all_that_is_known_of_a_contact_comes_in_pages_however_much_it_is() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let notes = "n".repeat(4_000);
    for number in 0..430 {
        let body = json!({
            "contact_id": contact, "service_name": number.to_string(), "start_time": "2026-03-20T09:00:00Z", "notes": notes,
        });
        fixture.create::<Booking>(body).unwrap();
    }
    for _ in 0..120 {
        fixture.create::<Job>(json!({ "title": "Mend", "contact_id": contact })).unwrap();
    }
    for number in 0..250 {
        fixture.update::<Contact>(contact, json!({ "phone": number.to_string() })).unwrap();
    }
    let mut all = page(&fixture, contact, None).unwrap();
    let mut pages = 1;
    while let Some(cursor) = all.next_cursor.clone() {
        assert!(!all.is_complete, "there is another page");
        let next = page(&fixture, contact, Some(cursor)).unwrap();
        let records = next.bookings.len() + next.jobs.len();
        assert!(records < 250 && next.events.len() < 400, "{records} records and {} events", next.events.len());
        all = all.and(next);
        pages += 1;
    }
    assert!(all.is_complete && pages > 5, "{pages} pages");
    let names: BTreeSet<&str> =
        all.bookings.iter().filter_map(|booking| booking.service_name.as_ref()).map(Text::as_str).collect();
    assert_eq!((all.bookings.len(), names.len(), all.jobs.len()), (430, 430, 120));
    let events: BTreeSet<_> = all.events.iter().map(|event| event.id).collect();
    assert_eq!((all.events.len(), events.len()), (1 + 250 + 430 + 120, 801));
}

#[test]
fn a_page_belongs_to_its_contact() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let other = fixture.create::<Contact>(json!({ "email": "grace@example.com" })).unwrap().id;
    for _ in 0..200 {
        fixture.create::<Job>(json!({ "title": "Mend", "contact_id": contact })).unwrap();
    }
    let cursor = page(&fixture, contact, None).unwrap().next_cursor.unwrap();
    assert!(page(&fixture, contact, Some(cursor.clone())).is_ok());
    assert_eq!(page(&fixture, other, Some(cursor.clone())).map(drop), Err(Error::InvalidCursor));
    let [stage, rest] = [&cursor[..1], &cursor[1..]];
    for cursor in [format!("9{rest}"), format!("{stage}{rest}x"), stage.to_owned(), String::new(), format!("-1{rest}")]
    {
        assert_eq!(page(&fixture, contact, Some(cursor.clone())).map(drop), Err(Error::InvalidCursor), "{cursor}");
    }
}

/// A page looks for the payments or the events of no more than 200 records, also if there are none.
#[test]
fn a_page_of_all_data_ends_however_little_it_finds() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    for _ in 0..250 {
        fixture.invoice(json!({ "contact_id": contact, "total": 5 })).unwrap();
    }
    let (mut params, mut pages) = (ContactDataParams::default(), Vec::new());
    loop {
        let read = (fixture.tenant, contact, params.clone());
        let page = fixture
            .write(read, async |tx, (tenant, id, params)| personal::page(tx, *tenant, *id, params).await)
            .unwrap();
        pages.push((page.invoices.len(), page.events.len()));
        if page.next_cursor.is_none() {
            assert!(page.is_complete);
            break;
        }
        params.cursor = page.next_cursor;
    }
    // The second one ends after the payments of 200 invoices, and the third one has the events of the contact and of the 150
    // that it looks at after those of the other 50.
    assert_eq!(pages, [(200, 0), (50, 0), (0, 151), (0, 100)]);
}
