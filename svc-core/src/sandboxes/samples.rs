//! The records that a sandbox begins with: a few of each kind, in different statuses. All persons are invented.
//!
//! They are created as clients create them, from bodies, so the rules hold for them and their events are fired.

use std::time::Duration;

use serde_json::{Value, json};

use crate::accounts::tenants::Tenant;
use crate::error::Error;
use crate::input::Input;
use crate::resources::bookings::{Booking, BookingId};
use crate::resources::contacts::{Contact, ContactId};
use crate::resources::jobs::Job;
use crate::resources::quotes::{self, Quote, QuoteId};
use crate::resources::{Create, crud, invoices};
use crate::store::Tx;
use crate::values::{Decimal, TenantId, Timestamp};

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: u32 = 24;

/// Creates the records.
pub(super) async fn create(tx: &mut dyn Tx, sandbox: &Tenant) -> Result<(), Error> {
    let tenant = sandbox.id;
    // Tomorrow, in the time zone of the account.
    let tomorrow = sandbox.time_zone.next_date_begins(tx.env().now());
    let at = |hours: u32| tomorrow.checked_add(HOUR * hours).unwrap_or(tomorrow);
    let [mia, liam, priya] = create_contacts(tx, tenant).await?;
    create_invoices(tx, sandbox, [mia, liam, priya]).await?;
    create_quotes(tx, tenant, [mia, liam, priya]).await?;
    create_bookings(tx, tenant, [mia, liam, priya], at).await?;
    create_jobs(tx, tenant, [mia, liam, priya], at).await
}

async fn create_contacts(tx: &mut dyn Tx, tenant: TenantId) -> Result<[ContactId; 3], Error> {
    let mia = json!({
        "email": "mia.torres@example.com", "first_name": "Mia", "last_name": "Torres", "phone": "+61 2 5550 0101",
        "city": "Sydney", "state": "NSW", "postcode": "2000",
    });
    let liam = json!({
        "email": "liam.chen@example.com", "first_name": "Liam", "last_name": "Chen", "phone": "+61 3 5550 0102",
        "company_name": "Chen Bakery", "city": "Melbourne", "state": "VIC", "postcode": "3000",
    });
    let priya = json!({ "email": "priya.shah@example.com", "first_name": "Priya", "last_name": "Shah" });
    let mia = create_record::<Contact>(tx, tenant, &mia).await?.id;
    let liam = create_record::<Contact>(tx, tenant, &liam).await?.id;
    Ok([mia, liam, create_record::<Contact>(tx, tenant, &priya).await?.id])
}

/// Creates a draft, a sent invoice, one that is paid in part, and one that is paid.
async fn create_invoices(tx: &mut dyn Tx, sandbox: &Tenant, [mia, liam, priya]: [ContactId; 3]) -> Result<(), Error> {
    let tenant = sandbox.id;
    let due = sandbox.time_zone.date_at(tx.env().now()).plus_days(14);
    // Every currency has whole amounts.
    for (contact, total, steps) in [(priya, 90, 0), (mia, 240, 1), (liam, 1_250, 2), (mia, 480, 3)] {
        let body = json!({ "contact_id": contact, "total": total, "due_date": due });
        let invoice = invoices::create(tx, tenant, input(&body)?).await?;
        if steps > 0 {
            invoices::send(tx, tenant, invoice.id).await?;
        }
        if steps > 1 {
            let part = if steps == 2 { Some(decimal("500")?) } else { None };
            invoices::pay(tx, tenant, invoice.id, invoices::PaymentCreate { amount: part, ..Default::default() })
                .await?;
        }
    }
    Ok(())
}

/// Creates a draft, a sent quote and an accepted one.
async fn create_quotes(tx: &mut dyn Tx, tenant: TenantId, contacts: [ContactId; 3]) -> Result<(), Error> {
    for (steps, (contact, total)) in contacts.into_iter().zip([1_800, 650, 3_400]).enumerate() {
        let body = json!({ "contact_id": contact, "total": total });
        let quote: QuoteId = create_record::<Quote>(tx, tenant, &body).await?.id;
        if steps > 0 {
            crud::update::<Quote>(tx, tenant, quote, input(&json!({ "status": "sent" }))?).await?;
        }
        if steps > 1 {
            quotes::accept(tx, tenant, quote).await?;
        }
    }
    Ok(())
}

/// Creates two bookings that are confirmed and one that is cancelled.
async fn create_bookings(
    tx: &mut dyn Tx,
    tenant: TenantId,
    [mia, liam, priya]: [ContactId; 3],
    at: impl Fn(u32) -> Timestamp,
) -> Result<(), Error> {
    let bookings = [
        (mia, "Annual service", at(9)),
        (liam, "Site visit", at(2 * DAY + 14)),
        (priya, "Consultation", at(4 * DAY + 11)),
    ];
    let mut last = BookingId::nil();
    for (contact, service, start) in bookings {
        let body = json!({ "contact_id": contact, "service_name": service, "start_time": start });
        last = create_record::<Booking>(tx, tenant, &body).await?.id;
    }
    crud::update::<Booking>(tx, tenant, last, input(&json!({ "status": "cancelled" }))?).await.map(drop)
}

/// Creates a job that is quoted, one that is scheduled and one that is completed.
async fn create_jobs(
    tx: &mut dyn Tx,
    tenant: TenantId,
    [mia, liam, priya]: [ContactId; 3],
    at: impl Fn(u32) -> Timestamp,
) -> Result<(), Error> {
    let jobs = [
        json!({ "title": "Replace the oven extractor", "contact_id": liam, "estimated_total": 3_400 }),
        json!({
            "title": "Fix the kitchen tap", "contact_id": mia, "status": "scheduled", "job_type": "Repair",
            "scheduled_start": at(DAY + 8), "scheduled_end": at(DAY + 10), "site_suburb": "Sydney", "site_state": "NSW",
        }),
        json!({ "title": "Check the smoke alarms", "contact_id": priya, "status": "completed", "job_type": "Inspection" }),
    ];
    for body in jobs {
        create_record::<Job>(tx, tenant, &body).await?;
    }
    Ok(())
}

async fn create_record<R: Create>(tx: &mut dyn Tx, tenant: TenantId, body: &Value) -> Result<R, Error>
where
    R::Input: Input,
{
    crud::create(tx, tenant, input(body)?).await
}

fn input<I: Input>(body: &Value) -> Result<I, Error> {
    I::from_body(body.to_string().as_bytes())
}

fn decimal(text: &str) -> Result<Decimal, Error> {
    text.parse().map_err(|issue: crate::error::Issue| issue.on("amount"))
}
