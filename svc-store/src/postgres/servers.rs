//! The servers of Citus that accounts are on.
//!
//! A statement that concerns all accounts fails while one server is away. So that the accounts of the others can be asked for
//! alone, the ids of all accounts are remembered: they are on the servers themselves. Which server an account is on is known on the
//! coordinator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

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
                match within(TIMEOUT, ids(&shared, ACCOUNTS)).await {
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
            let connection = PostgresConnection::open(&self.shared.connect_options, Role::Read).await?;
            let ids = accounts.iter().map(|account| Argument::Uuid(account.0)).collect();
            let mut servers: BTreeMap<i64, Vec<TenantId>> = BTreeMap::new();
            for row in super::request_counts::query(&connection, PLACES, [Argument::Array(ids)]).await? {
                let row = Received { row: &row, vault: &self.shared.context.vault };
                let mut cells = Cells::new(&row);
                let account = cells.take("tenants", "id")?;
                servers.entry(cells.take("pg_dist_placement", "groupid")?).or_default().push(account);
            }
            Ok(servers.into_iter().collect())
        };
        within(TIMEOUT, found).await
    }
}

async fn within<T>(time: Duration, work: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
    let late = |_| StoreError::Unavailable(format!("no response within {time:?}"));
    timeout(time, work).await.map_err(late)?
}

/// Reads ids of accounts, on a connection of its own.
async fn ids(shared: &Shared, sql: &str) -> StoreResult<BTreeSet<TenantId>> {
    let connection = PostgresConnection::open(&shared.connect_options, Role::Read).await?;
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
