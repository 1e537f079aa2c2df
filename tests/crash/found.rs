//! What is in the database: rows over the API, events and deliveries through the store's interface.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use svc_core::env::time_of_id;
use svc_core::store::{DeliveryFilter, Store};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryStatus};
use svc_core::webhooks::engine::Policy;
use svc_core::webhooks::events::Event;
use tokio::time::Instant;

use crate::journal::{Abandoned, Collection};
use crate::world::{Tenant, World};
use svc_tests::Result;
use svc_tests::database::Database;
use svc_tests::http::{Ask, Http};

/// Events that one job reads.
const EVENTS: u32 = 5_000;
/// Deliveries whose logs one job reads.
const LOGS: usize = 1_000;
/// Between two looks at what is pending.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Everything of one tenant.
pub(crate) struct Found {
    /// Each as GET returns it.
    pub(crate) rows: Vec<(Collection, Vec<Value>)>,
    /// Oldest first.
    pub(crate) events: Vec<Event>,
    /// With their logs.
    pub(crate) deliveries: Vec<(Delivery, Vec<AttemptLog>)>,
}

/// The deliveries whose attempts were under way when a process was killed at `killed_at`. The process that came
/// after it may have begun others, but their leases end later.
pub(crate) async fn abandoned(
    database: &Database,
    world: &World,
    killed_at: Timestamp,
    timeout: Duration,
) -> Result<Vec<Abandoned>> {
    let policy = Policy { timeout, ..Policy::default() };
    let last = killed_at.checked_add(policy.lease()).unwrap_or(killed_at);
    let store = database.open().await?;
    let mut leased = Vec::new();
    for tenant in &world.tenants {
        let filter = DeliveryFilter { status: Some(DeliveryStatus::Pending), ..DeliveryFilter::default() };
        for delivery in deliveries(&store, tenant.id, filter).await? {
            leased.extend(delivery.lease.filter(|lease| time_of_id(*lease) <= last).map(|lease| (delivery.id, lease)));
        }
    }
    Ok(leased)
}

/// Waits until nothing is pending any more.
///
/// # Errors
/// When something still is after `patience`.
pub(crate) async fn drained(database: &Database, world: &World, patience: Duration) -> Result<()> {
    let store = database.open().await?;
    let deadline = Instant::now() + patience;
    for tenant in &world.tenants {
        loop {
            let filter =
                DeliveryFilter { status: Some(DeliveryStatus::Pending), limit: 1, ..DeliveryFilter::default() };
            let left = deliveries(&store, tenant.id, filter).await?;
            let Some(first) = left.first() else { break };
            if Instant::now() > deadline {
                let Delivery { id, attempts, next_attempt_at, .. } = first;
                let due = next_attempt_at.map(|at| at.to_string()).unwrap_or_default();
                return Err(format!("{id} is still pending: {attempts} attempts, the next one due at {due}").into());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}

impl Found {
    /// Reads all of a tenant.
    pub(crate) async fn read(database: &Database, tenant: &Tenant, http: &Http, server: SocketAddr) -> Result<Self> {
        let mut rows = Vec::new();
        for collection in Collection::ALL {
            rows.push((collection, list(http, server, tenant, collection).await?));
        }
        let store = database.open().await?;
        let found = deliveries(&store, tenant.id, DeliveryFilter { oldest_first: true, ..Default::default() }).await?;
        Ok(Self { rows, events: events(&store, tenant.id).await?, deliveries: with_logs(&store, found).await? })
    }

    /// The rows of a collection.
    pub(crate) fn rows(&self, wanted: Collection) -> impl Iterator<Item = &Value> {
        self.rows.iter().filter(move |(collection, _)| *collection == wanted).flat_map(|(_, rows)| rows)
    }
}

async fn list(http: &Http, server: SocketAddr, tenant: &Tenant, collection: Collection) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    let mut path = format!("/{}?limit=200", collection.name());
    loop {
        let ask = Ask::get(&path, &tenant.key);
        let mut reply = http.send(server, &ask).await?;
        let Value::Array(page) = reply.body["data"].take() else {
            return Err(format!("GET {path} was answered with {}: {}", reply.status, reply.body).into());
        };
        rows.extend(page);
        match reply.body["next_cursor"].as_str() {
            Some(cursor) => path = format!("/{}?limit=200&cursor={cursor}", collection.name()),
            None => return Ok(rows),
        }
    }
}

async fn events(store: &Arc<dyn Store>, tenant: TenantId) -> Result<Vec<Event>> {
    let mut all: Vec<Event> = Vec::new();
    loop {
        let after = all.last().map_or(Timestamp::from_micros(0), |last| last.created_at);
        let read = store
            .read("crash.events", move |tx| Box::pin(async move { Ok(tx.events_after(tenant, after, EVENTS).await?) }));
        let more = read.await?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

async fn deliveries(store: &Arc<dyn Store>, tenant: TenantId, filter: DeliveryFilter) -> Result<Vec<Delivery>> {
    let read = store.read("crash.deliveries", move |tx| {
        let filter = filter.clone();
        Box::pin(async move { Ok(tx.list_deliveries(tenant, &filter).await?) })
    });
    Ok(read.await?)
}

async fn with_logs(store: &Arc<dyn Store>, deliveries: Vec<Delivery>) -> Result<Vec<(Delivery, Vec<AttemptLog>)>> {
    let mut all = Vec::with_capacity(deliveries.len());
    for some in deliveries.chunks(LOGS) {
        let some: Arc<[Delivery]> = some.into();
        let read = store.read("crash.logs", move |tx| {
            let some = Arc::clone(&some);
            Box::pin(async move {
                let mut logged = Vec::new();
                for delivery in some.iter() {
                    logged.push((delivery.clone(), tx.attempts(delivery.tenant_id, delivery.id).await?));
                }
                Ok(logged)
            })
        });
        all.extend(read.await?);
    }
    Ok(all)
}
