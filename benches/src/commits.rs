//! Block `commit`: the writes of a POST without HTTP, through the store and by bare SQL with the same durability.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior, params};
use svc_core::env::Env;
use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud;
use svc_core::store::Store;
use svc_core::values::TenantId;
use svc_store::SqliteStore;
use uuid::Uuid;

use crate::child;
use crate::error::Result;
use crate::options::Committer;
use crate::random::{Random, body};
use crate::sample::{Sample, micros};

/// Writes for some seconds and prints a [`Sample`] as one line of JSON.
pub(crate) fn run(by: Committer, file: &Path, seconds: u64, concurrency: u32) -> Result<()> {
    let length = Duration::from_secs(seconds);
    let subscriptions = subscriptions(file)?;
    let (before, started) = (child::cpu("self")?, Instant::now());
    let took = match by {
        Committer::Each => bare(file, &subscriptions, length, 1)?,
        Committer::Groups => bare(file, &subscriptions, length, concurrency)?,
        Committer::Svc => svc(file, &subscriptions, length, concurrency)?,
    };
    let (elapsed, cpu) = (started.elapsed(), child::cpu("self")?.saturating_sub(before));
    child::print_line(&serde_json::to_string(&Sample::new(took, elapsed, cpu, child::peak_memory("self")?))?)
}

/// Returns the ids of every tenant and its subscription.
fn subscriptions(file: &Path) -> Result<Arc<[(Uuid, Uuid)]>> {
    let connection = Connection::open(file)?;
    let mut select = connection.prepare("SELECT tenant_id, id FROM subscriptions")?;
    let rows = select.query_map([], |row| Ok((Uuid::from_bytes(row.get(0)?), Uuid::from_bytes(row.get(1)?))))?;
    Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?.into())
}

fn svc(file: &Path, tenants: &Arc<[(Uuid, Uuid)]>, length: Duration, concurrency: u32) -> Result<Vec<u32>> {
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(file, Env::system())?);
    child::runtime()?.block_on(async {
        let end = Instant::now() + length;
        let clients: Vec<_> =
            (0..concurrency).map(|_| tokio::spawn(client(Arc::clone(&store), Arc::clone(tenants), end))).collect();
        let mut took = Vec::new();
        for client in clients {
            took.extend(client.await??);
        }
        Ok(took)
    })
}

async fn client(store: Arc<dyn Store>, tenants: Arc<[(Uuid, Uuid)]>, end: Instant) -> Result<Vec<u32>> {
    let (mut random, mut took) = (Random::new(), Vec::new());
    while Instant::now() < end {
        let tenant = TenantId(tenants[random.below(tenants.len())].0);
        let input = ContactCreate::from_body(body(&random.digits()).as_bytes())?;
        let started = Instant::now();
        let write = store.write("bench.create", (tenant, input), async |tx, (tenant, input)| {
            crud::create::<Contact>(tx, *tenant, input.clone()).await.map(drop)
        });
        write.await?;
        took.push(micros(started.elapsed()));
    }
    Ok(took)
}

const CONTACT: &str = "INSERT INTO contacts (tenant_id, live, id, email, first_name, last_name, phone, company_name, \
     city, state, postcode, created_at, updated_at) VALUES (?1, 1, ?2, ?3, 'Ada', 'Lovelace', '+61 2 5550 1234', \
     'Analytical Engines Pty Ltd', 'Sydney', 'NSW', '2000', ?4, ?4)";
const EVENT: &str =
    "INSERT INTO events (tenant_id, id, kind, data, created_at) VALUES (?1, ?2, 'contact.created', ?3, ?4)";
const DELIVERY: &str = "INSERT INTO deliveries (tenant_id, id, event_id, kind, subscription_id, status, attempts, \
     failures, next_attempt_at, created_at) VALUES (?1, ?2, ?3, 'contact.created', ?4, 'pending', 0, 0, ?5, ?5)";

/// Inserts the three rows of a request by three statements, with `group` requests per commit.
fn bare(file: &Path, tenants: &[(Uuid, Uuid)], length: Duration, group: u32) -> Result<Vec<u32>> {
    let mut connection = Connection::open(file)?;
    connection.execute_batch("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000;")?;
    let (env, mut random, mut took) = (Env::system(), Random::new(), Vec::new());
    let mut at = env.now();
    let end = Instant::now() + length;
    while Instant::now() < end {
        let started = Instant::now();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for _ in 0..group {
            at = env.now().max(at.next());
            let (tenant, subscription) = tenants[random.below(tenants.len())];
            let (contact, event, delivery): (Uuid, Uuid, Uuid) = (env.id(at), env.id(at), env.id(at));
            let email = format!("{}@example.com", random.digits());
            let data = format!(r#"{{"id":"{contact}","created_at":"{at}","updated_at":"{at}",{}"#, &body(&email)[1..]);
            let at = at.as_micros();
            tx.prepare_cached(CONTACT)?.execute(params![tenant.as_bytes(), contact.as_bytes(), email, at])?;
            tx.prepare_cached(EVENT)?.execute(params![tenant.as_bytes(), event.as_bytes(), data, at])?;
            tx.prepare_cached(DELIVERY)?.execute(params![
                tenant.as_bytes(),
                delivery.as_bytes(),
                event.as_bytes(),
                subscription.as_bytes(),
                at
            ])?;
        }
        tx.commit()?;
        took.extend(std::iter::repeat_n(micros(started.elapsed()), group as usize));
    }
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed;

    /// The bare SQL repeats the schema by hand, so it is checked.
    #[test]
    fn every_committer_adds_the_same_rows() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("small.db");
        seed::seed(&file, 2, 200).unwrap();
        let tenants = subscriptions(&file).unwrap();
        assert_eq!(tenants.len(), 2);
        let length = Duration::from_millis(20);
        let mut before = seed::row_counts(&file).unwrap();
        assert_eq!(before, [200, 0, 0]);
        for by in [Committer::Each, Committer::Groups, Committer::Svc] {
            let took = match by {
                Committer::Each => bare(&file, &tenants, length, 1),
                Committer::Groups => bare(&file, &tenants, length, 8),
                Committer::Svc => svc(&file, &tenants, length, 8),
            };
            let added = u32::try_from(took.unwrap().len()).unwrap();
            assert!(added > 0, "{by}");
            before = before.map(|rows| rows + added);
            assert_eq!(seed::row_counts(&file).unwrap(), before, "{by}");
        }
        assert_eq!(seed::tenants(&file).unwrap().len(), 2);
        assert!(seed::seed(&file, 2, 200).is_err(), "a database with more rows must be refused");
    }
}
