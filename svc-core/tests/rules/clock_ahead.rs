//! A tenant whose clock is ahead of the wall clock: its times order what it writes, and nothing else follows from them.

use std::time::Duration;

use serde_json::json;
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::clocks::{self, ClockRepair};
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::error::Error;
use svc_core::resources::contacts::Contact;
use svc_core::resources::invoices::{self, InvoiceStatus};
use svc_core::resources::jobs::Job;
use svc_core::resources::quotes::{self, Quote};
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use super::{Rules, START, time};

const AHEAD: &str = "2031-01-01T00:00:00Z";

impl Rules {
    /// Writes once under a clock that is years ahead, and sets the clock right.
    fn after_a_write_in_the_future() -> (Self, Contact) {
        let fixture = Self::new();
        fixture.clock.set(time(AHEAD));
        let contact = fixture.create(json!({ "email": "bob@example.com" })).unwrap();
        fixture.clock.set(time(START));
        (fixture, contact)
    }

    fn repair(&self) -> Option<ClockRepair> {
        let tenant = self.tenant;
        self.write(tenant, async |tx, &tenant| clocks::repair(tx, tenant).await).unwrap()
    }

    fn advance_clock(&self) -> Timestamp {
        let tenant = self.tenant;
        self.write(tenant, async |tx, &tenant| advance_clock(tx, tenant).await).unwrap()
    }
}

#[test]
fn dates_and_expiries_follow_the_wall_clock() {
    let (fixture, _) = Rules::after_a_write_in_the_future();
    let (tenant, now) = (fixture.tenant, time(START));
    let contact = fixture.contact();

    let quote: Quote = fixture.create(json!({ "contact_id": contact, "total": 1 })).unwrap();
    assert!(quote.created_at > time(AHEAD), "its order follows the tenant's clock");
    let dates = [quote.issue_date, quote.valid_until].map(|date| date.unwrap().to_string());
    assert_eq!(dates, ["2026-03-14", "2026-04-13"]);
    fixture.update::<Quote>(quote.id, json!({ "status": "sent" })).unwrap();
    let accepted = fixture.write((tenant, quote.id), async |tx, &(tenant, id)| quotes::accept(tx, tenant, id).await);
    assert!(accepted.is_ok(), "it is valid until April: {accepted:?}");

    let invoice = fixture.invoice(json!({ "total": 100, "due_date": "2026-04-01" })).unwrap();
    assert_eq!(invoice.issue_date.unwrap().to_string(), "2026-03-14");
    let paid = fixture.pay(invoice.id, "100").unwrap();
    assert_eq!((paid.status, paid.paid_at), (InvoiceStatus::Paid, Some(now)));
    assert!(paid.updated_at > time(AHEAD));
    fixture.new_events();
    fixture
        .write((tenant, invoice.id), async |tx, &(tenant, id)| {
            invoices::refund(tx, tenant, id, invoices::PaymentCreate::default()).await
        })
        .unwrap();
    let refunded: serde_json::Value = serde_json::from_str(fixture.new_events()[0].data.get()).unwrap();
    assert_eq!(refunded["refunded_at"], now.to_string());

    let job: Job = fixture.create(json!({ "title": "x", "status": "in_progress" })).unwrap();
    let job: Job = fixture.update(job.id, json!({ "status": "completed" })).unwrap();
    assert_eq!((job.actual_start, job.actual_end), (Some(now), Some(now)));

    let day = Duration::from_secs(24 * 3600);
    let key = fixture.write((day, tenant), async |tx, &(day, tenant)| {
        let input = KeyCreate { name: None, write: true, expires_in: Some(day), signed: false };
        keys::create(tx, tenant, input).await
    });
    let key = key.unwrap().key;
    assert_eq!((key.expires_at, key.lifetime), (now.checked_add(day), Some(day)));
}

#[test]
fn a_clock_that_left_no_record_ahead_is_set_back_to_now() {
    let fixture = Rules::new();
    let contact: Contact = fixture.create(json!({ "email": "ada@example.com" })).unwrap();
    assert_eq!(fixture.repair(), None, "a microsecond is no reason to repair anything");
    fixture.clock.set(time(AHEAD));
    // An update that changes nothing takes a time, and writes none.
    fixture.update::<Contact>(contact.id, json!({ "email": "ada@example.com" })).unwrap();
    let now = contact.updated_at.checked_add(Duration::from_secs(60)).unwrap();
    fixture.clock.set(now);
    assert!(fixture.advance_clock() > time(AHEAD));

    let repair = fixture.repair().unwrap();
    assert_eq!((repair.before > time(AHEAD), repair.after), (true, now));
    let changed: Contact = fixture.update(contact.id, json!({ "first_name": "Ada" })).unwrap();
    assert_eq!(changed.updated_at, now.next());
    assert_eq!(fixture.repair(), None);
    let tenant = fixture.tenant;
    let audited = fixture.write(tenant, async |tx, &tenant| {
        Ok(tx.audit_entries(tenant, Timestamp::from_micros(0), Timestamp::MAX, 10).await?)
    });
    assert!(audited.unwrap().iter().any(|entry| entry.action == "repair_clock"), "the repair is audited");
}

/// A client that has seen the latest change asks for changes since then. Whatever comes later must have a later time.
#[test]
fn a_clock_is_not_set_back_before_what_was_written() {
    let (fixture, contact) = Rules::after_a_write_in_the_future();
    let written = contact.updated_at;
    for _ in 0..3 {
        fixture.advance_clock();
    }
    let repair = fixture.repair().unwrap();
    assert_eq!(repair.after, written, "the time of the last record");
    assert!(repair.before > repair.after);
    let next: Contact = fixture.create(json!({ "email": "lin@example.com" })).unwrap();
    assert_eq!(next.created_at, written.next());
    let repair = fixture.repair().unwrap();
    assert_eq!((repair.before, repair.after), (next.created_at, next.created_at), "nothing can be set back");
}

#[test]
fn an_unknown_tenant_has_no_clock_to_repair() {
    let fixture = Rules::new();
    let unknown = TenantId(Uuid::nil());
    let repaired = fixture.write(unknown, async |tx, &unknown| clocks::repair(tx, unknown).await);
    assert_eq!(repaired, Err(Error::NotFound));
}
