//! The daily check that marks invoices as overdue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use serde_json::json;
use svc_core::accounts::tenants;
use svc_core::error::{Error, StoreError};
use svc_core::resources::invoices::{self, InvoiceId, OVERDUE_STEP, OverdueChecks};
use svc_core::store::{Access, Store, StoreWrapper, UnitOfWork};
use svc_core::values::TimeZone;

use super::invoices::SEND;
use super::{Rules, time};

impl Rules {
    /// Makes an invoice that is sent and due on this day.
    fn sent(&self, due: &str) -> InvoiceId {
        let id = self.invoice(json!({ "total": 100, "due_date": due })).unwrap().id;
        self.step(SEND, id).unwrap();
        id
    }

    /// Checks the tenants for which a day has begun, and returns how many invoices became overdue.
    fn check(&self) -> u64 {
        let checked = invoices::check_overdue(&**self.store(), || async {}).now_or_never().unwrap().unwrap();
        assert_eq!(checked.failed, []);
        checked.marked
    }

    /// Sets the clock and checks.
    fn check_at(&self, now: &str) -> u64 {
        self.clock.set(time(now));
        self.check()
    }

    fn set_zone(&self, zone: &str) {
        let (tenant, zone) = (self.tenant, TimeZone::parse(zone).unwrap());
        self.write((tenant, zone), async |tx, (tenant, zone)| {
            tenants::update(tx, tenant.0, move |tenant| tenant.time_zone = zone.clone()).await
        })
        .unwrap();
    }
}

#[test]
fn invoices_are_checked_once_a_day_after_midnight_of_the_time_zone() {
    // Midnight in Sydney is 13:00 UTC.
    let fixture = Rules::in_zone("Australia/Sydney", "AUD");
    for due in ["2026-03-15", "2026-03-15", "2026-03-16"] {
        fixture.sent(due);
    }
    fixture.new_events();
    assert_eq!(fixture.check_at("2026-03-15T12:59:59.999999Z"), 0);
    assert_eq!(fixture.check_at("2026-03-15T13:00:00Z"), 2);
    assert_eq!(fixture.new_kinds(), "invoice.updated invoice.updated");
    fixture.sent("2026-03-01");
    assert_eq!(fixture.check_at("2026-03-16T12:59:59Z"), 0, "the next check is after midnight");
    assert_eq!(fixture.check_at("2026-03-16T13:00:01Z"), 2);
    assert_eq!(fixture.check_at("2026-03-17T13:00:00Z"), 0);
}

#[test]
fn a_server_that_was_off_at_midnight_checks_when_it_starts() {
    let fixture = Rules::new();
    fixture.sent("2026-03-14");
    assert_eq!(fixture.check_at("2026-03-17T09:00:00Z"), 1);
    fixture.sent("2026-03-17");
    assert_eq!(fixture.check_at("2026-03-17T23:59:59Z"), 0);
    assert_eq!(fixture.check_at("2026-03-18T00:00:00Z"), 1, "and at midnight again");
}

#[test]
fn a_change_of_the_time_zone_moves_the_check() {
    let fixture = Rules::new();
    fixture.sent("2026-03-14");
    fixture.sent("2026-03-15");
    assert_eq!(fixture.check(), 0);
    fixture.set_zone("Australia/Sydney");
    assert_eq!(fixture.check(), 1, "there it is the 15th already");
    fixture.set_zone("America/New_York");
    assert_eq!(fixture.check_at("2026-03-16T03:59:59Z"), 0);
    assert_eq!(fixture.check_at("2026-03-16T04:00:00Z"), 1);
}

#[test]
fn a_day_that_begins_late_or_twice_is_checked_once_it_has_begun() {
    // In Santiago clocks are put forward at midnight of 2026-09-06, to one o'clock. In Havana they are put back at one
    // o'clock of 2026-11-01, to midnight.
    for (zone, due, before, begun) in [
        ("America/Santiago", "2026-09-05", "2026-09-06T03:59:59Z", "2026-09-06T04:00:00Z"),
        ("America/Havana", "2026-10-31", "2026-11-01T03:59:59Z", "2026-11-01T05:00:00Z"),
    ] {
        let fixture = Rules::in_zone_at(zone, "AUD", "2026-08-01T12:00:00Z");
        fixture.sent(due);
        assert_eq!((fixture.check_at(before), fixture.check_at(begun)), (0, 1), "{zone}");
    }
}

#[test]
fn a_check_under_a_clock_that_was_ahead_is_made_up_for() {
    let fixture = Rules::new();
    fixture.check_at("2031-01-01T00:00:00Z");
    fixture.clock.set(time("2026-03-14T16:00:00Z"));
    fixture.sent("2026-03-13");
    assert_eq!(fixture.check(), 1);
    assert_eq!(fixture.check_at("2026-03-14T23:59:59Z"), 0);
}

#[test]
fn a_check_that_crosses_midnight_is_followed_by_another() {
    let fixture = Rules::new();
    for _ in 0..=OVERDUE_STEP {
        fixture.sent("2026-03-15");
    }
    fixture.clock.set(time("2026-03-15T23:59:59.999Z"));
    let clock = fixture.clock.clone();
    let checked = invoices::check_overdue(&**fixture.store(), || {
        clock.advance(Duration::from_secs(1));
        async {}
    });
    let marked = checked.now_or_never().unwrap().unwrap().marked;
    assert_eq!(marked, u64::from(OVERDUE_STEP) + 1, "those that the first step read before midnight as well");
}

/// A store that counts its transactions, and on which those of a name fail.
struct Counted {
    inner: Arc<dyn Store>,
    transactions: AtomicUsize,
    fails: Option<(&'static str, StoreError)>,
}

#[async_trait]
impl StoreWrapper for Counted {
    fn inner(&self) -> &dyn Store {
        &*self.inner
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.transactions.fetch_add(1, Ordering::Relaxed);
        match &self.fails {
            Some((failing, error)) if *failing == name => Err(error.clone().into()),
            _ => self.inner.run(access, name, work).await,
        }
    }
}

fn check(store: &Counted) -> Result<OverdueChecks, Error> {
    store.transactions.store(0, Ordering::Relaxed);
    invoices::check_overdue(store, || async {}).now_or_never().unwrap()
}

#[test]
fn tenants_without_invoices_take_one_transaction_a_day() {
    let fixture = Rules::new();
    for _ in 0..999 {
        fixture.write((), async |tx, ()| tenants::create(tx, tenants::TenantCreate::named("X")).await).unwrap();
    }
    fixture.clock.set(time("2026-03-15T00:00:00Z"));
    let store = Counted { inner: Arc::clone(fixture.store()), transactions: AtomicUsize::new(0), fails: None };
    // And one for each 256 tenants that are found, and for finding no more.
    for expected in [1_000 + 5, 1] {
        check(&store).unwrap();
        assert_eq!(store.transactions.load(Ordering::Relaxed), expected);
    }
}

#[test]
fn a_tenant_that_cannot_be_checked_holds_up_no_other() {
    let fixture = Rules::new();
    fixture.sent("2026-03-13");
    fixture.clock.set(time("2026-03-15T00:00:00Z"));
    let (tenant, clock) = (fixture.tenant, fixture.clock.clone());
    let damaged = StoreError::Corrupt { table: "invoices", column: "total", reason: "damaged".to_owned() };
    let mut store = Counted {
        inner: Arc::clone(fixture.store()),
        transactions: AtomicUsize::new(0),
        fails: Some(("overdue.step", damaged.clone())),
    };
    let failed = vec![(tenant, damaged.into())];
    assert_eq!(check(&store), Ok(OverdueChecks { marked: 0, failed }));
    assert_eq!(check(&store), Ok(OverdueChecks::default()), "it is left out for an hour");
    clock.advance(Duration::from_secs(3600));
    let away = StoreError::Unavailable("away".to_owned());
    store.fails = Some(("overdue.step", away.clone()));
    assert_eq!(check(&store), Err(away.into()), "the next call tries again");
    store.fails = None;
    assert_eq!(check(&store).unwrap().marked, 1);
}
