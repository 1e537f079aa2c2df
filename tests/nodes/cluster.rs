//! The set-up of a scenario: a database, nodes on it, and a store in this process that creates tenants and reads the
//! results.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use serde_json::{Value, json};
use svc_core::accounts::keys::{self, KeyCreate, KeyId};
use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::error::Error;
use svc_core::resources::crud;
use svc_core::store::{DeliveryFilter, Repository, Store};
use svc_core::values::EventKind;
use svc_core::values::{EventSet, Secret, TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery};
use svc_core::webhooks::events::{self, Event};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookCreate, WebhookSubscription};
use svc_test_support::Result;
use svc_test_support::database::Database;
use svc_test_support::http::{HttpClient, TestRequest, TestResponse};
use svc_test_support::node::{Node, Program};
use svc_test_support::postgres::Server;
use tokio::time::Instant;
use tokio_postgres::{Client, NoTls};

use crate::pooler::Pooler;

/// The interval at which a condition is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A database, and what is needed to start nodes on it.
pub(crate) struct TestCluster {
    pub(crate) database: Database,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) http: HttpClient,
    /// Between the nodes and the database, if it is to be there.
    pub(crate) pooler: Option<Pooler>,
    pub(crate) set_up: SetUp,
}

/// What is run on the database.
#[derive(Clone)]
pub(crate) struct SetUp {
    pub(crate) program: Program,
    /// The path of the command line program.
    pub(crate) svc: Option<PathBuf>,
    /// How many nodes there are.
    pub(crate) nodes: usize,
    /// Whether the nodes connect through PgBouncer.
    pub(crate) pooler: bool,
}

/// A tenant's API key.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) id: KeyId,
    pub(crate) text: String,
    pub(crate) secret: Option<Secret>,
}

/// A tenant and one of its keys.
#[derive(Clone)]
pub(crate) struct Tenant {
    pub(crate) id: TenantId,
    pub(crate) key: Key,
}

impl TestCluster {
    pub(crate) async fn new(database: Database, set_up: SetUp) -> Result<Self> {
        let store = database.open().await?;
        let pooler = if set_up.pooler { Some(Pooler::start(&database.url).await?) } else { None };
        Ok(Self { database, store, http: HttpClient::default(), pooler, set_up })
    }

    /// Returns the same on another database.
    pub(crate) async fn on(&self, database: Database) -> Result<Self> {
        Self::new(database, self.set_up.clone()).await
    }

    /// Returns the PostgreSQL server that was started for the run.
    pub(crate) fn own_server(&self) -> Result<&Server> {
        let server = self.database.server();
        server.ok_or_else(|| "this needs --database-url postgres: a server of its own".into())
    }

    /// Returns the URL of the database for nodes.
    pub(crate) fn url(&self) -> &str {
        self.pooler.as_ref().map_or(&self.database.url, |pooler| &pooler.url)
    }

    /// Starts a node.
    pub(crate) async fn start_node(&self, flags: &[&str]) -> Result<Node> {
        self.set_up.program.start_at(self.url(), &self.database, flags).await
    }

    /// Starts all nodes at the same time.
    pub(crate) async fn start_nodes(&self, flags: &[&str]) -> Result<Vec<Node>> {
        try_join_all((0..self.set_up.nodes).map(|_| self.start_node(flags))).await
    }

    pub(crate) async fn tenant(&self) -> Result<Tenant> {
        let make = self.store.write("nodes.tenant", (), async |tx, ()| {
            let id = tenants::create(tx, TenantCreate::named("Tenant")).await?.id;
            // Duplicate contacts must not be hidden by this rule.
            tenants::update(tx, id.0, |tenant| tenant.unique_contact_email = false).await?;
            Ok(id)
        });
        let id = make.await?;
        Ok(Tenant { id, key: self.key(id, false).await? })
    }

    pub(crate) async fn key(&self, tenant: TenantId, signed: bool) -> Result<Key> {
        let made = self.store.write("nodes.key", (signed, tenant), async |tx, &(signed, tenant)| {
            let input = KeyCreate { name: None, write: true, expires_in: None, signed };
            keys::create(tx, tenant, input).await
        });
        let made = made.await?;
        Ok(Key { id: made.key.id, text: made.text.reveal().to_owned(), secret: made.key.signing_secret })
    }

    /// Subscribes a tenant to all events.
    pub(crate) async fn subscribe(&self, tenant: TenantId, url: &str) -> Result<SubscriptionId> {
        let url = url.to_owned();
        let made = self.store.write("nodes.subscription", (tenant, url), async |tx, (tenant, url)| {
            let url = WebhookUrl::parse(url).map_err(|error| error.on("url"));
            let input = WebhookCreate::new(url?, EventSet::All);
            crud::create::<WebhookSubscription>(tx, *tenant, input).await
        });
        Ok(made.await?.id)
    }

    /// Writes this many events in one transaction, through the store of this process.
    pub(crate) async fn emit(&self, tenant: TenantId, count: usize) -> Result<()> {
        let emitted = self.store.write("nodes.emit", (count, tenant), async |tx, &(count, tenant)| {
            for number in 0..count {
                let data = json!({ "id": number });
                events::record_external(tx, tenant, EventKind::StayCreated, &data).await?;
            }
            Ok(())
        });
        Ok(emitted.await?)
    }

    pub(crate) async fn subscription(&self, tenant: TenantId, id: SubscriptionId) -> Result<WebhookSubscription> {
        let read = self.store.read("nodes.subscription", (tenant, id), async |tx, &(tenant, id)| {
            Repository::<WebhookSubscription>::get(tx, tenant, id).await?.ok_or(Error::NotFound)
        });
        Ok(read.await?)
    }

    pub(crate) async fn deliveries(&self, tenant: TenantId, filter: DeliveryFilter) -> Result<Vec<Delivery>> {
        let read = self.store.read("nodes.deliveries", (tenant, filter), async |tx, (tenant, filter)| {
            Ok(tx.list_deliveries(*tenant, filter).await?)
        });
        Ok(read.await?)
    }

    /// Returns deliveries with their attempt logs, oldest first.
    pub(crate) async fn logs(&self, tenant: TenantId) -> Result<Vec<(Delivery, Vec<AttemptLog>)>> {
        let filter = DeliveryFilter { oldest_first: true, ..DeliveryFilter::default() };
        let all = self.deliveries(tenant, filter).await?;
        let read = self.store.read("nodes.logs", (all, tenant), async |tx, (all, tenant)| {
            let mut logged = Vec::new();
            for delivery in all.clone() {
                let mut log = tx.attempts(*tenant, delivery.id, u32::MAX, u32::MAX).await?;
                log.reverse();
                logged.push((delivery, log));
            }
            Ok(logged)
        });
        Ok(read.await?)
    }

    /// Returns all events of a tenant, oldest first.
    pub(crate) async fn events(&self, tenant: TenantId) -> Result<Vec<Event>> {
        let mut all: Vec<Event> = Vec::new();
        loop {
            let after = all.last().map_or(Timestamp::from_micros(0), |last| last.created_at);
            let read = self.store.read("nodes.events", (tenant, after), async |tx, &(tenant, after)| {
                Ok(tx.events_after(tenant, after, 5_000).await?)
            });
            let more = read.await?;
            if more.is_empty() {
                return Ok(all);
            }
            all.extend(more);
        }
    }

    /// Returns every record of a list, newest first.
    pub(crate) async fn list(&self, node: &Node, tenant: &Tenant, collection: &str) -> Result<Vec<Value>> {
        let mut rows = Vec::new();
        let mut path = format!("/{collection}?limit=200");
        loop {
            let response = self.expect(200, node, &TestRequest::get(&path, &tenant.key.text)).await?;
            rows.extend(response.body["data"].as_array().cloned().unwrap_or_default());
            match response.body["next_cursor"].as_str() {
                Some(cursor) => path = format!("/{collection}?limit=200&cursor={cursor}"),
                None => return Ok(rows),
            }
        }
    }

    /// Sends a request whose response must have this status.
    pub(crate) async fn expect(&self, status: u16, node: &Node, request: &TestRequest<'_>) -> Result<TestResponse> {
        let response = self.http.send(node.address, request).await?;
        let (method, path) = (&request.method, request.path);
        ensure(response.status == status, || {
            format!("{method} {path}: {}, not {status}: {}", response.status, response.body)
        })?;
        Ok(response)
    }
}

/// Opens a connection of the driver, for what a store does not do.
pub(crate) async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Waits until a condition holds; fails after `patience`.
pub(crate) async fn until<F>(what: &str, patience: Duration, mut condition: impl FnMut() -> F) -> Result<()>
where
    F: Future<Output = Result<bool>>,
{
    let deadline = Instant::now() + patience;
    while !condition().await? {
        ensure(Instant::now() < deadline, || format!("this did not happen within {patience:?}: {what}"))?;
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Returns the violation as an error unless `holds` is true.
pub(crate) fn ensure(holds: bool, violation: impl FnOnce() -> String) -> Result<()> {
    if holds { Ok(()) } else { Err(violation().into()) }
}

/// Returns a percentile of sorted durations.
pub(crate) fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let last = sorted.len().saturating_sub(1);
    sorted.get((sorted.len() * percent / 100).min(last)).copied().unwrap_or_default()
}
