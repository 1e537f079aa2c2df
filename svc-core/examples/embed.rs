//! An application that uses svc-core directly, without HTTP: it creates a contact, a booking and an invoice, and prints
//! the events. The clock and the ids are its own, so that every run prints the same.
//!
//! `cargo run -p svc-core --example embed`

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::error::Error;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::{Clock, Entropy, Env};
use svc_core::input::Input as _;
use svc_core::resources::bookings::{Booking, BookingCreate};
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::resources::invoices::{self, InvoiceCreate};
use svc_core::store::Store;
use svc_core::store::memory::MemoryStore;
use svc_core::values::{Currency, Decimal, Text, TimeZone, Timestamp};
use svc_core::webhooks::events::Event;

/// A clock that advances by one second each time it is read.
struct Seconds(AtomicI64);

impl Clock for Seconds {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.fetch_add(1_000_000, Ordering::Relaxed))
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

/// A source of "randomness" that counts, so that every run prints the same ids. Never do this where secrets are made.
struct Counting(AtomicU8);

impl Entropy for Counting {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(self.0.fetch_add(1, Ordering::Relaxed));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let start = Timestamp::parse("2026-03-14T15:09:26Z")?;
    let env = Env::new(Seconds(AtomicI64::new(start.as_micros())), Counting(AtomicU8::new(0)));
    pollster::block_on(run(&MemoryStore::new(env)))
}

async fn run(store: &dyn Store) -> Result<(), Box<dyn Error>> {
    let settings = TenantCreate {
        time_zone: TimeZone::parse("Australia/Sydney")?,
        currency: Currency::AUD,
        ..TenantCreate::named("Harbour Plumbing")
    };
    let tenant = store.write("tenant", move |tx| Box::pin(tenants::create(tx, settings.clone()))).await?.id;

    // One write is one transaction. Input can be JSON, as the API accepts it.
    let contact = ContactCreate::from_body(br#"{"email": "ada@example.com", "first_name": "Ada"}"#)?;
    let contact: Contact =
        store.write("contact", move |tx| Box::pin(crud::create(tx, tenant, contact.clone()))).await?;
    println!("contact {} {:?}", contact.id, contact.first_name);

    // Input can also be a struct. The booking and its invoice are created in one transaction: both, or neither.
    let booking = BookingCreate {
        contact_id: contact.id,
        service_name: Text::parse("New tap")?,
        start_time: Timestamp::parse("2026-03-16T09:00:00+11:00")?,
        end_time: None,
        notes: None,
    };
    let invoice = InvoiceCreate {
        contact_id: Some(contact.id),
        total: Decimal::parse("149.50")?,
        currency: None,
        issue_date: None,
        due_date: None,
    };
    let (booking, invoice) = store
        .write("booking with invoice", move |tx| {
            // A store may run the closure again after a conflict, so the closure keeps its input and clones it.
            let (booking, invoice) = (booking.clone(), invoice.clone());
            Box::pin(async move {
                let booking: Booking = crud::create(tx, tenant, booking).await?;
                let invoice = invoices::create(tx, tenant, invoice).await?;
                let invoice = invoices::send(tx, tenant, invoice.id).await?;
                Ok((booking, invoice))
            })
        })
        .await?;
    println!("booking from {} to {}", booking.start_time, booking.end_time);
    println!("invoice {} of {} {}", invoice.invoice_number, invoice.currency, invoice.total);

    // Every change has written its events, in order, with the record as it was then.
    let start = Timestamp::from_micros(0);
    let events: Vec<Event> =
        store.read("events", move |tx| Box::pin(async move { Ok(tx.events_after(tenant, start, 100).await?) })).await?;
    for event in events {
        println!("{} {} {}", event.created_at, event.kind, event.data);
    }
    Ok(())
}
