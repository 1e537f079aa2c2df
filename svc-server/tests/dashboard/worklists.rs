//! The lists of what starts or is due on some days.

use http::StatusCode;
use svc_core::accounts::sessions::Role;
use svc_core::prelude::*;

use super::browser::{Browser, Server};
use super::records::{rows, text};

/// Sets the time zone of the account. The clock of the server shows Saturday, 14 March 2026, 15:09 in UTC.
async fn in_zone(server: &Server, zone: &str) {
    let zone = TimeZone::parse(zone).unwrap();
    server.svc.account(server.tenant).change_settings(move |tenant| tenant.time_zone = zone.clone()).await.unwrap();
}

/// Returns the first column of a list.
async fn names(browser: &Browser<'_>, path: &str) -> Vec<String> {
    let page = browser.get(path).await;
    assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.text);
    rows(&page.text).iter().map(|row| row.split(' ').next().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn bookings_and_jobs_are_listed_by_the_days_on_which_they_start() {
    let server = Server::start().await;
    // There it is Sunday already, the last day of the week, and the clock shows 02:09.
    in_zone(&server, "Australia/Sydney").await;
    let (ada, account) = (server.named_contact("ada@example.com", "Ada").await.id, server.svc.account(server.tenant));
    for (name, start) in [
        ("Earlier", "2026-03-08T23:59:59+11:00"),
        ("Monday", "2026-03-09T00:00:00+11:00"),
        ("Saturday", "2026-03-14T23:59:59+11:00"),
        ("Midnight", "2026-03-15T00:00:00+11:00"),
        ("Evening", "2026-03-15T23:59:59+11:00"),
        ("Tomorrow", "2026-03-16T00:00:00+11:00"),
        ("Later", "2026-03-17T00:00:00+11:00"),
    ] {
        let (name, start) = (Text::parse(name).unwrap(), Timestamp::parse(start).unwrap());
        account.bookings().create(BookingCreate::new(ada, name.clone(), start)).await.unwrap();
        let job = JobCreate { scheduled_start: Some(start), ..JobCreate::new(name) };
        account.jobs().create(job).await.unwrap();
    }
    account.jobs().create(JobCreate::new("Unplanned".parse().unwrap())).await.unwrap();
    let viewer = server.signed_in(Role::Viewer).await;
    for (list, wanted, dates) in [
        ("today", &["Midnight", "Evening"][..], "Sunday, 15 Mar 2026, in"),
        ("tomorrow", &["Tomorrow"], "Monday, 16 Mar 2026, in"),
        ("week", &["Monday", "Saturday", "Midnight", "Evening"], "9 Mar 2026 to 15 Mar 2026, in"),
        ("upcoming", &["Midnight", "Evening", "Tomorrow", "Later"], "From 15 Mar 2026 on, in"),
        ("past", &["Saturday", "Monday", "Earlier"], "Before 15 Mar 2026, in"),
        ("today&date=2026-03-14", &["Saturday"], "Bookings of 14 Mar 2026"),
        ("week&date=2026-03-08", &["Earlier"], "2 Mar 2026 to 8 Mar 2026, in"),
    ] {
        let path = format!("/bookings?show={list}");
        assert_eq!(names(&viewer, &path).await, wanted, "{list}");
        let page = text(&viewer.get(&path).await.text);
        assert!(page.contains(dates) && page.contains("the time zone Australia/Sydney."), "{list}: {page}");
        let jobs = rows(&viewer.get(&format!("/jobs?show={list}")).await.text);
        let titles: Vec<&str> = jobs.iter().map(|row| row.split(' ').nth(1).unwrap()).collect();
        assert_eq!(titles, wanted, "{list}");
    }
    let page = viewer.get("/bookings?show=week").await.text;
    assert!(page.contains("href=\"/dashboard/bookings?show=week\" aria-current=\"page\""), "{page}");
}

#[tokio::test]
async fn a_list_by_days_is_filtered_by_status() {
    let server = Server::start().await;
    let (ada, account) = (server.named_contact("ada@example.com", "Ada").await.id, server.svc.account(server.tenant));
    let mut ids = Vec::new();
    for hour in 10..13 {
        ids.push(server.booking(ada, &format!("2026-03-14T{hour}:00:00Z")).await.id);
    }
    let cancel = BookingUpdate { status: Patch::Set(BookingStatus::Cancelled), ..BookingUpdate::default() };
    account.bookings().update(ids[1], cancel).await.unwrap();
    let viewer = server.signed_in(Role::Viewer).await;
    for (query, count) in [("", 3), ("&status=confirmed", 2), ("&status=cancelled", 1), ("&status=no_show", 0)] {
        assert_eq!(names(&viewer, &format!("/bookings?show=today{query}")).await.len(), count, "{query}");
    }
    for (query, reason) in [
        ("show=today&status=gone", "The status is not one of those that there are."),
        ("show=today&cursor=x", "cursor"),
        ("show=today&date=tomorrow", "“tomorrow” is no value of the filter “date”."),
    ] {
        let page = viewer.get(&format!("/bookings?{query}")).await;
        assert_eq!(page.status, StatusCode::UNPROCESSABLE_ENTITY, "{query}");
        assert!(text(&page.text).contains(reason), "{query}: {}", page.text);
    }
    assert_eq!(viewer.get("/bookings?show=overdue").await.status, StatusCode::NOT_FOUND);
    assert_eq!(viewer.get("/contacts?show=today").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn invoices_that_await_payment_are_listed_by_due_date() {
    let server = Server::start().await;
    in_zone(&server, "Australia/Sydney").await;
    let account = server.svc.account(server.tenant);
    // Today is 15 March there.
    for due in ["2026-03-22", "2026-03-01", "2026-03-14", "2026-03-15", "2026-03-09", "9999-12-31"] {
        let due_date = Some(Date::parse(due).unwrap());
        let create = InvoiceCreate { due_date, ..InvoiceCreate::new("10".parse().unwrap()) };
        let id = account.invoices().create(create).await.unwrap().id;
        account.invoices().send(id).await.unwrap();
    }
    let sent = InvoiceCreate::new("10".parse().unwrap());
    let sent = account.invoices().create(sent).await.unwrap().id;
    account.invoices().send(sent).await.unwrap();
    let due_date = Some(Date::parse("2026-03-15").unwrap());
    let draft = InvoiceCreate { due_date, ..InvoiceCreate::new("10".parse().unwrap()) };
    account.invoices().create(draft.clone()).await.unwrap();
    let paid = account.invoices().create(draft).await.unwrap().id;
    account.invoices().pay(paid).await.unwrap();
    let viewer = server.signed_in(Role::Viewer).await;
    for (list, numbers) in [
        ("overdue", &["INV-0002", "INV-0005", "INV-0003"][..]),
        ("today", &["INV-0004"]),
        ("week", &["INV-0005", "INV-0003", "INV-0004"]),
        ("upcoming", &["INV-0004", "INV-0001", "INV-0006"]),
        ("outstanding", &["INV-0002", "INV-0005", "INV-0003", "INV-0004", "INV-0001", "INV-0006", "INV-0007"]),
    ] {
        assert_eq!(names(&viewer, &format!("/invoices?show={list}")).await, numbers, "{list}");
    }
    assert_eq!(account.today().await.unwrap().overdue().count(), 3, "the overview counts what the list has");
}

#[tokio::test]
async fn the_pages_of_a_list_by_days_go_on_after_midnight() {
    let server = Server::start().await;
    // The clock shows 23:09 there.
    in_zone(&server, "Asia/Singapore").await;
    let ada = server.named_contact("ada@example.com", "Ada").await.id;
    for minute in 0..60 {
        server.booking(ada, &format!("2026-03-14T10:{minute:02}:00Z")).await;
    }
    let viewer = server.signed_in(Role::Viewer).await;
    let page = viewer.get("/bookings?show=today&status=confirmed").await.text;
    assert_eq!(rows(&page).len(), 50);
    let next =
        page.split("href=\"/dashboard").find(|link| link.contains("cursor=")).unwrap().split('"').next().unwrap();
    assert!(next.contains("date=2026-03-14") && next.contains("status=confirmed"), "{next}");
    server.clock.advance(std::time::Duration::from_secs(55 * 60));
    let page = viewer.get(&next.replace("&amp;", "&")).await.text;
    assert_eq!(rows(&page).len(), 10);
    assert!(page.contains("First page") && !page.contains("Next page"), "{page}");
}
