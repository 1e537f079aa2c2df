//! Tests of the rules over the memory store, through the operations that the server and embedding applications call.

#![expect(clippy::unwrap_used, reason = "tests")]

mod bodies;
mod bookings;
mod calendar;
mod changes;
mod clock_ahead;
mod contacts;
mod conversions;
mod custom_kinds;
mod documents;
mod events;
mod exports;
mod find;
mod imports;
mod invoice_changes;
mod invoices;
mod jobs;
mod keys;
mod kinds;
mod macs;
mod overdue;
mod personal;
mod queries;
mod quotes;
mod replays;
mod starts;
mod stream_subscriptions;
mod streams;
mod today;
mod webhooks;

use std::cell::Cell;
use std::fmt::Debug;
use std::ops::Deref;

use futures_util::FutureExt as _;
use serde_json::Value;
use svc_core::accounts::tenants::TenantCreate;
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::input::Input;
use svc_core::resources::contacts::ContactId;
use svc_core::resources::{Create, Delete, Resource, Update, crud};
use svc_core::store::UnitOfWorkFn;
use svc_core::values::{Currency, HostPolicy, Id, TimeZone, Timestamp};
use svc_core::webhooks::events::Event;
use svc_test_support::Fixture;
use svc_test_support::fixture::{START, account};

/// An account whose records are changed by the rules, without an executor: a store in memory never waits.
struct Rules {
    fixture: Fixture,
    events_seen: Cell<Timestamp>,
}

impl Deref for Rules {
    type Target = Fixture;

    fn deref(&self) -> &Fixture {
        &self.fixture
    }
}

impl Rules {
    /// Creates an account with time zone UTC and currency AUD.
    fn new() -> Self {
        Self::with(account(), START, |_| {})
    }

    fn in_zone(zone: &str, currency: &str) -> Self {
        Self::in_zone_at(zone, currency, START)
    }

    fn in_zone_at(zone: &str, currency: &str, now: &str) -> Self {
        let (time_zone, currency) = (TimeZone::parse(zone).unwrap(), Currency::parse(currency).unwrap());
        Self::with(TenantCreate { time_zone, currency, ..account() }, now, |_| {})
    }

    /// Creates an account whose webhooks may be at private addresses.
    fn with_private_webhooks() -> Self {
        Self::with(account(), START, |env| env.webhook_hosts = HostPolicy::AllowPrivate)
    }

    fn with(account: TenantCreate, now: &str, set: impl FnOnce(&mut Env)) -> Self {
        Self { fixture: Fixture::at(now, account, set), events_seen: Cell::new(Timestamp::from_micros(0)) }
    }

    fn write<I, T>(&self, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.store().write("rules", input, work).now_or_never().unwrap()
    }

    fn create<R: Create>(&self, body: Value) -> Result<R, Error> {
        self.record(body).now_or_never().unwrap()
    }

    fn update<R: Update>(&self, id: Id<R>, body: Value) -> Result<R, Error> {
        let tenant = self.tenant;
        self.write((body, tenant, id), async |tx, (body, tenant, id)| {
            let input = R::Input::from_body(body.to_string().as_bytes());
            crud::update(tx, *tenant, *id, input?).await
        })
    }

    fn delete<R: Delete>(&self, id: Id<R>) -> Result<(), Error> {
        let tenant = self.tenant;
        self.write((tenant, id), async |tx, &(tenant, id)| crud::delete::<R>(tx, tenant, id).await)
    }

    fn get<R: Resource>(&self, id: Id<R>) -> Result<R, Error> {
        let tenant = self.tenant;
        self.write((tenant, id), async |tx, &(tenant, id)| crud::get::<R>(tx, tenant, id).await)
    }

    /// Replaces a record without applying rules, to reach states that only other parts of the service cause.
    fn replace<R: Resource>(&self, row: R) {
        let tenant = self.tenant;
        self.write((tenant, row), async |tx, (tenant, row)| Ok(R::repository(tx).update(*tenant, row).await?)).unwrap();
    }

    /// Creates a contact to refer to, and discards its event.
    fn contact(&self) -> ContactId {
        let contact = self.fixture.contact("ada@example.com").now_or_never().unwrap();
        self.new_events();
        contact.id
    }

    /// Returns the events since the last call.
    fn new_events(&self) -> Vec<Event> {
        let (tenant, after) = (self.tenant, self.events_seen.get());
        let events = self
            .write((tenant, after), async |tx, &(tenant, after)| Ok(tx.events_after(tenant, after, 1_000).await?))
            .unwrap();
        if let Some(last) = events.last() {
            self.events_seen.set(last.created_at);
        }
        events
    }

    /// Returns their kinds in order, such as `work.created work.scheduled`.
    fn new_kinds(&self) -> String {
        self.new_events().iter().map(|event| event.kind.as_str()).collect::<Vec<_>>().join(" ")
    }
}

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

/// Returns an error in a short form for tables: `email required, phone too_long`, or the error's code.
fn refusal<T: Debug>(result: Result<T, Error>) -> String {
    match result.unwrap_err() {
        Error::Validation(violations) => {
            let each = violations.as_slice().iter().map(|violation| format!("{} {}", violation.field, violation.code));
            each.collect::<Vec<_>>().join(", ")
        }
        other => other.code().to_owned(),
    }
}

fn json_of<T: serde::Serialize>(record: &T) -> Value {
    serde_json::to_value(record).unwrap()
}
