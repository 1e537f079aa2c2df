//! An application that uses svc-core directly, without HTTP: it creates a contact, a booking and an invoice, and prints
//! the events. The clock and the ids are its own, so that every run prints the same.
//!
//! `cargo run -p svc-examples --bin embed`

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};

use svc_core::env::{Clock, Entropy, Env};
use svc_core::prelude::*;
use svc_core::store::memory::MemoryStore;

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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Timestamp::parse("2026-03-14T15:09:26Z")?;
    let env = Env::new(Seconds(AtomicI64::new(start.as_micros())), Counting(AtomicU8::new(0)));
    pollster::block_on(run(Svc::new(MemoryStore::new(env))))
}

async fn run(svc: Svc) -> Result<(), Box<dyn std::error::Error>> {
    let settings = TenantCreate {
        time_zone: "Australia/Sydney".parse()?,
        currency: "AUD".parse()?,
        ..TenantCreate::named("Harbour Plumbing")
    };
    let tenant = svc.accounts().create(settings).await?.id;
    let account = svc.account(tenant);

    // Each call is a transaction.
    let contact = ContactCreate {
        details: ContactDetails { first_name: Patch::Set(Some("Ada".parse()?)), ..ContactDetails::default() },
        ..ContactCreate::new("ada@example.com".parse()?)
    };
    let contact = account.contacts().create(contact).await?;
    println!("contact {} {:?}", contact.id, contact.first_name);

    // The booking and its invoice are created in one transaction: both, or neither. The store may run the closure again
    // after a conflict, so it gets its input by reference.
    let booking = BookingCreate::new(contact.id, "New tap".parse()?, "2026-03-16T09:00:00+11:00".parse()?);
    let invoice = InvoiceCreate { contact_id: Some(contact.id), ..InvoiceCreate::new("149.50".parse()?) };
    let input = (tenant, booking, invoice);
    let (booking, invoice) = svc
        .transaction("booking with invoice", input, async |tx, (tenant, booking, invoice)| {
            let account = tx.account(*tenant);
            let booking = account.bookings().create(booking.clone()).await?;
            let invoice = account.invoices().create(invoice.clone()).await?;
            Ok((booking, account.invoices().send(invoice.id).await?))
        })
        .await?;
    println!("booking from {} to {}", booking.start_time, booking.end_time);
    println!("invoice {} of {} {}", invoice.invoice_number, invoice.currency, invoice.total);

    // Every change has written its events, in order, with the record as it was then.
    for event in account.events().since(Timestamp::from_micros(0), 100).await? {
        println!("{} {} {}", event.created_at, event.kind, event.data);
    }
    Ok(())
}
