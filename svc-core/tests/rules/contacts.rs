//! Contacts: unique emails, changes without effect, and deletion.

use serde_json::json;
use svc_core::accounts::tenants;
use svc_core::error::Error;
use svc_core::resources::bookings::Booking;
use svc_core::resources::contacts::Contact;

use super::{Rules, json_of, refusal, time};

#[test]
fn a_new_contact_has_the_fields_that_were_sent() {
    let fixture = Rules::new();
    let body = json!({ "email": "Ada@Example.com", "first_name": " Ada ", "city": "", "phone": null });
    let contact: Contact = fixture.create(body).unwrap();
    let now = "2026-03-14T15:09:26.535898Z";
    assert_eq!(
        json_of(&contact),
        json!({
            "id": contact.id, "email": "Ada@Example.com", "first_name": "Ada", "last_name": null, "phone": null,
            "company_name": null, "city": null, "state": null, "postcode": null, "created_at": now, "updated_at": now,
        })
    );
    assert_eq!(fixture.new_kinds(), "contact.created");
}

#[test]
fn an_email_belongs_to_one_live_contact() {
    let fixture = Rules::new();
    let ada: Contact = fixture.create(json!({ "email": "ada@example.com" })).unwrap();
    let bob: Contact = fixture.create(json!({ "email": "bob@example.com" })).unwrap();
    let taken = Error::EmailTaken { existing_id: ada.id.uuid() };
    fixture.new_events();
    assert_eq!(fixture.create::<Contact>(json!({ "email": "ADA@example.com" })), Err(taken.clone()));
    assert_eq!(fixture.update::<Contact>(bob.id, json!({ "email": "Ada@example.com" })), Err(taken));
    assert_eq!(fixture.get(bob.id), Ok(bob.clone()));
    assert_eq!(fixture.new_kinds(), "");

    fixture.delete::<Contact>(ada.id).unwrap();
    let successor: Contact = fixture.update(bob.id, json!({ "email": "ada@example.com" })).unwrap();
    assert_eq!(successor.email.unwrap().as_str(), "ada@example.com");
    assert!(fixture.create::<Contact>(json!({ "email": "bob@example.com" })).is_ok());
    assert_eq!(fixture.new_kinds(), "contact.deleted contact.updated contact.created");
}

#[test]
fn a_tenant_can_allow_duplicate_emails() {
    let fixture = Rules::new();
    let tenant = fixture.tenant.0;
    fixture
        .write(tenant, async |tx, &tenant| {
            tenants::update(tx, tenant, |tenant| tenant.unique_contact_email = false).await
        })
        .unwrap();
    let [first, second] = [0, 1].map(|_| fixture.create::<Contact>(json!({ "email": "ada@example.com" })).unwrap());
    assert_ne!(first.id, second.id);
    assert!(first.created_at < second.created_at);
}

#[test]
fn a_change_without_effect_writes_nothing() {
    let fixture = Rules::new();
    let contact: Contact = fixture.create(json!({ "email": "ada@example.com", "city": "Perth" })).unwrap();
    fixture.new_events();
    for body in [
        json!({ "city": "Perth" }),
        json!({ "city": " Perth ", "state": null, "email": "ada@example.com" }),
        json!({ "postcode": "" }),
    ] {
        fixture.clock.advance(std::time::Duration::from_secs(1));
        assert_eq!(fixture.update(contact.id, body.clone()), Ok(contact.clone()), "{body}");
    }
    assert_eq!(fixture.get(contact.id), Ok(contact.clone()));
    assert_eq!(fixture.new_kinds(), "");

    let changed: Contact = fixture.update(contact.id, json!({ "city": null, "phone": "1" })).unwrap();
    assert_eq!(changed.updated_at, time("2026-03-14T15:09:29.535898Z"));
    let want = Contact { city: None, phone: changed.phone.clone(), updated_at: changed.updated_at, ..contact };
    assert_eq!(changed, want);
    assert_eq!(changed.phone.unwrap().as_str(), "1");
    assert_eq!(fixture.new_kinds(), "contact.updated");
}

#[test]
fn a_deleted_contact_is_not_found_and_stays_referenced() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let body = json!({ "contact_id": contact, "service_name": "x", "start_time": "2026-03-14T15:00:00Z" });
    let booking: Booking = fixture.create(body.clone()).unwrap();
    fixture.new_events();
    assert_eq!(fixture.delete::<Contact>(contact), Ok(()));
    let event = fixture.new_events().remove(0);
    assert_eq!(event.kind.as_str(), "contact.deleted");
    let data: serde_json::Value = serde_json::from_str(event.data.get()).unwrap();
    assert_eq!(data["id"], json!(contact));
    assert_eq!((&data["deleted_at"], &data["updated_at"]), (&json!(event.created_at), &json!(event.created_at)));

    assert_eq!(fixture.get::<Contact>(contact), Err(Error::NotFound));
    assert_eq!(fixture.delete::<Contact>(contact), Err(Error::NotFound));
    assert_eq!(fixture.update::<Contact>(contact, json!({ "city": "x" })), Err(Error::NotFound));
    assert_eq!(refusal(fixture.create::<Booking>(body)), "reference_not_found");
    let kept: Booking = fixture.update(booking.id, json!({ "notes": "still on" })).unwrap();
    assert_eq!(kept.contact_id, Some(contact));
    assert_eq!(fixture.new_kinds(), "booking.updated");
}
