//! Lists by start: their order, ranges, filters and pages.

use serde_json::{Value, json};
use svc_core::error::Error;
use svc_core::pages::{Limit, Page, Since};
use svc_core::resources::bookings::{Booking, BookingFilter, BookingStatus};
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::resources::jobs::{Job, JobFilter, JobStatus};
use svc_core::resources::starts::{self, HasStart, StartListParams, StartOrder};
use svc_core::resources::{Filter as _, Resource};
use svc_core::values::Id;

use super::{Rules, refusal, time};

impl Rules {
    fn latest_first(&self, params: &StartListParams) -> Result<Page<Booking, String>, Error> {
        self.write((self.tenant, params.clone()), async |tx, (tenant, params)| {
            let (order, none) = (StartOrder::LatestFirst, BookingFilter::none());
            starts::list_in_order::<Booking>(tx, *tenant, params, order, &none).await
        })
    }

    fn by_start<R: HasStart>(&self, params: &StartListParams, filter: &R::Filter) -> Result<Page<R, String>, Error> {
        let input = (self.tenant, params.clone(), filter.clone());
        self.write(input, async |tx, (tenant, params, filter)| starts::list::<R>(tx, *tenant, params, filter).await)
    }

    /// Returns the ids of all pages, and how many pages there are.
    fn pages<R: HasStart>(&self, params: &StartListParams, filter: &R::Filter) -> (Vec<Id<R>>, usize) {
        let (mut ids, mut pages, mut params) = (Vec::new(), 0, params.clone());
        loop {
            let page = self.by_start::<R>(&params, filter).unwrap();
            assert!(page.data.len() <= params.limit.unwrap_or_default().get() as usize);
            ids.extend(page.data.iter().map(R::id));
            pages += 1;
            match page.next_cursor {
                Some(next) => params.cursor = Some(next),
                None => return (ids, pages),
            }
        }
    }

    fn booking(&self, contact: ContactId, start: &str) -> Booking {
        self.create(json!({ "contact_id": contact, "service_name": "Repair", "start_time": start })).unwrap()
    }

    fn another_contact(&self, number: u32) -> ContactId {
        self.create::<Contact>(json!({ "email": format!("c{number}@example.com") })).unwrap().id
    }
}

fn since(text: &str) -> Option<Since> {
    Some(Since(time(text)))
}

fn in_march() -> StartListParams {
    let (from, before) = (since("2026-03-01T00:00:00Z"), since("2026-04-01T00:00:00Z"));
    StartListParams { starts_from: from, starts_before: before, ..Default::default() }
}

fn pages_of(limit: u32) -> StartListParams {
    StartListParams { limit: Limit::new(limit), ..in_march() }
}

#[test]
fn what_starts_in_a_range_comes_in_its_order() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let starts = [
        "2026-03-31T23:59:59.999999Z",
        "2026-04-01T00:00:00Z",
        "2026-03-01T00:00:00Z",
        "2026-02-28T23:59:59.999999Z",
        "2026-03-14T15:00:00Z",
        "2026-03-14T16:00:00+01:00",
        "0001-01-01T00:00:00Z",
    ];
    let ids = starts.map(|start| fixture.booking(contact, start).id);
    let expect = |params: StartListParams, places: &[usize]| {
        for limit in [1, 2, 3, 50] {
            let params = StartListParams { limit: Limit::new(limit), ..params.clone() };
            let found = fixture.pages::<Booking>(&params, &BookingFilter::none()).0;
            assert_eq!(found, places.iter().map(|place| ids[*place]).collect::<Vec<_>>(), "{params:?}");
        }
    };
    expect(in_march(), &[2, 4, 5, 0]);
    expect(StartListParams { starts_before: None, ..in_march() }, &[2, 4, 5, 0, 1]);
    // From the first on, also before 1970.
    expect(StartListParams { starts_from: None, ..in_march() }, &[6, 3, 2, 4, 5, 0]);
    let microsecond = (since("2026-03-14T15:00:00Z"), since("2026-03-14T15:00:00.000001Z"));
    expect(StartListParams { starts_from: microsecond.0, starts_before: microsecond.1, ..Default::default() }, &[4, 5]);
}

#[test]
fn jobs_without_a_planned_start_are_left_out() {
    let fixture = Rules::new();
    let job = |start: Value, status| -> Job {
        fixture.create(json!({ "title": "Repair", "scheduled_start": start, "status": status })).unwrap()
    };
    job(Value::Null, "scheduled");
    let late = job(json!("2026-03-15T09:00:00Z"), "scheduled");
    let early = job(json!("2026-03-15T08:00:00Z"), "on_hold");
    job(json!("2026-04-15T08:00:00Z"), "scheduled");
    let all = fixture.pages::<Job>(&in_march(), &JobFilter::none());
    assert_eq!(all, (vec![early.id, late.id], 1));
    let scheduled = JobFilter { status: Some(JobStatus::Scheduled), job_number: None };
    assert_eq!(fixture.pages::<Job>(&in_march(), &scheduled).0, [late.id]);
    let cleared: Job = fixture.update(early.id, json!({ "scheduled_start": null })).unwrap();
    assert_eq!(fixture.pages::<Job>(&in_march(), &JobFilter::none()).0, [late.id]);
    let changed = StartListParams { updated_since: Some(Since(cleared.updated_at)), ..Default::default() };
    assert_eq!(fixture.pages::<Job>(&changed, &JobFilter::none()).0, [early.id], "without starts, by change");
}

#[test]
fn a_page_of_few_matches_ends_after_ten_times_as_many_records() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let ids: Vec<_> = (0..25).map(|_| fixture.booking(contact, "2026-03-15T09:00:00Z").id).collect();
    for place in [0, 23] {
        fixture.update::<Booking>(ids[place], json!({ "status": "no_show" })).unwrap();
    }
    let no_show = BookingFilter { status: Some(BookingStatus::NoShow) };
    assert_eq!(fixture.pages::<Booking>(&pages_of(1), &no_show), (vec![ids[0], ids[23]], 5), "1, 10, 10, 3 and 1");
    assert_eq!(fixture.pages::<Booking>(&pages_of(2), &no_show), (vec![ids[0], ids[23]], 2));
    assert_eq!(fixture.pages::<Booking>(&pages_of(25), &BookingFilter::none()), (ids, 1));
}

#[test]
fn the_bookings_of_a_contact_come_in_the_order_of_their_starts() {
    let fixture = Rules::new();
    let (one, other) = (fixture.another_contact(1), fixture.another_contact(2));
    let mut of_one = Vec::new();
    for day in (10..30).rev() {
        let start = format!("2026-03-{day}T09:00:00Z");
        of_one.insert(0, fixture.booking(one, &start).id);
        (0..3).for_each(|_| drop(fixture.booking(other, &start)));
    }
    let params = |limit| StartListParams { contact_id: Some(one), ..pages_of(limit) };
    assert_eq!(fixture.pages::<Booking>(&params(20), &BookingFilter::none()), (of_one.clone(), 1), "at once");
    assert_eq!(fixture.pages::<Booking>(&params(7), &BookingFilter::none()), (of_one.clone(), 3));
    // Of very many, those that start in the range are looked for among those of all.
    for _ in 0..181 {
        fixture.booking(one, "2026-05-01T09:00:00Z");
    }
    assert_eq!(fixture.pages::<Booking>(&params(7), &BookingFilter::none()).0, of_one);
}

#[test]
fn a_booking_that_moves_between_pages_moves_no_other() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let ids: Vec<_> = (0..6).map(|_| fixture.booking(contact, "2026-03-15T09:00:00Z").id).collect();
    let first = fixture.by_start::<Booking>(&pages_of(3), &BookingFilter::none()).unwrap();
    // The last one of the page, whose place the cursor has, and one of those to come.
    for (place, start) in [(2, "2026-03-20T09:00:00Z"), (4, "2026-03-10T09:00:00Z")] {
        let times = json!({ "start_time": start, "end_time": "2026-03-21T09:00:00Z" });
        fixture.update::<Booking>(ids[place], times).unwrap();
    }
    let next = StartListParams { cursor: first.next_cursor, ..pages_of(3) };
    let next = fixture.by_start::<Booking>(&next, &BookingFilter::none()).unwrap();
    assert_eq!(next.data.iter().map(Booking::id).collect::<Vec<_>>(), [ids[3], ids[5], ids[2]]);
    assert_eq!(next.next_cursor, None);
}

#[test]
fn what_starts_latest_comes_first_if_that_is_asked_for() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    let starts =
        ["2026-02-28T09:00:00Z", "2026-03-15T09:00:00Z", "2026-03-15T09:00:00Z", "2026-03-31T23:59:59.999999Z"];
    let ids = starts.map(|start| fixture.booking(contact, start).id);
    fixture.booking(contact, "2026-04-01T00:00:00Z");
    for limit in [1, 2, 50] {
        let (mut found, mut params) = (Vec::new(), pages_of(limit));
        loop {
            let page = fixture.latest_first(&params).unwrap();
            found.extend(page.data.iter().map(|booking| booking.id));
            let Some(next) = page.next_cursor else { break };
            params.cursor = Some(next);
        }
        assert_eq!(found, [ids[3], ids[2], ids[1]], "{limit}");
    }
    let before = StartListParams { starts_from: None, ..in_march() };
    let all: Vec<_> = fixture.latest_first(&before).unwrap().data.iter().map(|booking| booking.id).collect();
    assert_eq!(all, [ids[3], ids[2], ids[1], ids[0]]);
    // A booking that moves meanwhile moves no other.
    let first = fixture.latest_first(&pages_of(2)).unwrap();
    let times = json!({ "start_time": "2026-03-30T09:00:00Z", "end_time": "2026-03-30T10:00:00Z" });
    fixture.update::<Booking>(ids[2], times).unwrap();
    let next = StartListParams { cursor: first.next_cursor.clone(), ..pages_of(2) };
    let next: Vec<_> = fixture.latest_first(&next).unwrap().data.iter().map(|booking| booking.id).collect();
    assert_eq!(next, [ids[1]]);
    let other_order = StartListParams { cursor: first.next_cursor, ..pages_of(2) };
    assert_eq!(refusal(fixture.by_start::<Booking>(&other_order, &BookingFilter::none())), "invalid_cursor");
}

#[test]
fn a_cursor_belongs_to_its_list() {
    let fixture = Rules::new();
    let contact = fixture.contact();
    (0..3).for_each(|_| drop(fixture.booking(contact, "2026-03-15T09:00:00Z")));
    let none = BookingFilter::none();
    let cursor = fixture.by_start::<Booking>(&pages_of(2), &none).unwrap().next_cursor;
    let with_cursor = |params: StartListParams| StartListParams { cursor: cursor.clone(), ..params };
    assert_eq!(fixture.by_start::<Booking>(&with_cursor(pages_of(1)), &none).unwrap().data.len(), 1, "another limit");
    let (start, created) = cursor.as_deref().unwrap().split_once('.').unwrap();
    for params in [
        with_cursor(StartListParams { starts_from: since("2026-03-02T00:00:00Z"), ..in_march() }),
        with_cursor(StartListParams { starts_before: None, ..in_march() }),
        with_cursor(StartListParams { contact_id: Some(contact), ..in_march() }),
        with_cursor(StartListParams { updated_since: since("2026-03-01T00:00:00Z"), ..in_march() }),
        with_cursor(StartListParams::default()),
        StartListParams { cursor: Some(format!("-{start}.{created}")), ..in_march() },
        StartListParams { cursor: Some(format!("{created}.{start}")), ..in_march() },
        StartListParams { cursor: Some(start.to_owned()), ..in_march() },
        StartListParams { cursor: Some("tomorrow".to_owned()), ..Default::default() },
    ] {
        assert_eq!(refusal(fixture.by_start::<Booking>(&params, &none)), "invalid_cursor", "{params:?}");
    }
    let confirmed = BookingFilter { status: Some(BookingStatus::Confirmed) };
    assert_eq!(refusal(fixture.by_start::<Booking>(&with_cursor(in_march()), &confirmed)), "invalid_cursor");
    assert_eq!(refusal(fixture.by_start::<Job>(&with_cursor(in_march()), &JobFilter::none())), "invalid_cursor");
}

#[test]
fn a_range_has_an_order() {
    let fixture = Rules::new();
    for before in ["2026-03-01T00:00:00Z", "2026-02-01T00:00:00Z"] {
        let params = StartListParams { starts_before: since(before), ..in_march() };
        let refused = fixture.by_start::<Booking>(&params, &BookingFilter::none());
        assert_eq!(refusal(refused), "starts_before out_of_range", "{before}");
    }
}
