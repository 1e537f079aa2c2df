//! Lists: order, position, limit and filters, compared with a simple reference implementation.

use serde_json::json;
use svc_core::pages::{ListQuery, Order};
use svc_core::resources::bookings::{Booking, BookingFilter, BookingStatus};
use svc_core::resources::contacts::{Contact, ContactFilter};
use svc_core::resources::invoices::{Invoice, InvoiceFilter, InvoiceStatus};
use svc_core::resources::jobs::{Job, JobFilter, JobStatus};
use svc_core::resources::quotes::{Quote, QuoteFilter, QuoteStatus};
use svc_core::resources::starts::{HasStart, StartPlace};
use svc_core::resources::{Filter, NewRecord, Resource};
use svc_core::values::{Date, Email, Id, TenantId, Text, Timestamp};
use svc_core::webhooks::subscriptions::WebhookSubscription;

use crate::samples::{Sample, far};
use crate::{Harness, every_resource};

const LIMITS: [u32; 5] = [1, 2, 5, 6, 201];

fn ids<R: Resource>(rows: &[R]) -> Vec<Id<R>> {
    rows.iter().map(Resource::id).collect()
}

pub(super) async fn the_newest_record_comes_first(h: Harness) {
    async fn check<R: Sample>(h: &Harness, tenant: TenantId, other: TenantId) {
        let mut rows = Vec::new();
        for _ in 0..6 {
            rows.push(h.insert(tenant, R::bare).await);
            h.insert(other, R::bare).await;
        }
        // A change does not affect this order.
        let changed = h.replace(tenant, &rows[2]).await;
        rows[2] = changed;
        rows.reverse();
        for limit in LIMITS {
            let list = |before| {
                let order = Order::NewestFirst { before };
                h.list::<R>(tenant, ListQuery { limit, order, filter: R::Filter::none() })
            };
            let page = |from: usize| rows[from..].iter().take(limit as usize).cloned().collect::<Vec<R>>();
            assert_eq!(list(None).await, page(0), "{} limit {limit}", R::COLLECTION);
            for (position, row) in rows.iter().enumerate() {
                let at = row.created_at();
                assert_eq!(list(Some(at)).await, page(position + 1), "strictly before");
                assert_eq!(list(Some(at.next())).await, page(position), "a microsecond later");
            }
            assert_eq!(list(Some(Timestamp::from_micros(i64::MIN))).await, []);
            assert_eq!(list(Some(Timestamp::from_micros(i64::MAX))).await, page(0));
        }
    }
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    every_resource!(check(&h, tenant, other));
}

pub(super) async fn the_oldest_change_comes_first(h: Harness) {
    async fn check<R: Sample>(h: &Harness, tenant: TenantId, other: TenantId) {
        let mut rows = Vec::new();
        for _ in 0..6 {
            rows.push(h.insert(tenant, R::bare).await);
            h.insert(other, R::bare).await;
        }
        for position in [4, 0] {
            let changed = h.replace(tenant, &rows[position]).await;
            rows[position] = changed;
        }
        let rows: Vec<R> = [1, 2, 3, 5, 4, 0].into_iter().map(|position: usize| rows[position].clone()).collect();
        for limit in LIMITS {
            let list = |from| {
                let order = Order::OldestChangeFirst { from };
                h.list::<R>(tenant, ListQuery { limit, order, filter: R::Filter::none() })
            };
            let page = |from: usize| rows[from..].iter().take(limit as usize).cloned().collect::<Vec<R>>();
            assert_eq!(list(Timestamp::from_micros(i64::MIN)).await, page(0), "{} limit {limit}", R::COLLECTION);
            for (position, row) in rows.iter().enumerate() {
                let at = row.updated_at();
                assert_eq!(list(at).await, page(position), "at the same time");
                assert_eq!(list(at.next()).await, page(position + 1), "a microsecond later");
            }
            assert_eq!(list(Timestamp::from_micros(i64::MAX)).await, []);
        }
    }
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    every_resource!(check(&h, tenant, other));
}

/// Compares the list with the rows that match `wanted`, in both orders, at every position and with several limits.
async fn compare<R: Sample>(
    h: &Harness,
    tenant: TenantId,
    rows: &[R],
    filter: R::Filter,
    wanted: impl Fn(&R) -> bool + Send,
) {
    let mut wanted: Vec<&R> = rows.iter().filter(|row| wanted(row)).collect();
    wanted.sort_by_key(|row| std::cmp::Reverse(row.created_at()));
    let starts = rows.iter().map(|row| Some(row.created_at())).chain([None]);
    for before in starts {
        for limit in [1, 3, 201] {
            let rest = wanted.iter().filter(|row| before.is_none_or(|before| row.created_at() < before));
            let want: Vec<_> = rest.take(limit as usize).map(|row| row.id()).collect();
            let order = Order::NewestFirst { before };
            let got = h.list::<R>(tenant, ListQuery { limit, order, filter: filter.clone() }).await;
            assert_eq!(ids(&got), want, "{} {} {order:?} {limit}", R::COLLECTION, json!(filter));
        }
    }
    wanted.sort_by_key(|row| row.updated_at());
    for from in rows.iter().map(Resource::updated_at).chain([Timestamp::from_micros(0)]) {
        for limit in [1, 3, 201] {
            let rest = wanted.iter().filter(|row| row.updated_at() >= from);
            let want: Vec<_> = rest.take(limit as usize).map(|row| row.id()).collect();
            let order = Order::OldestChangeFirst { from };
            let got = h.list::<R>(tenant, ListQuery { limit, order, filter: filter.clone() }).await;
            assert_eq!(ids(&got), want, "{} {} {order:?} {limit}", R::COLLECTION, json!(filter));
        }
    }
}

pub(super) async fn contacts_are_filtered_by_email_and_deletion(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let mut rows = Vec::new();
    // Two contacts may have the same email if one of them is deleted.
    for (email, deleted) in [
        (Some("ada@example.com"), true),
        (Some("bob@example.com"), false),
        (None, false),
        (Some("Ada@Example.com"), true),
        (Some("ADA@EXAMPLE.COM"), false),
        (None, true),
        (Some("bob@example.com"), true),
        (Some("cy@example.com"), false),
    ] {
        for tenant in [other, tenant] {
            let row = h
                .insert(tenant, move |new| Contact {
                    email: email.map(Email::from_stored),
                    deleted_at: deleted.then_some(new.now),
                    ..Contact::bare(new)
                })
                .await;
            rows.push((tenant, row));
        }
    }
    let mut rows: Vec<Contact> = rows.into_iter().filter(|(owner, _)| *owner == tenant).map(|(_, row)| row).collect();
    for position in [5, 1, 3] {
        let changed = h.replace(tenant, &rows[position]).await;
        rows[position] = changed;
    }
    for email in
        [None, Some("ada@example.com"), Some("aDa@eXample.com"), Some("bob@example.com"), Some("x@example.com")]
    {
        for include_deleted in [None, Some(false), Some(true)] {
            let filter = ContactFilter { email: email.map(Email::from_stored), include_deleted };
            compare(&h, tenant, &rows, filter, |row| {
                let of_row = row.email.as_ref().map(|email| email.as_str().to_lowercase());
                let live = include_deleted == Some(true) || row.deleted_at.is_none();
                live && email.is_none_or(|email| of_row == Some(email.to_lowercase()))
            })
            .await;
        }
    }
    let filter = ContactFilter { email: Some(Email::from_stored("ada@example.com")), include_deleted: None };
    let order = Order::NewestFirst { before: None };
    assert_eq!(ids(&h.list::<Contact>(tenant, ListQuery { limit: 10, order, filter }).await), [rows[4].id]);
}

pub(super) async fn invoices_are_filtered_by_status_and_number(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let mut rows = Vec::new();
    for (at, status) in InvoiceStatus::ALL.iter().copied().cycle().take(16).enumerate() {
        let make = move |new| Invoice { invoice_number: format!("INV-{at:04}"), status, ..Invoice::bare(new) };
        rows.push(h.insert(tenant, make).await);
        h.insert(other, make).await;
    }
    rows[3] = h.replace(tenant, &Invoice { status: InvoiceStatus::Paid, ..rows[3].clone() }).await;
    compare(&h, tenant, &rows, InvoiceFilter::none(), |_| true).await;
    for status in InvoiceStatus::ALL.iter().copied() {
        let filter = InvoiceFilter { status: Some(status), number: None };
        compare(&h, tenant, &rows, filter, |row| row.status == status).await;
    }
    for number in ["INV-0003", "INV-9999"] {
        // The other tenant's invoice with this number is partially paid.
        for status in [None, Some(InvoiceStatus::Paid), Some(InvoiceStatus::Draft), Some(InvoiceStatus::Partial)] {
            let filter = InvoiceFilter { status, number: Some(Text::from_stored(number)) };
            compare(&h, tenant, &rows, filter, |row| {
                row.invoice_number == number && status.is_none_or(|status| row.status == status)
            })
            .await;
        }
    }
}

pub(super) async fn quotes_are_filtered_by_status(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let mut rows = Vec::new();
    for status in QuoteStatus::ALL.iter().copied().cycle().take(16) {
        rows.push(h.insert(tenant, move |new| Quote { status, ..Quote::bare(new) }).await);
        h.insert(other, move |new| Quote { status, ..Quote::bare(new) }).await;
    }
    rows[3] = h.replace(tenant, &Quote { status: QuoteStatus::Sent, ..rows[3].clone() }).await;
    compare(&h, tenant, &rows, QuoteFilter::none(), |_| true).await;
    for status in QuoteStatus::ALL.iter().copied() {
        compare(&h, tenant, &rows, QuoteFilter { status: Some(status) }, |row| row.status == status).await;
    }
}

pub(super) async fn bookings_are_filtered_by_status(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let mut rows = Vec::new();
    for status in BookingStatus::ALL.iter().copied().cycle().take(16) {
        rows.push(h.insert(tenant, move |new| Booking { status, ..Booking::bare(new) }).await);
        h.insert(other, move |new| Booking { status, ..Booking::bare(new) }).await;
    }
    rows[3] = h.replace(tenant, &Booking { status: BookingStatus::Completed, ..rows[3].clone() }).await;
    compare(&h, tenant, &rows, BookingFilter::none(), |_| true).await;
    for status in BookingStatus::ALL.iter().copied() {
        compare(&h, tenant, &rows, BookingFilter { status: Some(status) }, |row| row.status == status).await;
    }
}

pub(super) async fn jobs_are_filtered_by_status_and_number(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let mut rows = Vec::new();
    for (at, status) in JobStatus::ALL.iter().copied().cycle().take(16).enumerate() {
        let make = move |new| Job { job_number: format!("JOB-{at:04}"), status, ..Job::bare(new) };
        rows.push(h.insert(tenant, make).await);
        h.insert(other, make).await;
    }
    rows[3] = h.replace(tenant, &Job { status: JobStatus::OnHold, ..rows[3].clone() }).await;
    compare(&h, tenant, &rows, JobFilter::none(), |_| true).await;
    for status in JobStatus::ALL.iter().copied() {
        let filter = JobFilter { status: Some(status), job_number: None };
        compare(&h, tenant, &rows, filter, |row| row.status == status).await;
    }
    for number in ["JOB-0003", "JOB-9999"] {
        for status in [None, Some(JobStatus::OnHold), Some(JobStatus::Quoted)] {
            let filter = JobFilter { status, job_number: Some(Text::from_stored(number)) };
            compare(&h, tenant, &rows, filter, |row| {
                row.job_number == number && status.is_none_or(|status| row.status == status)
            })
            .await;
        }
    }
}

/// Filters do not treat SQL wildcards, case or blanks specially.
pub(super) async fn filters_compare_exactly(h: Harness) {
    let tenant = h.tenant().await;
    let order = Order::NewestFirst { before: None };
    h.insert(tenant, |new| Job { job_number: "JOB-0001".to_owned(), ..Job::bare(new) }).await;
    for number in ["job-0001", "JOB-____", "%", "JOB-0001%", "JOB-00010", "JOB-000", "JOB-0001\u{a0}"] {
        let filter = JobFilter { status: None, job_number: Some(Text::from_stored(number)) };
        assert_eq!(h.list::<Job>(tenant, ListQuery { limit: 10, order, filter }).await, [], "{number}");
    }
    h.insert(tenant, |new| Invoice { invoice_number: "INV-0001".to_owned(), ..Invoice::bare(new) }).await;
    for number in ["inv-0001", "INV-____", "%", "INV-0001 "] {
        let filter = InvoiceFilter { status: None, number: Some(Text::from_stored(number)) };
        assert_eq!(h.list::<Invoice>(tenant, ListQuery { limit: 10, order, filter }).await, [], "{number}");
    }
    h.contact(tenant, "axb@example.com").await;
    for email in ["a_b@example.com", "%@example.com", "axb@example.co", "axb@example.com.au"] {
        let filter = ContactFilter { email: Some(Email::from_stored(email)), include_deleted: Some(true) };
        assert_eq!(h.list::<Contact>(tenant, ListQuery { limit: 10, order, filter }).await, [], "{email}");
    }
}

pub(super) async fn deleted_subscriptions_are_not_listed(h: Harness) {
    let tenant = h.tenant().await;
    let mut rows = Vec::new();
    for _ in 0..5 {
        rows.push(h.insert(tenant, WebhookSubscription::bare).await);
    }
    for position in [0, 3] {
        h.delete::<WebhookSubscription>(tenant, rows[position].id).await.unwrap();
        rows[position] = h.row(tenant, rows[position].id).await.unwrap();
    }
    compare(&h, tenant, &rows, svc_core::resources::NoFilter {}, |row| row.deleted_at.is_none()).await;
    assert_eq!(ids(&h.all::<WebhookSubscription>(tenant).await), [rows[4].id, rows[2].id, rows[1].id]);
}

pub(super) async fn what_starts_soonest_comes_first(h: Harness) {
    async fn check<R: Sample + HasStart>(
        h: &Harness,
        [tenant, other]: [TenantId; 2],
        starts: &[Timestamp],
        make: fn(NewRecord, Timestamp) -> R,
    ) {
        let mut rows = Vec::new();
        for start in starts.iter().copied() {
            rows.push(h.insert(tenant, move |new| make(new, start)).await);
            h.insert(other, move |new| make(new, start)).await;
        }
        // Another start moves a record, and keeps its place among those that start at the same time.
        let new = NewRecord { tenant_id: tenant, id: rows[1].id().uuid(), now: rows[1].created_at() };
        rows[1] = h.replace(tenant, &make(new, starts[0])).await;
        let bare = h.insert(tenant, R::bare).await;
        rows.extend(bare.start().is_some().then_some(bare));
        let place = |row: &R| StartPlace { start: row.start().unwrap(), created_from: row.created_at() };
        rows.sort_by_key(place);
        let after = |row: &R| StartPlace { created_from: row.created_at().next(), ..place(row) };
        let first = Timestamp::from_micros(i64::MIN);
        let begin = StartPlace { start: first, created_from: first };
        let end = StartPlace { start: Timestamp::MAX, created_from: Timestamp::MAX };
        for from in rows.iter().flat_map(|row| [place(row), after(row)]).chain([begin, end]) {
            for last in starts.iter().copied().chain([first]) {
                for limit in [1, 3, 201] {
                    let read = h.read((tenant, from, last, limit), async |tx, &(tenant, from, last, limit)| {
                        Ok(R::by_start(tx).records_by_start(tenant, from, last, limit).await?)
                    });
                    let in_range = rows.iter().filter(|row| place(row) >= from && place(row).start <= last);
                    let expected: Vec<Id<R>> = in_range.take(limit as usize).map(R::id).collect();
                    assert_eq!(ids(&read.await.unwrap()), expected, "{} {from:?} {last} {limit}", R::COLLECTION);

                    // The same backwards, from the place on and not including it.
                    let (before, first) = (from, last);
                    let read = h.read((tenant, before, first, limit), async |tx, &(tenant, before, first, limit)| {
                        Ok(R::by_start(tx).records_before(tenant, before, first, limit).await?)
                    });
                    let in_range = rows.iter().rev().filter(|row| place(row) < before && place(row).start >= first);
                    let expected: Vec<Id<R>> = in_range.take(limit as usize).map(R::id).collect();
                    let found = ids(&read.await.unwrap());
                    assert_eq!(found, expected, "{} before {before:?} from {first} {limit}", R::COLLECTION);
                }
            }
        }
    }
    let tenants = [h.tenant().await, h.tenant().await];
    let at = |text: &str| Timestamp::parse(text).unwrap();
    let noon = at("2026-03-15T12:00:00Z");
    let starts = [noon, at("1969-12-31T23:59:59.999999Z"), noon, noon.next(), at("0000-01-01T00:00:00Z"), noon, far()];
    check(&h, tenants, &starts, |new, start| Job { scheduled_start: Some(start), ..Job::bare(new) }).await;
    // A booking ends after it starts.
    let starts = &starts[..6];
    check(&h, tenants, starts, |new, start| Booking { start_time: start, end_time: far(), ..Booking::bare(new) }).await;
}

/// An invoice is due on a date, as long as it is not paid.
pub(super) async fn what_is_due_soonest_comes_first(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let due = |text: &str| Date::parse(text).unwrap();
    let dates = ["2026-03-15", "1969-12-31", "2026-03-15", "2026-03-16", "0000-01-01", "9999-12-31"].map(due);
    let mut rows = Vec::new();
    for status in InvoiceStatus::ALL.iter().copied() {
        for date in dates {
            let make = move |new| Invoice { status, due_date: Some(date), ..Invoice::bare(new) };
            rows.push(h.insert(tenant, make).await);
            h.insert(other, make).await;
        }
        rows.push(h.insert(tenant, move |new| Invoice { status, due_date: None, ..Invoice::bare(new) }).await);
    }
    // An invoice that is paid is due no longer.
    let paid = rows.iter().position(|row| row.start().is_some()).unwrap();
    rows[paid] = h.replace(tenant, &Invoice { status: InvoiceStatus::Paid, ..rows[paid].clone() }).await;
    rows.retain(|row| row.start().is_some());
    assert_eq!(rows.len(), 4 * dates.len() - 1);
    let place = |row: &Invoice| StartPlace { start: row.start().unwrap(), created_from: row.created_at };
    rows.sort_by_key(place);
    for from in rows.iter().map(place) {
        for end in dates.map(Date::begins_in_utc) {
            for limit in [1, 3, 201] {
                let read = h.read((tenant, from, end, limit), async |tx, &(tenant, from, end, limit)| {
                    let forwards = Invoice::by_start(tx).records_by_start(tenant, from, end, limit).await?;
                    Ok((forwards, Invoice::by_start(tx).records_before(tenant, from, end, limit).await?))
                });
                let (forwards, backwards) = read.await.unwrap();
                let later = rows.iter().filter(|row| place(row) >= from && place(row).start <= end);
                let earlier = rows.iter().rev().filter(|row| place(row) < from && place(row).start >= end);
                let expected: Vec<_> = later.take(limit as usize).map(|row| row.id).collect();
                assert_eq!(ids(&forwards), expected, "{from:?} to {end}, {limit}");
                let expected: Vec<_> = earlier.take(limit as usize).map(|row| row.id).collect();
                assert_eq!(ids(&backwards), expected, "{from:?} back to {end}, {limit}");
            }
        }
    }
}
