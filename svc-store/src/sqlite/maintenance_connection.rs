//! A SQLite connection for maintenance. It is independent of the threads of a store.

use std::path::Path;

use async_trait::async_trait;
use svc_core::store::{Access, StoreResult};
use svc_core::values::Timestamp;

use super::connection::{Executor, SqliteConnection};
use crate::column::Param;
use crate::dialect::Dialect;
use crate::maintenance_connection::{MaintenanceConnection, Opening, Transaction};
use crate::sql::{EachRow, Sql};
use crate::vault::Vault;

pub(crate) struct SqliteMaintenance {
    connection: SqliteConnection,
    vault: Vault,
}

impl SqliteMaintenance {
    pub(crate) fn new(connection: SqliteConnection, vault: Vault) -> Self {
        Self { connection, vault }
    }

    /// Opens a file.
    pub(crate) fn connect(path: &Path, opening: Opening, now: Timestamp) -> StoreResult<SqliteConnection> {
        if opening != Opening::Create {
            let mut connection = SqliteConnection::open_read_only(path)?;
            connection.check_schema(opening.expected_schema())?;
            if opening == Opening::Read {
                return Ok(connection);
            }
        }
        let mut connection = SqliteConnection::open(path)?;
        connection.migrate(now)?;
        Ok(connection)
    }
}

#[async_trait]
impl MaintenanceConnection for SqliteMaintenance {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn begin(&mut self, access: Access) -> StoreResult<Box<dyn Transaction + '_>> {
        self.connection.batch(match access {
            Access::Read => "BEGIN",
            Access::Write => "BEGIN IMMEDIATE",
        })?;
        Ok(Box::new(OpenTransaction { connection: &mut self.connection, vault: &self.vault, is_committed: false }))
    }
}

struct OpenTransaction<'a> {
    connection: &'a mut SqliteConnection,
    vault: &'a Vault,
    is_committed: bool,
}

impl OpenTransaction<'_> {
    fn executor(&mut self) -> Executor<'_, 'static> {
        self.connection.executor(self.vault)
    }
}

#[async_trait]
impl Sql for OpenTransaction<'_> {
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        self.executor().execute(sql, params).await
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        self.executor().query(sql, params, each).await
    }
}

#[async_trait]
impl Transaction for OpenTransaction<'_> {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    async fn commit(mut self: Box<Self>) -> StoreResult<()> {
        self.connection.batch("COMMIT")?;
        self.is_committed = true;
        Ok(())
    }
}

impl Drop for OpenTransaction<'_> {
    fn drop(&mut self) {
        if !self.is_committed && self.connection.in_transaction() {
            let _ = self.connection.batch("ROLLBACK");
        }
    }
}
