//! Block `worklists`: the pages for the work of a business, in an account with many bookings, jobs and invoices. Each is printed
//! as a line.

use std::path::Path;

use rusqlite::Connection;

use crate::dashboard;
use crate::error::Result;
use crate::options::Options;
use crate::seed;
use crate::table;

/// The number of contacts of the account.
const CONTACTS: u32 = 10_000;

/// Adds as many records of each kind as `?1`. Half of the bookings and jobs are before `?2`, in microseconds, and half after it, one
/// each minute; the due dates of the invoices are as far apart.
const SEED: [&str; 3] = [
    "INSERT INTO bookings (tenant_id, id, contact_id, service_name, start_time, end_time, status, created_at, updated_at)
     SELECT tenant, id, contact, 'Visit', at, at + 3600000000, iif(n % 4 = 0, 'cancelled', 'confirmed'), ?2, ?2 FROM numbered",
    "INSERT INTO jobs (tenant_id, id, job_number, title, status, contact_id, scheduled_start, created_at, updated_at)
     SELECT tenant, id, 'JOB-' || n, 'Repair', iif(n % 4 = 0, 'completed', 'scheduled'), contact, at, ?2, ?2 FROM numbered",
    "INSERT INTO invoices (tenant_id, id, invoice_number, contact_id, status, due_date, total, currency, created_at, updated_at,
         amount_paid)
     SELECT tenant, id, 'INV-' || n, contact, iif(n % 4 = 0, 'paid', 'sent'), date(at / 1000000, 'unixepoch'), 10000, 'AUD', ?2,
         ?2, iif(n % 4 = 0, 10000, 0) FROM numbered",
];
const NUMBERED: &str = "WITH RECURSIVE counted (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM counted WHERE n + 1 < ?1),
     known (number, contact) AS MATERIALIZED (SELECT row_number() OVER () - 1, id FROM contacts),
     numbered AS (
         SELECT n, (SELECT id FROM tenants) AS tenant, randomblob(16) AS id, contact, ?2 + (n - ?1 / 2) * 60000000 AS at
         FROM counted JOIN known ON number = n % ?3
     )";

/// Measures all pages.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("worklists.db");
    seed::seed(&file, 1, CONTACTS)?;
    add_records(&file, options.records)?;
    let [owner, _] = dashboard::cookies(&file)?;
    let server = dashboard::serve(&file, true)?;
    table::print_line(&format!("pages of an account with {} records of each kind:", options.records))?;
    let of_days = ["today", "week", "upcoming"];
    let lists =
        [("bookings", "past"), ("jobs", "past"), ("invoices", "overdue")].into_iter().flat_map(|(kind, past)| {
            of_days.into_iter().chain([past]).map(move |list| format!("/dashboard/{kind}?show={list}"))
        });
    let pages =
        ["", "/invoices?show=outstanding", "/jobs?show=uninvoiced", "/calendar?view=day", "/calendar?view=month"];
    for path in pages.iter().map(|path| format!("/dashboard{path}")).chain(lists) {
        dashboard::print_page(server.1, &path, &owner)?;
    }
    Ok(())
}

fn add_records(file: &Path, records: u32) -> Result<()> {
    let mut connection = Connection::open(file)?;
    // Without syncs, because the file is for this run alone.
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -2000000;")?;
    let now = svc_core::env::Env::system().now().as_micros();
    let tx = connection.transaction()?;
    for insert in SEED {
        tx.execute(&insert.replacen("INSERT", &format!("{NUMBERED} INSERT"), 1), (records, now, CONTACTS))?;
    }
    Ok(tx.commit()?)
}
