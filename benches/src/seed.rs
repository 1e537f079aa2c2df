//! The measured database: contacts of several tenants, created in rotation, and one key and one webhook subscription
//! for each tenant.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, params};
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::resources::crud;
use svc_core::store::Store;
use svc_core::values::{EventSet, Timestamp, WebhookUrl};
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};
use svc_store::SqliteStore;
use uuid::Uuid;

use crate::error::Result;
use crate::random::Random;

/// A tenant as the load generator needs it.
pub(crate) struct Tenant {
    /// The text of an API key.
    pub(crate) key: String,
    /// The ids of its contacts.
    pub(crate) contacts: Vec<Uuid>,
}

/// Tenants per transaction.
const TENANT_BATCH: usize = 1_000;
/// Rows per transaction.
const BATCH: usize = 200_000;
/// The time between two contacts.
const STEP: Duration = Duration::from_secs(7);

const CONTACT: &str = "INSERT INTO contacts (tenant_id, live, id, email, first_name, last_name, phone, company_name, \
     city, state, postcode, created_at, updated_at) VALUES (?1, 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?11)";

/// Creates the database unless the file exists.
pub(crate) fn seed(file: &Path, tenants: u32, contacts: u32) -> Result<()> {
    if file.exists() {
        return check(file, tenants, contacts);
    }
    let now = Env::system().now();
    let ids = {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(file, Env::system())?);
        crate::child::runtime()?.block_on(async {
            let (mut ids, numbers) = (Vec::new(), (1..=tenants).collect::<Vec<_>>());
            for numbers in numbers.chunks(TENANT_BATCH) {
                ids.extend(create_tenants(&*store, numbers.to_vec()).await?);
            }
            Ok::<_, Error>(ids)
        })?
    };
    fill(file, &ids, contacts, now)
}

/// Checks that a kept file has the size and schema that this run would create.
fn check(file: &Path, tenants: u32, contacts: u32) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let fresh = folder.path().join("fresh.db");
    for database in [file, &fresh] {
        SqliteStore::open(database, Env::system())?;
    }
    let (kept, fresh) = (Connection::open(file)?, Connection::open(fresh)?);
    let schema = |of: &Connection| -> rusqlite::Result<String> {
        let sql = "SELECT group_concat(sql) FROM \
             (SELECT sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name)";
        of.query_row(sql, [], |row| row.get(0))
    };
    let counts = |of: &Connection| -> rusqlite::Result<(u32, u32)> {
        let sql = "SELECT (SELECT count(*) FROM tenants), (SELECT count(*) FROM contacts)";
        of.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
    };
    if counts(&kept)? == (tenants, contacts) && schema(&kept)? == schema(&fresh)? {
        return Ok(());
    }
    Err(format!("{} was kept by a run with another size or schema; remove it first", file.display()).into())
}

/// Creates a tenant with a webhook subscription, and returns its id.
pub(crate) async fn tenant(store: &dyn Store, number: u32) -> std::result::Result<Uuid, Error> {
    Ok(create_tenants(store, vec![number]).await?.remove(0))
}

/// Creates tenants with a webhook subscription each in one commit, and returns their ids.
async fn create_tenants(store: &dyn Store, numbers: Vec<u32>) -> std::result::Result<Vec<Uuid>, Error> {
    store
        .write("bench.tenants", numbers, async |tx, numbers| {
            let mut ids = Vec::new();
            for number in numbers.clone() {
                let tenant = tenants::create(tx, TenantCreate::named(&format!("Tenant {number}"))).await?.id;
                let url = WebhookUrl::parse("https://hooks.example.com/svc").map_err(|issue| issue.on("url"))?;
                let input = WebhookCreate::new(url, EventSet::All);
                crud::create::<WebhookSubscription>(tx, tenant, input).await?;
                ids.push(tenant.0);
            }
            Ok(ids)
        })
        .await
}

fn fill(file: &Path, tenants: &[Uuid], contacts: u32, now: Timestamp) -> Result<()> {
    let mut connection = Connection::open(file)?;
    // Without syncs, because a file that a crash leaves incomplete is created again.
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -2000000;")?;
    let (env, mut random) = (Env::system(), Random::new());
    let mut at = now.minus(STEP.saturating_mul(contacts.saturating_add(1)));
    let numbers: Vec<u32> = (0..contacts).collect();
    for batch in numbers.chunks(BATCH) {
        let tx = connection.transaction()?;
        let mut insert = tx.prepare_cached(CONTACT)?;
        for number in batch {
            at = at.checked_add(STEP).unwrap_or(at);
            let tenant = tenants[*number as usize % tenants.len()];
            insert.execute(params![
                tenant.as_bytes(),
                env.id::<Uuid>(at).as_bytes(),
                format!("{}@example.com", random.digits()),
                FIRST[random.below(FIRST.len())],
                LAST[random.below(LAST.len())],
                format!("+61 2 5550 {:04}", random.below(10_000)),
                (random.below(2) == 0).then_some("Analytical Engines Pty Ltd"),
                CITIES[random.below(CITIES.len())],
                "NSW",
                format!("2{:03}", random.below(1000)),
                at.as_micros(),
            ])?;
        }
        drop(insert);
        tx.commit()?;
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(connection);
    Ok(std::fs::File::open(file)?.sync_all()?)
}

const FIRST: [&str; 8] = ["Ada", "Grace", "Edsger", "Barbara", "Donald", "Frances", "Alan", "Margaret"];
const LAST: [&str; 8] = ["Lovelace", "Hopper", "Dijkstra", "Liskov", "Knuth", "Allen", "Turing", "Hamilton"];
const CITIES: [&str; 6] = ["Sydney", "Newcastle", "Wollongong", "Wagga Wagga", "Dubbo", "Orange"];

/// Returns the tenants for the load generator, with a new key for each.
pub(crate) fn tenants(file: &Path) -> Result<Arc<[Tenant]>> {
    let mut tenants = Vec::new();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(file, Env::system())?);
    let keys = crate::child::runtime()?.block_on(store.write("bench.keys", (), async |tx, ()| {
        let mut made = Vec::new();
        for tenant in tx.tenants(None, u32::MAX, false).await? {
            let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
            let key = keys::create(tx, tenant.id, input).await?;
            made.push((tenant.id.0, key.text.reveal().to_owned()));
        }
        Ok(made)
    }))?;
    drop(store);
    let connection = Connection::open(file)?;
    let mut ids = connection.prepare("SELECT id FROM contacts WHERE tenant_id = ?1")?;
    for (id, key) in keys {
        let contacts = ids.query_map([id.as_bytes()], |row| row.get(0).map(Uuid::from_bytes))?;
        tenants.push(Tenant { key, contacts: contacts.collect::<rusqlite::Result<_>>()? });
    }
    Ok(tenants.into())
}

/// Returns the numbers of contacts, events and deliveries.
pub(crate) fn row_counts(file: &Path) -> Result<[u32; 3]> {
    let connection = Connection::open(file)?;
    let sql =
        "SELECT (SELECT count(*) FROM contacts), (SELECT count(*) FROM events), (SELECT count(*) FROM deliveries)";
    Ok(connection.query_row(sql, [], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]))?)
}
