//! Additions to the seeded database for deliveries: the endpoint, a backlog, and endpoints that never respond.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, params};
use svc_core::accounts::clocks::advance_clock;
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::resources::crud;
use svc_core::store::{Store, Tx};
use svc_core::values::EventKind;
use svc_core::values::{EventSet, HostPolicy, WebhookUrl};
use svc_core::webhooks::events;
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};
use svc_store::SqliteStore;
use uuid::Uuid;

use crate::error::Result;
use crate::random::{Random, body};

/// Rows per transaction.
const BATCH: u32 = 200_000;
/// The time between two events of the backlog.
const STEP: Duration = Duration::from_millis(3);

pub(crate) const EVENT: &str =
    "INSERT INTO events (tenant_id, id, kind, data, created_at) VALUES (?1, ?2, 'contact.created', ?3, ?4)";
const DELIVERY: &str = "INSERT INTO deliveries (tenant_id, id, event_id, kind, subscription_id, status, attempts, \
     failures, next_attempt_at, created_at) VALUES (?1, ?2, ?3, 'contact.created', ?4, 'pending', 0, 0, ?5, ?5)";
const SCHEDULE: &str =
    "INSERT OR REPLACE INTO endpoint_schedule (tenant_id, subscription_id, due_at) VALUES (?1, ?2, ?3)";

/// Sets the URL of all subscriptions.
pub(crate) fn set_endpoint(file: &Path, endpoint: SocketAddr) -> Result<()> {
    let url = format!("http://{endpoint}/hook");
    Connection::open(file)?.execute("UPDATE subscriptions SET url = ?1", params![url])?;
    Ok(())
}

/// Adds events with pending deliveries, of all tenants in rotation. Uses bare SQL; the rows are those that the store
/// would write.
pub(crate) fn add_backlog(file: &Path, pending: u32) -> Result<()> {
    let mut connection = Connection::open(file)?;
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -2000000;")?;
    let endpoints: Vec<(Uuid, Uuid)> = {
        let mut select = connection.prepare("SELECT tenant_id, id FROM subscriptions")?;
        let rows = select.query_map([], |row| Ok((Uuid::from_bytes(row.get(0)?), Uuid::from_bytes(row.get(1)?))))?;
        rows.collect::<rusqlite::Result<_>>()?
    };
    let (env, mut random) = (Env::system(), Random::new());
    let mut at = env.now().minus(STEP.saturating_mul(pending.saturating_add(1)));
    for (tenant, subscription) in &endpoints {
        connection.execute(SCHEDULE, params![tenant.as_bytes(), subscription.as_bytes(), at.as_micros()])?;
    }
    let mut left = pending;
    while left > 0 {
        let batch = left.min(BATCH);
        let tx = connection.transaction()?;
        for number in 0..batch {
            let (tenant, subscription) = endpoints[number as usize % endpoints.len()];
            at = at.checked_add(STEP).unwrap_or(at);
            let (contact, event, delivery): (Uuid, Uuid, Uuid) = (env.id(at), env.id(at), env.id(at));
            let data = format!(
                r#"{{"id":"{contact}","created_at":"{at}","updated_at":"{at}",{}"#,
                &body(&random.digits())[1..]
            );
            let at = at.as_micros();
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
        left -= batch;
    }
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    drop(connection);
    // Synced now, so that writing back does not disturb the measurements.
    Ok(std::fs::File::open(file)?.sync_all()?)
}

/// Adds a tenant with this many endpoints at `address`, each with `each` pending deliveries.
pub(crate) fn add_hanging_endpoints(file: &Path, address: SocketAddr, endpoints: u32, each: u32) -> Result<()> {
    let mut env = Env::system();
    env.webhook_hosts = HostPolicy::AllowPrivate;
    env.max_webhooks = endpoints;
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(file, env)?);
    let add = store.write("bench.hanging", (address, endpoints, each), async |tx, &(address, endpoints, each)| {
        create_endpoints(tx, address, endpoints, each).await
    });
    Ok(crate::child::runtime()?.block_on(add)?)
}

async fn create_endpoints(
    tx: &mut dyn Tx,
    address: SocketAddr,
    endpoints: u32,
    each: u32,
) -> std::result::Result<(), Error> {
    let tenant = tenants::create(tx, TenantCreate::named("Hanging")).await?.id;
    for number in 0..endpoints {
        let url = WebhookUrl::parse(&format!("http://{address}/{number}")).map_err(|issue| issue.on("url"))?;
        let input = WebhookCreate::new(url, EventSet::All);
        crud::create::<WebhookSubscription>(tx, tenant, input).await?;
    }
    for number in 0..each {
        let now = advance_clock(tx, tenant).await?;
        let stay = serde_json::json!({ "id": number });
        events::emit(tx, tenant, now, &[EventKind::StayCreated], &stay).await?;
    }
    Ok(())
}

/// Returns the number of deliveries that succeeded, and of successful attempts.
pub(crate) fn success_counts(file: &Path) -> Result<[u32; 2]> {
    let sql = "SELECT (SELECT count(*) FROM deliveries WHERE status = 'succeeded'), \
         (SELECT count(*) FROM delivery_attempts WHERE status = 204)";
    Ok(Connection::open(file)?.query_row(sql, [], |row| Ok([row.get(0)?, row.get(1)?]))?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use svc_core::webhooks::engine::{self, InFlight, Policy};

    use super::*;
    use crate::seed;

    /// The bare SQL repeats the schema by hand, so it is checked.
    #[test]
    fn the_sender_claims_the_added_deliveries() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("small.db");
        seed::seed(&file, 2, 4).unwrap();
        let address = ([127, 0, 0, 1], 9).into();
        set_endpoint(&file, address).unwrap();
        add_backlog(&file, 6).unwrap();
        add_hanging_endpoints(&file, address, 3, 2).unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&file, Env::system()).unwrap());
        let begin = store.write("test", (), async |tx, ()| {
            let (due_work, policy) = (engine::poll(tx).await?, Policy::default());
            let mut attempts = Vec::new();
            for batch in InFlight::default().plan(&policy, &due_work, BTreeMap::new()) {
                attempts.extend(engine::run_batch(tx, &policy, &batch).await?.attempts);
            }
            Ok(attempts)
        });
        let attempts = crate::child::runtime().unwrap().block_on(begin).unwrap();
        let to = |path: &str| attempts.iter().filter(|attempt| attempt.url.as_str().ends_with(path)).count();
        assert_eq!((attempts.len(), to("/hook"), to("/2")), (12, 6, 2));
        assert_eq!(success_counts(&file).unwrap(), [0, 0]);
    }
}
