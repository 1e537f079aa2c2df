//! The calendar: what is in a range of times.

use std::ops::Range;

use serde_json::json;
use svc_core::calendar::{self, Calendar, Certainty, MAX_ENTRIES, MAX_OVERLAPPING};
use svc_core::resources::bookings::{Booking, BookingCreate};
use svc_core::resources::contacts::ContactId;
use svc_core::resources::crud;
use svc_core::resources::jobs::Job;
use svc_core::values::{Date, RecordKind, TimeZone, Timestamp};

use super::{Rules, time};

impl Rules {
    fn calendar(&self, range: Range<&str>) -> Calendar {
        let range = time(range.start)..time(range.end);
        self.write((self.tenant, range), async |tx, (tenant, range)| calendar::read(tx, *tenant, range.clone()).await)
            .unwrap()
    }

    fn titles(&self, range: Range<&str>) -> Vec<String> {
        self.calendar(range).entries.into_iter().map(|entry| entry.title).collect()
    }

    fn visit(&self, contact: ContactId, name: &str, times: Range<&str>) -> Booking {
        let body = json!({
            "contact_id": contact, "service_name": name, "start_time": times.start, "end_time": times.end,
        });
        self.create(body).unwrap()
    }
}

#[test]
fn what_takes_place_at_the_same_time_is_found_up_to_a_bound() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let visit = fixture.visit(contact, "Visit", "2026-03-20T09:00:00Z".."2026-03-20T10:00:00Z");
    let overlapping = |times: Range<&str>| {
        let times = time(times.start)..time(times.end);
        let found = fixture.write((fixture.tenant, visit.id.uuid(), times), async |tx, (tenant, id, times)| {
            calendar::overlapping(tx, *tenant, *id, times.clone()).await
        });
        found.unwrap().into_iter().map(|entry| entry.title).collect::<Vec<_>>()
    };
    let nine = || "2026-03-20T09:00:00Z".."2026-03-20T10:00:00Z";
    fixture.visit(contact, "Before", "2026-03-20T08:00:00Z".."2026-03-20T09:00:00Z");
    fixture.visit(contact, "After", "2026-03-20T10:00:00Z".."2026-03-20T11:00:00Z");
    let off = fixture.visit(contact, "Off", nine());
    fixture.update(off.id, json!({ "status": "cancelled" })).unwrap();
    assert!(overlapping(nine()).is_empty());
    fixture.visit(contact, "Late", "2026-03-20T09:59:00Z".."2026-03-20T12:00:00Z");
    fixture.visit(contact, "Early", "2026-03-20T07:00:00Z".."2026-03-20T09:01:00Z");
    assert_eq!(overlapping(nine()), ["Early", "Late"]);
    // A moment overlaps with nothing.
    assert!(overlapping("2026-03-20T09:30:00Z".."2026-03-20T09:30:00Z").is_empty());
    for _ in 0..MAX_OVERLAPPING {
        fixture.visit(contact, "Between", "2026-03-20T09:10:00Z".."2026-03-20T09:20:00Z");
    }
    let all = overlapping(nine());
    assert_eq!((all.len(), all[0].as_str(), all[MAX_OVERLAPPING - 1].as_str()), (MAX_OVERLAPPING, "Early", "Between"));
}

const MARCH: Range<&str> = "2026-03-01T00:00:00Z".."2026-04-01T00:00:00Z";

#[test]
fn bookings_and_planned_jobs_are_in_one_order() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let job = |title: &str, start: Option<&str>, status: &str| {
        let body = json!({
            "title": title, "scheduled_start": start, "status": status, "contact_id": contact,
            "site_address": "1 Quay St", "site_suburb": "Manly",
        });
        fixture.create::<Job>(body).unwrap()
    };
    job("Last", Some("2026-03-31T23:59:59.999999Z"), "on_hold");
    job("Unplanned", None, "scheduled");
    job("Next month", Some("2026-04-01T00:00:00Z"), "scheduled");
    let first = job("First", Some("2026-03-01T00:00:00Z"), "cancelled");
    let booking = json!({ "contact_id": contact, "service_name": "Visit", "start_time": "2026-03-15T09:00:00Z" });
    let booking: Booking = fixture.create(booking).unwrap();
    let calendar = fixture.calendar(MARCH);
    assert!(!calendar.is_cut);
    let [one, visit, last] = calendar.entries.as_slice() else { panic!("{calendar:?}") };
    assert_eq!((one.kind, one.id, one.end), (RecordKind::Job, first.id.uuid(), None));
    assert_eq!(one.title, format!("First ({})", first.job_number));
    assert_eq!(one.site.as_deref(), Some("1 Quay St, Manly"));
    assert_eq!((one.status, one.certainty, one.contact_id), ("cancelled", Certainty::Cancelled, Some(contact)));
    assert_eq!((visit.kind, visit.id), (RecordKind::Booking, booking.id.uuid()));
    assert_eq!((visit.title.as_str(), visit.end), ("Visit", Some(booking.end_time)));
    assert_eq!((visit.status, visit.certainty), ("confirmed", Certainty::Confirmed));
    assert_eq!((last.status, last.certainty), ("on_hold", Certainty::Tentative));
}

#[test]
fn what_began_before_is_there_until_it_ends() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    fixture.visit(contact, "Ended", "2026-02-28T12:00:00Z".."2026-03-01T00:00:00Z");
    fixture.visit(contact, "Night", "2026-02-28T22:00:00Z".."2026-03-01T02:00:00Z");
    fixture.visit(contact, "Month", "2026-01-29T00:00:00Z".."2026-04-29T00:00:00Z");
    fixture.visit(contact, "Too early", "2026-01-28T23:59:59Z".."2026-04-29T00:00:00Z");
    fixture.visit(contact, "Inside", "2026-03-05T22:00:00Z".."2026-03-06T02:00:00Z");
    assert_eq!(fixture.titles(MARCH), ["Month", "Night", "Inside"]);
}

#[test]
fn very_many_entries_are_cut_at_the_end() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let create = fixture.write((fixture.tenant, contact), async |tx, &(tenant, contact)| {
        for second in 0..MAX_ENTRIES + 700 {
            let start = time("2026-03-10T00:00:00Z").as_micros() + second as i64 * 1_000_000;
            let start = Timestamp::from_micros(start);
            let create = BookingCreate::new(contact, "Visit".parse().unwrap(), start);
            crud::create::<Booking>(tx, tenant, create).await?;
        }
        Ok(())
    });
    create.unwrap();
    fixture.create::<Job>(json!({ "title": "Early", "scheduled_start": "2026-03-09T00:00:00Z" })).unwrap();
    fixture.create::<Job>(json!({ "title": "Late", "scheduled_start": "2026-03-30T00:00:00Z" })).unwrap();
    let calendar = fixture.calendar(MARCH);
    assert_eq!((calendar.entries.len(), calendar.is_cut), (MAX_ENTRIES, true));
    assert!(calendar.entries[0].title.starts_with("Early"));
    assert!(calendar.entries.iter().all(|entry| !entry.title.starts_with("Late")), "it comes after those left out");
    let last = calendar.entries.last().unwrap().start;
    assert_eq!(last.since(time("2026-03-10T00:00:00Z")).as_secs(), MAX_ENTRIES as u64 - 2);
}

#[test]
fn an_entry_is_on_the_dates_of_the_time_zone() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let dates = |zone: &str, entry: usize| {
        let calendar = fixture.calendar("2026-01-01T00:00:00Z".."2027-01-01T00:00:00Z");
        let (dates, zone) = (calendar.entries[entry].clone(), TimeZone::parse(zone).unwrap());
        let whole = dates.whole_days(&zone).is_some();
        let dates = dates.dates(&zone);
        (dates.start().to_string(), dates.end().to_string(), whole)
    };
    fixture.visit(contact, "Night", "2026-03-28T23:00:00Z".."2026-03-29T22:00:00Z");
    let expected = |first: &str, last: &str, whole| (first.to_owned(), last.to_owned(), whole);
    assert_eq!(dates("UTC", 0), expected("2026-03-28", "2026-03-29", false));
    // The 23 hours of the day on which clocks are put forward.
    assert_eq!(dates("Europe/Berlin", 0), expected("2026-03-29", "2026-03-29", true));
    assert_eq!(dates("Australia/Sydney", 0), expected("2026-03-29", "2026-03-30", false));
    assert_eq!(Date::parse("2026-03-29").unwrap().weekday(), "Sunday");
}
