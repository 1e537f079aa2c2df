//! The servers of Citus that accounts are on.
//!
//! A statement that concerns all accounts fails while one server is away. So that the accounts of the others can be asked for
//! alone, the ids of all accounts are remembered: they are on the servers themselves. Which server an account is on is known on the
//! coordinator.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use svc_core::error::StoreError;
use svc_core::store::{AccountServers, StoreResult};
use svc_core::sync::lock;
use svc_core::values::TenantId;
use tokio::time::{sleep, timeout};

use super::Shared;
use super::connect_options::Role;
use super::connection::PostgresConnection;
use super::failure::TransactionFailure;
use super::values::{Argument, Received};
use crate::sql::Cells;

/// How often the ids of all accounts are read.
const INTERVAL: Duration = Duration::from_secs(60);
/// The longest that this may take.
const TIMEOUT: Duration = Duration::from_secs(10);

const ACCOUNTS: &str = "SELECT id FROM tenants";
/// Accounts that have come since. Keys are on the coordinator.
const WITH_KEYS: &str = "SELECT DISTINCT tenant_id FROM api_keys";
const PLACES: &str = "SELECT a.id, p.groupid::bigint FROM unnest($1::uuid[]) AS a (id) \
     JOIN pg_dist_placement p ON p.shardid = get_shard_id_for_distribution_column('tenants'::regclass, a.id)";

/// How long a transaction may hold a connection before its server counts as one that may hang.
const STALL: Duration = Duration::from_secs(1);

/// The reads that ask all servers, and so wait for one that hangs. They take one connection at a time.
const OF_ALL_SERVERS: &[&str] = &[
    "deliver.due_work",
    "deliver.scheduled_endpoints",
    "deliveries.backlog",
    "keys.expiring",
    "overdue.tenants",
    "published_apps.unused",
    "retention.due",
    "retention.sent",
    "retention.tenants",
    "search.accounts",
    "streams.find",
    "streams.lag",
    "streams.read",
    "webhooks.expired",
];

/// Returns whether a read asks all servers.
pub(super) fn asks_all(name: &str) -> bool {
    OF_ALL_SERVERS.contains(&name)
}

/// How many connections the accounts of each server hold. A server that hangs holds half of them at most; what comes after that
/// for its accounts fails at once.
pub(super) struct ServerLoad {
    places: Places,
    /// Since when transactions of each server hold a connection.
    held: Mutex<HashMap<i64, Vec<Instant>>>,
    /// How many of them may hold one for long.
    most: usize,
}

/// The servers of accounts, as far as they are known.
pub(super) type Places = Arc<Mutex<HashMap<TenantId, i64>>>;

/// A transaction that holds a connection.
pub(super) struct Held<'l> {
    load: &'l ServerLoad,
    server: i64,
    since: Instant,
}

impl ServerLoad {
    pub(super) fn new(places: Places, connections: usize) -> Self {
        Self { places, held: Mutex::default(), most: (connections / 2).max(1) }
    }

    /// Counts a transaction of an account. `None` where the server of the account is not known yet.
    ///
    /// # Errors
    /// The server holds its part of the connections, none of which has got on for a while.
    pub(super) fn enter(&self, account: TenantId) -> StoreResult<Option<Held<'_>>> {
        let Some(server) = lock(&self.places).get(&account).copied() else { return Ok(None) };
        let (mut held, since) = (lock(&self.held), Instant::now());
        let of_server = held.entry(server).or_default();
        if of_server.iter().filter(|since| since.elapsed() >= STALL).count() >= self.most {
            return Err(StoreError::Unavailable(format!("the server {server} of the account does not respond")));
        }
        of_server.push(since);
        Ok(Some(Held { load: self, server, since }))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let mut held = lock(&self.load.held);
        let of_server = held.entry(self.server).or_default();
        if let Some(at) = of_server.iter().position(|since| *since == self.since) {
            of_server.swap_remove(at);
        }
    }
}

/// The servers of the accounts of a database on Citus.
pub(super) struct CitusServers {
    shared: Arc<Shared>,
    /// The accounts that there were when all servers were there.
    accounts: Arc<Mutex<BTreeSet<TenantId>>>,
}

impl CitusServers {
    /// Returns the servers, and the task that reads which accounts there are.
    pub(super) fn new(shared: Arc<Shared>) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let servers = Self { shared, accounts: Arc::default() };
        let (shared, accounts) = (Arc::clone(&servers.shared), Arc::clone(&servers.accounts));
        let remember = async move {
            loop {
                let read = async {
                    let read = ids(&shared, ACCOUNTS).await?;
                    let servers = servers_of(&shared, &read).await?;
                    let places = servers.iter().flat_map(|(server, of)| of.iter().map(|account| (*account, *server)));
                    *lock(&shared.places) = places.collect();
                    Ok(read)
                };
                match within(TIMEOUT, read).await {
                    Ok(read) => *lock(&accounts) = read,
                    Err(error) => tracing::debug!(%error, "the accounts of all servers were not read"),
                }
                sleep(shared.jittered(INTERVAL)).await;
            }
        };
        (servers, remember)
    }
}

#[async_trait]
impl AccountServers for CitusServers {
    async fn accounts(&self) -> StoreResult<Vec<(i64, Vec<TenantId>)>> {
        let mut accounts = lock(&self.accounts).clone();
        let found = async {
            accounts.extend(ids(&self.shared, WITH_KEYS).await?);
            Ok(servers_of(&self.shared, &accounts).await?.into_iter().collect())
        };
        within(TIMEOUT, found).await
    }
}

/// Returns the accounts of each server. The coordinator knows it.
async fn servers_of(shared: &Shared, accounts: &BTreeSet<TenantId>) -> StoreResult<BTreeMap<i64, Vec<TenantId>>> {
    let connection = PostgresConnection::open(&shared.connect_options, Role::SlowRead).await?;
    let ids = accounts.iter().map(|account| Argument::Uuid(account.0)).collect();
    let mut servers: BTreeMap<i64, Vec<TenantId>> = BTreeMap::new();
    for row in super::request_counts::query(&connection, PLACES, [Argument::Array(ids)]).await? {
        let row = Received { row: &row, vault: &shared.context.vault };
        let mut cells = Cells::new(&row);
        let account = cells.take("tenants", "id")?;
        servers.entry(cells.take("pg_dist_placement", "groupid")?).or_default().push(account);
    }
    Ok(servers)
}

async fn within<T>(time: Duration, work: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
    let late = |_| StoreError::Unavailable(format!("no response within {time:?}"));
    timeout(time, work).await.map_err(late)?
}

/// Reads ids of accounts, on a connection of its own.
async fn ids(shared: &Shared, sql: &str) -> StoreResult<BTreeSet<TenantId>> {
    let connection = PostgresConnection::open(&shared.connect_options, Role::SlowRead).await?;
    let failed = |error| TransactionFailure::of(&error).error;
    let no_arguments: [Argument; 0] = [];
    let statement = connection.prepare(sql).await.map_err(failed)?;
    let rows = connection.client.query_raw(&statement, no_arguments).await.map_err(failed)?;
    let mut rows = std::pin::pin!(rows);
    let mut ids = BTreeSet::new();
    while let Some(row) = rows.try_next().await.map_err(failed)? {
        let row = Received { row: &row, vault: &shared.context.vault };
        ids.insert(Cells::new(&row).take("tenants", "id")?);
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_server_that_hangs_holds_half_of_the_connections() {
        let [hung, other, unknown] = [1, 2, 3].map(|id| TenantId(Uuid::from_u128(id)));
        let load = ServerLoad::new(Arc::new(Mutex::new([(hung, 1), (other, 2)].into())), 4);
        let recent: Vec<_> = (0..4).map(|_| load.enter(hung).unwrap()).collect();
        assert!(load.enter(hung).is_ok(), "one that responds may have all of them");
        for since in lock(&load.held).entry(1).or_default() {
            *since -= STALL;
        }
        let refused = load.enter(hung).map(drop).unwrap_err().to_string();
        assert!(refused.contains("the server 1 of the account does not respond"), "{refused}");
        assert!(load.enter(other).unwrap().is_some());
        assert!(load.enter(unknown).unwrap().is_none());
        lock(&load.held).clear();
        drop(recent);
        assert!(load.enter(hung).is_ok());
    }
}
