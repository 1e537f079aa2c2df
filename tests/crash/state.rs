//! The content of the database: records through the API, events and deliveries through the store's public interface.

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

use crate::fixture::{Tenant, Tenants};
use crate::journal::{Collection, InterruptedAttempt};
use svc_test_support::Result;
use svc_test_support::database::Database;
use svc_test_support::http::{HttpClient, TestRequest};

/// Events read in one transaction.
const EVENTS_PER_READ: u32 = 5_000;
/// Deliveries whose logs are read in one transaction.
const LOGS_PER_READ: usize = 1_000;
/// The interval at which pending deliveries are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Everything of one tenant.
pub(crate) struct DatabaseState {
    /// The records of each collection, as GET returns them.
    pub(crate) rows: Vec<(Collection, Vec<Value>)>,
    /// The events, oldest first.
    pub(crate) events: Vec<Event>,
    /// The deliveries with their attempt logs.
    pub(crate) deliveries: Vec<(Delivery, Vec<AttemptLog>)>,
}

/// Returns the attempts that were in progress when a server was killed at `killed_at`. The server started afterwards
/// may have started others, but their leases end later.
pub(crate) async fn interrupted(
    database: &Database,
    fixture: &Tenants,
    killed_at: Timestamp,
    timeout: Duration,
) -> Result<Vec<InterruptedAttempt>> {
    let policy = Policy { timeout, ..Policy::default() };
    let last = killed_at.checked_add(policy.lease()).unwrap_or(killed_at);
    let store = database.open().await?;
    let mut leased = Vec::new();
    for tenant in &fixture.tenants {
        let filter = DeliveryFilter { status: Some(DeliveryStatus::Pending), ..DeliveryFilter::default() };
        for delivery in deliveries(&store, tenant.id, filter).await? {
            leased.extend(delivery.lease.filter(|lease| time_of_id(*lease) <= last).map(|lease| (delivery.id, lease)));
        }
    }
    Ok(leased)
}

/// Waits until no delivery is pending.
///
/// # Errors
///
/// A delivery is still pending after `patience`.
pub(crate) async fn drained(database: &Database, fixture: &Tenants, patience: Duration) -> Result<()> {
    let store = database.open().await?;
    let deadline = Instant::now() + patience;
    for tenant in &fixture.tenants {
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
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
    Ok(())
}

impl DatabaseState {
    /// Reads everything of a tenant.
    pub(crate) async fn read(
        database: &Database,
        tenant: &Tenant,
        http: &HttpClient,
        server: SocketAddr,
    ) -> Result<Self> {
        let mut rows = Vec::new();
        for collection in Collection::ALL {
            rows.push((collection, list(http, server, tenant, collection).await?));
        }
        let store = database.open().await?;
        let state = deliveries(&store, tenant.id, DeliveryFilter { oldest_first: true, ..Default::default() }).await?;
        Ok(Self { rows, events: events(&store, tenant.id).await?, deliveries: with_logs(&store, state).await? })
    }

    /// Returns the records of a collection.
    pub(crate) fn rows(&self, wanted: Collection) -> impl Iterator<Item = &Value> {
        self.rows.iter().filter(move |(collection, _)| *collection == wanted).flat_map(|(_, rows)| rows)
    }
}

async fn list(http: &HttpClient, server: SocketAddr, tenant: &Tenant, collection: Collection) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    let mut path = format!("/{}?limit=200", collection.name());
    loop {
        let request = TestRequest::get(&path, &tenant.key);
        let mut response = http.send(server, &request).await?;
        let Value::Array(page) = response.body["data"].take() else {
            return Err(format!("GET {path} got {}: {}", response.status, response.body).into());
        };
        rows.extend(page);
        match response.body["next_cursor"].as_str() {
            Some(cursor) => path = format!("/{}?limit=200&cursor={cursor}", collection.name()),
            None => return Ok(rows),
        }
    }
}

async fn events(store: &Arc<dyn Store>, tenant: TenantId) -> Result<Vec<Event>> {
    let mut all: Vec<Event> = Vec::new();
    loop {
        let after = all.last().map_or(Timestamp::from_micros(0), |last| last.created_at);
        let read = store.read("crash.events", (tenant, after), async |tx, &(tenant, after)| {
            Ok(tx.events_after(tenant, after, EVENTS_PER_READ).await?)
        });
        let more = read.await?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

async fn deliveries(store: &Arc<dyn Store>, tenant: TenantId, filter: DeliveryFilter) -> Result<Vec<Delivery>> {
    let read = store.read("crash.deliveries", (tenant, filter), async |tx, (tenant, filter)| {
        Ok(tx.list_deliveries(*tenant, filter).await?)
    });
    Ok(read.await?)
}

async fn with_logs(store: &Arc<dyn Store>, deliveries: Vec<Delivery>) -> Result<Vec<(Delivery, Vec<AttemptLog>)>> {
    let mut all = Vec::with_capacity(deliveries.len());
    for some in deliveries.chunks(LOGS_PER_READ) {
        let some: Arc<[Delivery]> = some.into();
        let read = store.read("crash.logs", some, async |tx, some| {
            let mut logged = Vec::new();
            for delivery in some.iter() {
                let mut log = tx.attempts(delivery.tenant_id, delivery.id, u32::MAX, u32::MAX).await?;
                log.reverse();
                logged.push((delivery.clone(), log));
            }
            Ok(logged)
        });
        all.extend(read.await?);
    }
    Ok(all)
}
