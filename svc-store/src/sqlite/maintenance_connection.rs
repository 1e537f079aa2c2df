//! A connection for work on a whole file, beside the store's threads or without them.

use std::path::Path;

use async_trait::async_trait;
use svc_core::error::StoreError;
use svc_core::store::Access;

use super::connection::{Connection, Executor};
use crate::dialect::Dialect;
use crate::maintenance::{MaintenanceConnection, Transaction};
use crate::sql::{EachRow, Param, Sql};
use crate::vault::Vault;

pub(crate) struct SqliteMaintenance {
    connection: Connection,
    vault: Vault,
}

impl SqliteMaintenance {
    pub(crate) fn new(connection: Connection, vault: Vault) -> Self {
        Self { connection, vault }
    }

    /// A connection to a file that must be there, with its schema up to date.
    pub(crate) fn connect(path: &Path, now: svc_core::values::Timestamp) -> Result<Connection, StoreError> {
        let mut connection = Connection::open(path)?;
        connection.migrate(now)?;
        Ok(connection)
    }
}

#[async_trait]
impl MaintenanceConnection for SqliteMaintenance {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn begin(&mut self, access: Access) -> Result<Box<dyn Transaction + '_>, StoreError> {
        self.connection.batch(match access {
            Access::Read => "BEGIN",
            Access::Write => "BEGIN IMMEDIATE",
        })?;
        Ok(Box::new(Open { connection: &mut self.connection, vault: &self.vault, ended: false }))
    }
}

struct Open<'a> {
    connection: &'a mut Connection,
    vault: &'a Vault,
    ended: bool,
}

impl Open<'_> {
    fn executor(&mut self) -> Executor<'_> {
        self.connection.executor(self.vault)
    }
}

#[async_trait]
impl Sql for Open<'_> {
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.executor().execute(sql, params).await
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError> {
        self.executor().query(sql, params, each).await
    }
}

#[async_trait]
impl Transaction for Open<'_> {
    async fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        self.connection.batch("COMMIT")?;
        self.ended = true;
        Ok(())
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if !self.ended && self.connection.in_transaction() {
            let _ = self.connection.batch("ROLLBACK");
        }
    }
}
