//! A PostgreSQL connection for maintenance, without timeouts for statements.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use svc_core::store::{Access, StoreResult};

use super::connect_options::ConnectOptions;
use super::connection::PostgresConnection;
use super::failure::{TransactionFailure, cannot_connect};
use super::transaction::PostgresTransaction;
use super::{First, connect_options, migrate, open_first};
use crate::column::Param;
use crate::dialect::Dialect;
use crate::locked_tenants::LockedTenants;
use crate::maintenance_connection::{MaintenanceConnection, Opening, Transaction};
use crate::sql::{EachRow, Sql};
use crate::vault::Vault;
use crate::{OpenError, unavailable};

/// A statement may read a whole table, and the transaction on one database is idle while the other database writes.
const NO_TIMEOUTS: &str =
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '30s'";

pub(crate) struct PostgresMaintenance {
    connection: PostgresConnection,
    is_distributed: bool,
    vault: Vault,
    /// Whether a transaction was begun and not committed.
    has_open_transaction: AtomicBool,
}

impl PostgresMaintenance {
    pub(crate) async fn open(url: &str, opening: Opening, vault: Vault) -> Result<Self, OpenError> {
        let connect_options = connect_options(url)?;
        Self::connect(connect_options, opening, vault).await.map_err(|source| unavailable(url, source))
    }

    async fn connect(connect_options: ConnectOptions, opening: Opening, vault: Vault) -> StoreResult<Self> {
        let First { connection, is_distributed, .. } = open_first(connect_options, None).await?;
        if opening != Opening::Create {
            migrate::check(&connection.client, opening.expected_schema()).await?;
        }
        if opening != Opening::Read {
            migrate::run(&connection.client).await?;
        }
        connection.client.batch_execute(NO_TIMEOUTS).await.map_err(|error| cannot_connect(&error))?;
        Ok(Self { connection, is_distributed, vault, has_open_transaction: AtomicBool::new(false) })
    }
}

#[async_trait]
impl MaintenanceConnection for PostgresMaintenance {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn is_distributed(&self) -> bool {
        self.is_distributed
    }

    async fn begin(&mut self, access: Access) -> StoreResult<Box<dyn Transaction + '_>> {
        // A transaction that was dropped was not rolled back, as `drop` cannot wait.
        if self.has_open_transaction.swap(true, Ordering::Relaxed) {
            self.connection
                .client
                .batch_execute("ROLLBACK")
                .await
                .map_err(|error| TransactionFailure::of(&error).error)?;
        }
        let transaction = PostgresTransaction::new(&self.connection, &self.vault, access);
        Ok(Box::new(OpenTransaction { transaction, is_open: &self.has_open_transaction }))
    }
}

struct OpenTransaction<'c> {
    transaction: PostgresTransaction<'c>,
    is_open: &'c AtomicBool,
}

#[async_trait]
impl Sql for OpenTransaction<'_> {
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        self.transaction.execute(sql, params).await
    }

    async fn pipeline(&mut self, sql: &str, params: &[Param<'_>], table: Option<&'static str>) -> StoreResult<()> {
        self.transaction.pipeline(sql, params, table).await
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        self.transaction.query(sql, params, each).await
    }
}

#[async_trait]
impl Transaction for OpenTransaction<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn commit(mut self: Box<Self>) -> StoreResult<()> {
        match self.transaction.commit(&mut LockedTenants::default()).await {
            Ok(statements) => statements.map_err(|failure| failure.error)?,
            Err(failure) => return Err(failure.error),
        }
        self.is_open.store(false, Ordering::Relaxed);
        Ok(())
    }
}
