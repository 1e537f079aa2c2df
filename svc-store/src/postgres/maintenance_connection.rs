//! A connection for work on a whole database, with all the time that it needs.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use svc_core::error::StoreError;
use svc_core::store::Access;

use super::connection::Connection;
use super::failure::{Failure, cannot_connect};
use super::transaction::PostgresTransaction;
use super::connect_options::{Role, ConnectOptions};
use super::{OpenFailure, migrate};
use crate::dialect::Dialect;
use crate::maintenance::{MaintenanceConnection, Transaction};
use crate::sql::{EachRow, Param, Sql};
use crate::vault::Vault;

/// A statement may read a whole table, and while one database writes the other waits.
const NO_TIMEOUTS: &str =
    "SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0; SET lock_timeout = '30s'";

pub(crate) struct PostgresMaintenance {
    connection: Connection,
    vault: Vault,
    /// Whether a transaction was begun and not committed.
    is_open: AtomicBool,
}

impl PostgresMaintenance {
    /// Connects, and brings the schema up to date.
    pub(crate) async fn open(url: &str, vault: Vault) -> Result<Self, OpenFailure> {
        let connect_options = ConnectOptions::parse(url).map_err(OpenFailure::Url)?;
        let connection = Connection::open(&connect_options, Role::Write).await?;
        migrate::run(&connection.client).await?;
        connection.client.batch_execute(NO_TIMEOUTS).await.map_err(|error| cannot_connect(&error))?;
        Ok(Self { connection, vault, is_open: AtomicBool::new(false) })
    }
}

#[async_trait]
impl MaintenanceConnection for PostgresMaintenance {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    async fn begin(&mut self, access: Access) -> Result<Box<dyn Transaction + '_>, StoreError> {
        // A transaction that was dropped could not wait for its end.
        if self.is_open.swap(true, Ordering::Relaxed) {
            self.connection.client.batch_execute("ROLLBACK").await.map_err(|error| Failure::of(&error).error)?;
        }
        let session = PostgresTransaction::begin(&self.connection, &self.vault, access).await;
        Ok(Box::new(Open { session, is_open: &self.is_open }))
    }
}

struct Open<'c> {
    session: PostgresTransaction<'c>,
    is_open: &'c AtomicBool,
}

#[async_trait]
impl Sql for Open<'_> {
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.session.execute(sql, params).await
    }

    async fn pipeline(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        table: Option<&'static str>,
    ) -> Result<(), StoreError> {
        self.session.pipeline(sql, params, table).await
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError> {
        self.session.query(sql, params, each).await
    }
}

#[async_trait]
impl Transaction for Open<'_> {
    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        match self.session.commit().await {
            Ok(done) => done.map_err(|failure| failure.error)?,
            Err(failure) => return Err(failure.error),
        }
        self.is_open.store(false, Ordering::Relaxed);
        Ok(())
    }
}
