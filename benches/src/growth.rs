//! Block `growth`: what one operation costs as the database grows, in pages and in time. Pages do not depend on the machine
//! nor on what else it does.

mod picture;

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use svc_core::env::Env;
use svc_core::prelude::*;
use svc_core::resources::contacts::ContactId;
use svc_core::webhooks::engine;
use svc_store::SqliteStore;
use tokio::runtime::Runtime;
use uuid::Uuid;

use crate::error::Result;
use crate::options::Options;
use crate::random::Random;
use crate::{pending, seed, table};

/// How often each operation is measured, after as many times to fill the cache.
const TIMES: usize = 400;
/// The contacts of the databases that grow in something else.
const OTHER_CONTACTS: u32 = 100_000;
/// The size of a page in bytes.
const PAGE: f64 = 4096.0;

/// What an operation costs.
#[derive(Clone, Copy)]
struct Cost {
    p50: Duration,
    /// Pages that were read from files, since the cache of the connection did not have them.
    read: f64,
    /// Pages that were written to the log.
    written: f64,
}

/// The costs of operations by the size of what they work on.
struct Growth {
    /// What grows.
    what: &'static str,
    operations: Vec<&'static str>,
    /// A size, with the costs of the operations in their order.
    sizes: Vec<(u32, Vec<Cost>)>,
}

/// Measures all operations, prints one table, and draws it into `--picture`.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = crate::child::runtime()?;
    let sizes = |all: &[u32]| -> Vec<u32> { all.iter().copied().filter(|size| *size <= options.largest).collect() };
    let mut all = Vec::new();
    for (what, sizes) in [
        ("contacts", sizes(&[10_000, 100_000, 1_000_000, 10_000_000])),
        ("tenants", sizes(&[1, 1_000, 100_000])),
        ("deliveries", sizes(&[1_000, 10_000, 100_000, 1_000_000, 10_000_000])),
    ] {
        let mut growth = Growth { what, operations: Vec::new(), sizes: Vec::new() };
        for size in sizes {
            let folder = tempfile::tempdir()?;
            let measured = measure(&runtime, &folder.path().join("growth.db"), what, size)?;
            growth.operations = measured.iter().map(|(operation, _)| *operation).collect();
            growth.sizes.push((size, measured.into_iter().map(|(_, cost)| cost).collect()));
            print_last(&growth)?;
        }
        all.push(growth);
    }
    match &options.picture {
        Some(file) => Ok(std::fs::write(file, picture::draw(&all))?),
        None => Ok(()),
    }
}

fn measure(runtime: &Runtime, file: &Path, what: &str, size: u32) -> Result<Vec<(&'static str, Cost)>> {
    match what {
        "contacts" => seed::seed(file, 20, size)?,
        "tenants" => seed::seed(file, size, OTHER_CONTACTS.max(size))?,
        _ => {
            seed::seed(file, 20, OTHER_CONTACTS)?;
            pending::add_backlog(file, size)?;
        }
    }
    let contacts = some_contacts(file)?;
    let svc = Svc::new(SqliteStore::open(file, Env::system())?);
    let mut random = Random::new();
    let mut pick = move || contacts[random.below(contacts.len())];
    let mut random = Random::new();
    runtime.block_on(async {
        let mut costs = Vec::new();
        costs.push((
            "GET a contact",
            cost(async || {
                let (tenant, contact) = pick();
                svc.account(tenant).contacts().get(contact).await.map(drop)
            })
            .await?,
        ));
        if what != "tenants" {
            costs.push((
                "list 50 contacts",
                cost(async || {
                    let list = svc.account(pick().0).contacts().list(ContactFilter::default(), ListParams::default());
                    list.await.map(drop)
                })
                .await?,
            ));
        }
        if what == "deliveries" {
            costs.push((
                "list 50 deliveries",
                cost(async || {
                    let filter = DeliveryFilter { limit: 50, ..DeliveryFilter::default() };
                    svc.account(pick().0).deliveries().list(filter).await.map(drop)
                })
                .await?,
            ));
        }
        costs.push((
            "poll what is due",
            cost(async || svc.store().read("bench.poll", (), async |tx, ()| engine::poll(tx).await).await.map(drop))
                .await?,
        ));
        costs.push((
            "POST a contact",
            cost(async || {
                let email = format!("{}@example.com", random.digits());
                let email = email.parse().map_err(|issue: svc_core::error::Issue| issue.on("email"))?;
                svc.account(pick().0).contacts().create(ContactCreate::new(email)).await.map(drop)
            })
            .await?,
        ));
        Ok(costs)
    })
}

/// Returns some contacts of all, with their tenants, in no order.
fn some_contacts(file: &Path) -> Result<Vec<(TenantId, ContactId)>> {
    let connection = Connection::open(file)?;
    let mut select = connection.prepare("SELECT tenant_id, id FROM contacts WHERE abs(random()) % ?1 = 0")?;
    let count: u32 = connection.query_row("SELECT count(*) FROM contacts", [], |row| row.get(0))?;
    let some = select.query_map([(count / 10_000).max(1)], |row| {
        Ok((TenantId(Uuid::from_bytes(row.get(0)?)), ContactId::new(Uuid::from_bytes(row.get(1)?))))
    })?;
    Ok(some.collect::<rusqlite::Result<_>>()?)
}

async fn cost(mut operation: impl AsyncFnMut() -> std::result::Result<(), Error>) -> Result<Cost> {
    for _ in 0..TIMES {
        operation().await?;
    }
    let (before, mut taken) = (bytes()?, Vec::with_capacity(TIMES));
    for _ in 0..TIMES {
        let started = Instant::now();
        operation().await?;
        taken.push(started.elapsed());
    }
    let after = bytes()?;
    taken.sort_unstable();
    let pages = |at: usize| (after[at] - before[at]) / PAGE / TIMES as f64;
    Ok(Cost { p50: taken[TIMES / 2], read: pages(0), written: pages(1) })
}

/// Returns how many bytes this process has read from files and written to them.
fn bytes() -> Result<[f64; 2]> {
    let io = std::fs::read_to_string("/proc/self/io")?;
    let value = |name: &str| -> Result<f64> {
        let line = io.lines().find_map(|line| line.strip_prefix(name)).ok_or("/proc/self/io has no such line")?;
        Ok(line.trim().parse()?)
    };
    Ok([value("rchar:")?, value("wchar:")?])
}

/// Prints the newest size, and the head of the table before the first one.
fn print_last(growth: &Growth) -> Result<()> {
    if growth.sizes.len() == 1 {
        let names: Vec<String> = growth.operations.iter().map(|name| format!("{name:>28}")).collect();
        table::print_line(&format!("\n{:>10} {}", growth.what, names.concat()))?;
        let units = format!("{:>28}", "p50 µs, pages read, written").repeat(growth.operations.len());
        table::print_line(&format!("{:>10} {units}", ""))?;
    }
    let Some((size, costs)) = growth.sizes.last() else { return Ok(()) };
    let costs: Vec<String> = costs
        .iter()
        .map(|cost| format!("{:>14.0} {:>6.1} {:>6.1}", cost.p50.as_secs_f64() * 1e6, cost.read, cost.written))
        .collect();
    table::print_line(&format!("{size:>10} {}", costs.concat()))
}
