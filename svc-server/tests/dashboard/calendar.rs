//! The calendar, in time zones on whose days clocks change.

use http::StatusCode;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;
use svc_core::resources::crud;

use super::browser::{Browser, Server};
use super::invoice_actions::hidden;
use super::records::{rows, text};
use super::webhooks::HOSTILE;

/// Sets the time zone of the account. The clock of the server shows Saturday, 14 March 2026, 15:09 in UTC.
async fn in_zone(server: &Server, zone: &str) {
    let zone = TimeZone::parse(zone).unwrap();
    server.svc.account(server.tenant).change_settings(move |tenant| tenant.time_zone = zone.clone()).await.unwrap();
}

async fn booking(server: &Server, contact: ContactId, name: &str, start: &str, end: &str) -> Booking {
    let end_time = Some(Timestamp::parse(end).unwrap());
    let start = Timestamp::parse(start).unwrap();
    let create = BookingCreate { end_time, ..BookingCreate::new(contact, Text::parse(name).unwrap(), start) };
    server.svc.account(server.tenant).bookings().create(create).await.unwrap()
}

/// Returns the rows of a view that have entries.
async fn filled(browser: &Browser<'_>, query: &str) -> Vec<String> {
    let page = browser.get(&format!("/calendar?{query}")).await;
    assert_eq!(page.status, StatusCode::OK, "{query}: {}", page.text);
    page.text
        .split("<tr")
        .skip(1)
        .filter(|row| row.contains("<li"))
        .map(|row| text(&format!("<tr{}", row.split("</tr>").next().unwrap())).trim_end_matches(" +").to_owned())
        .collect()
}

/// Returns the cells of a month that have entries.
async fn cells(browser: &Browser<'_>, query: &str) -> Vec<String> {
    let page = browser.get(&format!("/calendar?{query}")).await.text;
    let table = page.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let cells = table.split("<td").skip(1).map(|cell| format!("<td{cell}"));
    cells.filter(|cell| cell.contains("<ul class=\"entries\">")).map(|cell| text(&cell)).collect()
}

#[tokio::test]
async fn bookings_and_jobs_are_in_a_month_a_week_and_a_day() {
    let server = Server::start().await;
    in_zone(&server, "Australia/Sydney").await;
    let viewer = server.signed_in(Role::Viewer).await;
    let page = text(&viewer.get("/calendar").await.text);
    assert!(page.contains("March 2026") && page.contains("Nothing is booked or planned in this month."), "{page}");
    let ada = server.named_contact("ada@example.com", HOSTILE).await.id;
    // There it is the 15th.
    let visit = booking(&server, ada, "Visit", "2026-03-15T09:00:00+11:00", "2026-03-15T10:30:00+11:00").await;
    let gone = booking(&server, ada, "Gone", "2026-03-16T09:00:00+11:00", "2026-03-16T10:00:00+11:00").await;
    let account = server.svc.account(server.tenant);
    let cancel = BookingUpdate { status: Patch::Set(BookingStatus::Cancelled), ..BookingUpdate::default() };
    account.bookings().update(gone.id, cancel).await.unwrap();
    let start = Some(Timestamp::parse("2026-03-15T08:00:00+11:00").unwrap());
    let job = JobCreate { scheduled_start: start, ..JobCreate::new("New pump".parse().unwrap()) };
    let job = account.jobs().create(job).await.unwrap();
    account.jobs().create(JobCreate::new("Unplanned".parse().unwrap())).await.unwrap();

    // The name cannot change the direction of what follows.
    let ada = HOSTILE.trim_end_matches('\u{202e}');
    assert_eq!(
        cells(&viewer, "view=month").await,
        [
            format!("Sunday 15 Sunday, 15 Mar 2026 08:00 New pump (JOB-0001) 09:00 Visit {ada}"),
            format!("Monday 16 Monday, 16 Mar 2026 09:00 Gone (cancelled) {ada}"),
        ]
    );
    assert_eq!(
        filled(&viewer, "view=week").await,
        [format!("Sunday, 15 Mar 2026 Sun 15 08:00 New pump (JOB-0001) quoted 09:00–10:30 Visit {ada}")]
    );
    assert_eq!(
        filled(&viewer, "view=day&date=2026-03-16").await,
        [format!("09:00 09:00–10:00 Gone (cancelled) {ada} cancelled")]
    );
    let page = viewer.get("/calendar").await.text;
    assert!(!page.contains(HOSTILE), "{page}");
    for link in [
        format!("/bookings/{}", visit.id),
        format!("/jobs/{}", job.id),
        "/calendar?view=day&amp;date=2026-03-15".to_owned(),
        "/calendar?view=month&amp;date=2026-02-01".to_owned(),
        "/calendar?view=month&amp;date=2026-04-01".to_owned(),
        "/calendar?view=month".to_owned(),
    ] {
        assert!(page.contains(&format!("href=\"/dashboard{link}\"")), "{link}: {page}");
    }
    assert!(!page.contains("/bookings/new"), "a viewer creates nothing: {page}");
    assert!(page.contains("aria-current=\"date\""), "{page}");
}

/// A day with all of its hours, of which each has two rows, and the rows in which entries begin.
async fn assert_day(browser: &Browser<'_>, date: &str, hours: usize, entries: &[&str]) {
    let page = browser.get(&format!("/calendar?view=day&date={date}&hours=all")).await.text;
    let all = rows(&page);
    assert_eq!(all.len(), 2 * hours, "{date}: {all:?}");
    assert_eq!(filled(browser, &format!("view=day&date={date}&hours=all")).await, entries, "{date}");
}

#[tokio::test]
async fn the_nights_in_which_clocks_change_have_their_hours_in_sydney() {
    let server = Server::start().await;
    in_zone(&server, "Australia/Sydney").await;
    let owner = server.signed_in(Role::Owner).await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    // Clocks are put back at 03:00 to 02:00.
    booking(&server, ada, "Night", "2026-04-04T23:00:00+11:00", "2026-04-05T02:30:00+11:00").await;
    booking(&server, ada, "First", "2026-04-05T02:15:00+11:00", "2026-04-05T02:15:00+10:00").await;
    booking(&server, ada, "Second", "2026-04-05T02:30:00+10:00", "2026-04-05T03:30:00+10:00").await;
    booking(&server, ada, "Last", "2026-04-05T23:30:00+10:00", "2026-04-06T00:00:00+10:00").await;
    assert_day(&owner, "2026-04-04", 24, &["23:00 from 23:00 Night Ada"]).await;
    assert_day(
        &owner,
        "2026-04-05",
        25,
        &[
            "00:00 until 02:30 +11:00 Night Ada",
            "02:00 +11:00 02:15 +11:00–02:15 +10:00 First Ada",
            "02:30 +10:00 02:30 +10:00–03:30 Second Ada",
            "23:30 23:30–24:00 Last Ada",
        ],
    )
    .await;
    assert_day(&owner, "2026-04-06", 24, &[]).await;
    let page = owner.get("/calendar?view=day&date=2026-04-05&hours=all").await.text;
    for link in [
        "start=2026-04-05T02%3A00&amp;offset=%2B11%3A00",
        "start=2026-04-05T02%3A00&amp;offset=%2B10%3A00",
        "start=2026-04-05T03%3A00\"",
    ] {
        assert!(page.contains(&format!("/bookings/new?{link}")), "{link}: {page}");
    }
    // Clocks are put forward at 02:00 to 03:00.
    booking(&server, ada, "Early", "2026-10-04T01:30:00+10:00", "2026-10-04T03:30:00+11:00").await;
    assert_day(&owner, "2026-10-04", 23, &["01:30 01:30–03:30 Early Ada"]).await;
    let page = owner.get("/calendar?view=day&date=2026-10-04&hours=all").await.text;
    assert!(!page.contains("T02%3A00") && page.contains("start=2026-10-04T03%3A00"), "{page}");
}

#[tokio::test]
async fn the_nights_in_which_clocks_change_have_their_hours_in_berlin() {
    let server = Server::start().await;
    in_zone(&server, "Europe/Berlin").await;
    let owner = server.signed_in(Role::Owner).await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    // Clocks are put forward at 02:00 to 03:00.
    booking(&server, ada, "Night", "2026-03-28T22:00:00+01:00", "2026-03-29T03:15:00+02:00").await;
    booking(&server, ada, "Whole", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00").await;
    assert_day(&owner, "2026-03-28", 24, &["22:00 from 22:00 Night Ada"]).await;
    assert_day(&owner, "2026-03-29", 23, &["00:00 until 03:15 Night Ada"]).await;
    assert_day(&owner, "2026-03-30", 24, &[]).await;
    // Clocks are put back at 03:00 to 02:00.
    booking(&server, ada, "Twice", "2026-10-25T02:45:00+02:00", "2026-10-25T02:15:00+01:00").await;
    assert_day(&owner, "2026-10-25", 25, &["02:30 +02:00 02:45 +02:00–02:15 +01:00 Twice Ada"]).await;
    // Each of the days has one cell, and the booking across midnight is in both.
    assert_eq!(
        cells(&owner, "view=month&date=2026-03-01").await,
        [
            "Saturday 28 Saturday, 28 Mar 2026 + 22:00 Night Ada",
            "Sunday 29 Sunday, 29 Mar 2026 + … until 03:15 Night Ada Whole Ada",
        ]
    );
}

/// Returns the times of the first and the last row of a day, and how many rows each entry takes.
async fn shape(browser: &Browser<'_>, query: &str) -> (String, String, Vec<String>) {
    let page = browser.get(&format!("/calendar?view=day&{query}")).await.text;
    let rows = rows(&page);
    let clock = |row: Option<&String>| row.unwrap().split(' ').next().unwrap().to_owned();
    let spans = page.split("rowspan=\"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect();
    (clock(rows.first()), clock(rows.last()), spans)
}

#[tokio::test]
async fn a_day_shows_working_hours_and_all_that_takes_place_by_its_length() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    let viewer = server.signed_in(Role::Viewer).await;
    let at = |day: u32, time: &str| format!("2026-03-{day:02}T{time}:00Z");
    let shape = async |query: &str| {
        let (first, last, spans) = shape(&viewer, query).await;
        (format!("{first} {last}"), spans.join(" "))
    };
    assert_eq!(shape("date=2026-03-16").await, ("07:00 18:30".to_owned(), String::new()));
    assert_eq!(shape("date=2026-03-16&hours=all").await.0, "00:00 23:30");
    booking(&server, ada, "Short", &at(16, "09:10"), &at(16, "09:20")).await;
    booking(&server, ada, "Long", &at(16, "09:00"), &at(16, "11:30")).await;
    booking(&server, ada, "Between", &at(16, "09:15"), &at(16, "10:15")).await;
    // Those in order of their starts: Long, Short, Between.
    assert_eq!(shape("date=2026-03-16").await, ("07:00 18:30".to_owned(), "5 1 3".to_owned()));
    // There is room for three beside each other.
    booking(&server, ada, "Fourth", &at(16, "09:29"), &at(16, "10:00")).await;
    assert_eq!(shape("date=2026-03-16").await.1, "5 1 3");
    let page = text(&viewer.get("/calendar?view=day&date=2026-03-16").await.text);
    assert!(page.contains("At the same time 09:29–10:00 Fourth Ada"), "{page}");
    // Earlier and later entries have their hours, and a night that reaches into the day its last row.
    booking(&server, ada, "Early", &at(17, "05:45"), &at(17, "06:00")).await;
    booking(&server, ada, "Late", &at(17, "20:30"), &at(18, "03:00")).await;
    assert_eq!(shape("date=2026-03-17").await, ("05:00 20:30".to_owned(), "1 1".to_owned()));
    assert_eq!(shape("date=2026-03-18").await, ("02:00 18:30".to_owned(), "2".to_owned()));
    booking(&server, ada, "Whole", &at(19, "00:00"), &at(20, "00:00")).await;
    let page = text(&viewer.get("/calendar?view=day&date=2026-03-19").await.text);
    assert!(page.contains("All day Whole Ada"), "{page}");
}

/// Returns the first hour of a week and how many it has, and the entries with rows: first row, number of rows, text.
async fn week(browser: &Browser<'_>, date: &str) -> (String, Vec<String>) {
    let page = browser.get(&format!("/calendar?view=week&date={date}")).await.text;
    let value = |part: &str, name: &str| {
        part.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let entries = page.split("<li data-row").skip(1).map(|item| {
        let item = format!("<li data-row{}", item.split("</li>").next().unwrap());
        format!("{} {} {}", value(&item, "data-row"), value(&item, "data-rows"), text(&item))
    });
    (format!("{} {}", value(&page, "data-first-hour"), value(&page, "data-hours")), entries.collect())
}

#[tokio::test]
async fn a_week_has_the_hours_of_its_entries_by_what_clocks_show() {
    let server = Server::start().await;
    in_zone(&server, "Australia/Sydney").await;
    let viewer = server.signed_in(Role::Viewer).await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    assert_eq!(week(&viewer, "2026-03-30").await, ("7 12".to_owned(), vec![]));
    booking(&server, ada, "Short", "2026-03-31T09:10:00+11:00", "2026-03-31T09:20:00+11:00").await;
    booking(&server, ada, "Long", "2026-03-31T09:15:00+11:00", "2026-03-31T11:01:00+11:00").await;
    booking(&server, ada, "Third", "2026-03-31T09:20:00+11:00", "2026-03-31T10:00:00+11:00").await;
    booking(&server, ada, "Late", "2026-03-31T18:30:00+11:00", "2026-03-31T21:00:00+11:00").await;
    // Work of days has no hours, nor has what finds no column.
    booking(&server, ada, "Days", "2026-04-01T05:00:00+11:00", "2026-04-03T12:00:00+11:00").await;
    assert_eq!(
        week(&viewer, "2026-03-30").await,
        (
            "7 14".to_owned(),
            vec![
                "5 1 09:10–09:20 Short Ada".to_owned(),
                "5 5 09:15–11:01 Long Ada".to_owned(),
                "24 5 18:30–21:00 Late Ada".to_owned(),
            ]
        )
    );
    let shown = filled(&viewer, "view=week&date=2026-03-30").await;
    assert_eq!(shown[0].rsplit_once("Late Ada").unwrap().1, " 09:20–10:00 Third Ada");
    assert_eq!(shown[1], "Wednesday, 1 Apr 2026 Wed 1 from 05:00 Days Ada");
    assert_eq!(shown.len(), 4);
    // Clocks are put back at 03:00 to 02:00, and the night needs its last row on the second day, its first on the first.
    booking(&server, ada, "Twice", "2026-04-05T02:15:00+11:00", "2026-04-05T02:45:00+10:00").await;
    booking(&server, ada, "Noon", "2026-04-05T12:00:00+10:00", "2026-04-05T12:30:00+10:00").await;
    booking(&server, ada, "Night", "2026-04-03T23:30:00+11:00", "2026-04-04T01:15:00+11:00").await;
    let (hours, entries) = week(&viewer, "2026-04-05").await;
    assert_eq!(hours, "1 23");
    assert_eq!(
        entries[3..],
        [
            "46 1 from 23:30 Night Ada",
            "1 1 until 01:15 Night Ada",
            "3 2 02:15 +11:00–02:45 +10:00 Twice Ada",
            "23 1 12:00–12:30 Noon Ada",
        ]
    );
    // Clocks are put forward at 02:00 to 03:00.
    booking(&server, ada, "Early", "2026-10-04T01:30:00+10:00", "2026-10-04T03:30:00+11:00").await;
    booking(&server, ada, "All of its 23 hours", "2026-10-04T00:00:00+10:00", "2026-10-05T00:00:00+11:00").await;
    assert_eq!(week(&viewer, "2026-10-04").await, ("1 18".to_owned(), vec!["2 4 01:30–03:30 Early Ada".to_owned()]));
}

#[tokio::test]
async fn the_page_of_a_booking_names_what_takes_place_at_the_same_time() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    let viewer = server.signed_in(Role::Viewer).await;
    let at = |time: &str| format!("2026-03-20T{time}:00Z");
    let visit = booking(&server, ada, "Visit", &at("09:00"), &at("10:00")).await;
    booking(&server, ada, "Before", &at("08:00"), &at("09:00")).await;
    let off = booking(&server, ada, "Off", &at("09:00"), &at("10:00")).await;
    let account = server.svc.account(server.tenant);
    let cancel = || BookingUpdate { status: Patch::Set(BookingStatus::Cancelled), ..BookingUpdate::default() };
    account.bookings().update(off.id, cancel()).await.unwrap();
    let path = format!("/bookings/{}", visit.id);
    assert!(!viewer.get(&path).await.text.contains("At the same time"));
    booking(&server, ada, "Overlap", &at("08:30"), &at("09:01")).await;
    let start = Some(Timestamp::parse(&at("09:30")).unwrap());
    let job = JobCreate { scheduled_start: start, ..JobCreate::new("New pump".parse().unwrap()) };
    account.jobs().create(job).await.unwrap();
    // Work of several days goes on beside it.
    let days = ["2026-03-19T07:00:00Z", "2026-03-21T16:00:00Z"].map(|at| Some(Timestamp::parse(at).unwrap()));
    let long = JobCreate::new("Rough-in".parse().unwrap());
    let long = JobCreate { scheduled_start: days[0], scheduled_end: days[1], ..long };
    let long = account.jobs().create(long).await.unwrap();
    assert!(!viewer.get(&format!("/jobs/{}", long.id)).await.text.contains("At the same time"));
    let page = text(&viewer.get(&path).await.text);
    let others =
        "At the same time: Overlap ( 20 Mar 2026, 08:30 ), New pump (JOB-0001) ( 20 Mar 2026, 09:30 ) Contact Ada";
    assert!(page.contains(others), "{page}");
    // One that is cancelled takes no time itself.
    account.bookings().update(visit.id, cancel()).await.unwrap();
    assert!(!viewer.get(&path).await.text.contains("At the same time"));
    // A night is no work of several days, and nobody moves what is over.
    let night = booking(&server, ada, "Night", "2026-03-24T22:00:00Z", "2026-03-25T02:00:00Z").await;
    booking(&server, ada, "Late", "2026-03-24T23:00:00Z", "2026-03-25T00:00:00Z").await;
    let path = format!("/bookings/{}", night.id);
    assert!(viewer.get(&path).await.text.contains("At the same time"));
    server.clock.advance(std::time::Duration::from_secs(11 * 24 * 60 * 60));
    let viewer = server.signed_in(Role::Viewer).await;
    assert!(!viewer.get(&path).await.text.contains("At the same time"));
}

#[tokio::test]
async fn a_booking_that_began_is_completed_by_one_press_and_an_earlier_one_cancelled() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    let developer = server.signed_in(Role::Developer).await;
    let visit = booking(&server, ada, "Visit", "2026-03-14T16:00:00Z", "2026-03-14T17:00:00Z").await;
    let path = format!("/bookings/{}", visit.id);
    let page = developer.get(&path).await.text;
    assert!(page.contains("Cancel the booking") && !page.contains("Mark as completed"), "{page}");
    server.clock.advance(std::time::Duration::from_secs(52 * 60));
    let page = developer.get(&path).await.text;
    assert!(page.contains("Mark as no show"), "{page}");
    let complete = format!("{path}/complete");
    let form = hidden(&page, &complete);
    assert_eq!(developer.post(&complete, &form).await.status, StatusCode::SEE_OTHER);
    let bookings = server.svc.account(server.tenant).bookings();
    assert_eq!(bookings.get(visit.id).await.unwrap().status, BookingStatus::Completed);
    let page = developer.get(&path).await.text;
    assert!(!page.contains("Mark as completed") && !page.contains("Cancel the booking"), "{page}");
}

#[tokio::test]
async fn a_job_goes_on_by_one_press_and_shows_where_it_is() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    let developer = server.signed_in(Role::Developer).await;
    let jobs = server.svc.account(server.tenant).jobs();
    let pump = JobCreate {
        contact_id: Some(ada),
        site_address: Some("1 Quay St".parse().unwrap()),
        site_suburb: Some("Sydney".parse().unwrap()),
        scheduled_start: Some("2026-03-16T09:00:00Z".parse().unwrap()),
        ..JobCreate::new("New pump".parse().unwrap())
    };
    let job = jobs.create(pump).await.unwrap();
    let path = format!("/jobs/{}", job.id);
    for (status, step, label) in [
        (JobStatus::Quoted, "schedule", "Mark as scheduled"),
        (JobStatus::Scheduled, "start", "Start the job"),
        (JobStatus::InProgress, "complete", "Mark as completed"),
    ] {
        assert_eq!(jobs.get(job.id).await.unwrap().status, status);
        let page = developer.get(&path).await.text;
        let step = format!("{path}/{step}");
        assert!(page.contains(label), "{label}: {page}");
        assert_eq!(developer.post(&step, &hidden(&page, &step)).await.status, StatusCode::SEE_OTHER);
    }
    assert_eq!(jobs.get(job.id).await.unwrap().status, JobStatus::Completed);
    let page = developer.get(&path).await.text;
    assert!(page.contains("Make the invoice") && !page.contains("Mark as completed"), "{page}");
    let shown = text(&page);
    assert!(shown.contains("New pump completed JOB-0001 · Ada"), "{shown}");
    assert!(shown.contains("Site 1 Quay St, Sydney Map"), "{shown}");
    assert!(page.contains("https://www.openstreetmap.org/search?query=1+Quay+St%2C+Sydney"), "{page}");
}

#[tokio::test]
async fn a_job_without_a_time_is_scheduled_with_one() {
    let server = Server::start().await;
    in_zone(&server, "Australia/Sydney").await;
    let developer = server.signed_in(Role::Developer).await;
    let jobs = server.svc.account(server.tenant).jobs();
    let job = jobs.create(JobCreate::new("New pump".parse().unwrap())).await.unwrap();
    let path = format!("/jobs/{}", job.id);
    let step = format!("{path}/schedule");
    let page = developer.get(&path).await.text;
    assert!(page.contains("Schedule the job") && !page.contains("Mark as scheduled"), "{page}");
    let with = |start: &str, end: &str| {
        format!(
            "{}&{}",
            hidden(&page, &step),
            super::browser::encode(&[("scheduled_start", start), ("scheduled_end", end)])
        )
    };
    let skipped = developer.post(&step, &with("2026-10-04T02:30", "")).await;
    assert_eq!(skipped.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(text(&skipped.text).contains("Starts: the time"), "{}", skipped.text);
    let earlier = developer.post(&step, &with("2026-10-05T09:30", "2026-10-05T09:00")).await;
    assert_eq!(earlier.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", earlier.text);
    assert_eq!(
        developer.post(&step, &with("2026-10-05T09:30", "2026-10-05T11:00")).await.status,
        StatusCode::SEE_OTHER
    );
    let scheduled = jobs.get(job.id).await.unwrap();
    assert_eq!(scheduled.status, JobStatus::Scheduled);
    let times = [scheduled.scheduled_start, scheduled.scheduled_end].map(|at| at.unwrap().to_string());
    assert_eq!(times, ["2026-10-04T22:30:00.000000Z", "2026-10-05T00:00:00.000000Z"]);
}

#[tokio::test]
async fn a_booking_of_many_days_is_on_each_of_them() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    booking(&server, ada, "Long", "2026-02-20T12:00:00Z", "2026-03-03T12:00:00Z").await;
    let viewer = server.signed_in(Role::Viewer).await;
    let days = cells(&viewer, "date=2026-03-15").await;
    // The month begins with the last days of February.
    let [first, .., last] = days.as_slice() else { panic!("{days:?}") };
    assert_eq!(days.len(), 9);
    assert_eq!(first, "Monday 23 Monday, 23 Feb 2026 Long Ada");
    assert_eq!(last, "Tuesday 3 Tuesday, 3 Mar 2026 … until 12:00 Long Ada");
    assert_eq!(filled(&viewer, "view=day&date=2026-03-04").await, [""; 0]);
}

#[tokio::test]
async fn a_day_with_many_bookings_shows_some_and_leads_to_the_others() {
    let server = Server::start().await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    let create = server.svc.store().write("test", (server.tenant, ada), async |tx, &(tenant, ada)| {
        for minute in 0..130 {
            let start = Timestamp::parse(&format!("2026-03-20T{:02}:{:02}:00Z", 8 + minute / 60, minute % 60)).unwrap();
            crud::create::<Booking>(tx, tenant, BookingCreate::new(ada, "Visit".parse().unwrap(), start)).await?;
        }
        Ok(())
    });
    create.await.unwrap();
    let viewer = server.signed_in(Role::Viewer).await;
    let month = cells(&viewer, "view=month").await;
    assert_eq!(month.len(), 1, "{month:?}");
    assert!(month[0].ends_with("08:03 Visit Ada and 126 more on 20 Mar 2026"), "{month:?}");
    let week = filled(&viewer, "view=week&date=2026-03-18").await;
    assert!(week[0].contains("and 110 more on 20 Mar 2026"), "{week:?}");
    let day = viewer.get("/calendar?view=day&date=2026-03-20").await.text;
    assert_eq!(day.matches("Visit").count(), 100);
    let shown = text(&day);
    assert!(shown.contains("And 30 more. All of them: bookings , jobs that start on this day."), "{shown}");
    let list = "/bookings?show=today&amp;date=2026-03-20";
    assert!(day.contains(&format!("href=\"/dashboard{list}\"")), "{day}");
    assert!(viewer.get(&list.replace("&amp;", "&")).await.text.contains("Bookings of 20 Mar 2026"));
}

#[tokio::test]
async fn a_date_that_is_none_is_explained_and_today_is_shown() {
    let server = Server::start().await;
    let viewer = server.signed_in(Role::Viewer).await;
    for (query, reason) in [
        (
            "date=2026-02-30",
            "“2026-02-30” is no date of the calendar, such as 2026-03-14, from 1900-01-01 to 2199-12-31.",
        ),
        ("date=tomorrow", "“tomorrow” is no date of the calendar"),
        ("date=9999-12-31", "“9999-12-31” is no date of the calendar"),
        ("date=%3Cb%3E", "“<b>” is no date of the calendar"),
        ("view=year", "“year” is no view of the calendar: choose day, week or month."),
    ] {
        let page = viewer.get(&format!("/calendar?{query}")).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        let shown = text(&page.text);
        assert!(shown.contains(reason) && shown.contains("March 2026"), "{query}: {shown}");
        assert!(!page.text.contains("<b>"), "{}", page.text);
    }
    for date in ["1900-01-01", "2199-12-31"] {
        for view in ["month", "week", "day"] {
            let page = viewer.get(&format!("/calendar?view={view}&date={date}")).await;
            assert_eq!(page.status, StatusCode::OK, "{view} {date}");
        }
    }
}

#[tokio::test]
async fn a_free_day_leads_to_the_form_of_a_booking_with_its_start() {
    let server = Server::start().await;
    in_zone(&server, "Australia/Sydney").await;
    let developer = server.signed_in(Role::Developer).await;
    let page = developer.get("/calendar").await.text;
    assert!(page.contains("href=\"/dashboard/bookings/new?start=2026-03-20T09%3A00\""), "{page}");
    let form = developer.get("/bookings/new?start=2026-03-20T09%3A00").await.text;
    assert!(form.contains("value=\"2026-03-20T09:00\""), "{form}");
    let twice = developer.get("/bookings/new?start=2026-04-05T02%3A30&offset=%2B10%3A00").await.text;
    assert!(twice.contains("value=\"2026-04-05T02:30\""), "{twice}");
    assert!(twice.contains("<option value=\"+10:00\" selected"), "{twice}");
    for bad in ["soon", "2026-10-04T02%3A30", "2026-04-05T02%3A30", "%22%3E"] {
        let form = developer.get(&format!("/bookings/new?start={bad}")).await;
        assert_eq!(form.status, StatusCode::OK, "{bad}");
        let empty = "name=\"start_time\" type=\"datetime-local\" value=\"\"";
        assert!(form.text.contains(empty), "{bad}: {}", form.text);
    }
}
