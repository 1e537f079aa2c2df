//! Bookings: the default end, the order of start and end, and the statuses.

use serde_json::{Value, json};
use svc_core::resources::bookings::{Booking, BookingStatus};
use svc_core::resources::contacts::ContactId;

use super::{Rules, json_of, refusal, time};

fn body(contact: ContactId, start: &str, end: Option<&str>) -> Value {
    json!({ "contact_id": contact, "service_name": "Haircut", "start_time": start, "end_time": end })
}

#[test]
fn a_booking_lasts_an_hour_by_default() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    for (start, end, want) in [
        ("2026-03-14T15:00:00Z", None, "2026-03-14T16:00:00.000000Z"),
        ("2026-03-14T15:00:00.0000019+11:00", None, "2026-03-14T05:00:00.000001Z"),
        ("2026-12-31T23:30:00Z", None, "2027-01-01T00:30:00.000000Z"),
        ("2026-03-14T15:00:00Z", Some("2026-03-14T15:00:00.000001Z"), "2026-03-14T15:00:00.000001Z"),
        ("2026-03-14T15:00:00Z", Some("2026-03-14T17:00:00+01:00"), "2026-03-14T16:00:00.000000Z"),
        ("9999-12-31T22:59:59.999999Z", None, "9999-12-31T23:59:59.999999Z"),
    ] {
        let booking: Booking = fixture.create(body(contact, start, end)).unwrap();
        assert_eq!(booking.end_time.to_string(), want, "{start}");
        assert_eq!(booking.status, BookingStatus::Confirmed);
        assert_eq!(fixture.new_kinds(), "booking.created");
    }
}

#[test]
fn a_new_booking_has_every_field() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let booking: Booking = fixture.create(body(contact, "2026-03-14T15:00:00Z", None)).unwrap();
    let now = "2026-03-14T15:09:26.535899Z";
    assert_eq!(
        json_of(&booking),
        json!({
            "id": booking.id, "contact_id": contact, "service_name": "Haircut",
            "start_time": "2026-03-14T15:00:00.000000Z", "end_time": "2026-03-14T16:00:00.000000Z",
            "status": "confirmed", "notes": null, "created_at": now, "updated_at": now,
        })
    );
}

#[test]
fn a_booking_must_end_after_its_start() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    for (start, end, want) in [
        ("2026-03-14T15:00:00Z", Some("2026-03-14T15:00:00Z"), "end_time out_of_range"),
        ("2026-03-14T15:00:00Z", Some("2026-03-14T15:30:00+01:00"), "end_time out_of_range"),
        ("9999-12-31T23:00:00Z", None, "start_time out_of_range"),
    ] {
        assert_eq!(refusal(fixture.create::<Booking>(body(contact, start, end))), want, "{start}");
    }
    assert_eq!(fixture.new_kinds(), "");
}

#[test]
fn a_change_is_validated_against_the_merged_booking() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let booking: Booking = fixture.create(body(contact, "2026-03-14T15:00:00Z", None)).unwrap();
    fixture.new_events();
    for change in [
        json!({ "start_time": "2026-03-14T16:00:00Z" }),
        json!({ "start_time": "2026-03-14T18:00:00Z", "notes": "later" }),
        json!({ "end_time": "2026-03-14T15:00:00Z" }),
        json!({ "start_time": "2026-03-15T15:00:00Z", "end_time": "2026-03-15T14:00:00Z" }),
    ] {
        assert_eq!(refusal(fixture.update::<Booking>(booking.id, change.clone())), "end_time out_of_range", "{change}");
    }
    assert_eq!(fixture.get(booking.id), Ok(booking.clone()));
    let change = json!({ "start_time": "2026-03-15T15:00:00Z", "end_time": "2026-03-15T15:30:00Z" });
    let moved: Booking = fixture.update(booking.id, change).unwrap();
    assert_eq!((moved.start_time, moved.end_time), (time("2026-03-15T15:00:00Z"), time("2026-03-15T15:30:00Z")));
    let longer: Booking = fixture.update(booking.id, json!({ "start_time": "2026-03-14T15:00:00Z" })).unwrap();
    assert_eq!(longer.end_time, moved.end_time, "the end does not move with the start");
    assert_eq!(fixture.new_kinds(), "booking.updated booking.updated");
}

#[test]
fn every_change_of_status_is_allowed() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    for from in BookingStatus::ALL.iter().copied() {
        for to in BookingStatus::ALL.iter().copied() {
            let booking: Booking = fixture.create(body(contact, "2026-03-14T15:00:00Z", None)).unwrap();
            fixture.update::<Booking>(booking.id, json!({ "status": from })).unwrap();
            fixture.new_events();
            let changed: Booking = fixture.update(booking.id, json!({ "status": to })).unwrap();
            assert_eq!(changed.status, to);
            let want = match to {
                _ if to == from => "",
                BookingStatus::Cancelled => "booking.cancelled booking.updated",
                _ => "booking.updated",
            };
            assert_eq!(fixture.new_kinds(), want, "{from} to {to}");
        }
    }
}

#[test]
fn cancelling_a_cancelled_booking_fires_no_event() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let booking: Booking = fixture.create(body(contact, "2026-03-14T15:00:00Z", None)).unwrap();
    fixture.update::<Booking>(booking.id, json!({ "status": "cancelled" })).unwrap();
    fixture.new_events();
    let changed: Booking = fixture.update(booking.id, json!({ "status": "cancelled", "notes": " rain\n" })).unwrap();
    assert_eq!(changed.notes.unwrap().as_str(), " rain\n", "notes are kept as sent");
    assert_eq!(fixture.new_kinds(), "booking.updated");
    let cleared: Booking = fixture.update(booking.id, json!({ "notes": null })).unwrap();
    assert_eq!(cleared.notes, None);
}
