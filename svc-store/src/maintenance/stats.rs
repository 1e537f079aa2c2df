//! How much a database holds.

use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::Access;
use svc_core::values::Timestamp;

use super::copy::count;
use super::tables::TABLES;
use super::{MaintenanceError, open};
use crate::dialect::Dialect;
use crate::sql::{Cells, Column, Row, Sql};

/// How much a database holds.
#[derive(Clone, Debug)]
pub struct DbStats {
    /// `SQLite` or `PostgreSQL`.
    pub kind: &'static str,
    /// The newest migration that was applied.
    pub schema: String,
    /// How large it is on the disk.
    pub bytes: u64,
    /// The rows of each table.
    pub tables: Vec<(&'static str, u64)>,
    /// How many deliveries there are in each state.
    pub deliveries: Vec<(String, u64)>,
    /// When the oldest delivery was made that is still pending.
    pub oldest_pending: Option<Timestamp>,
}

/// Measures a database. Reads whole indexes, in one snapshot beside a running server.
///
/// # Errors
/// When it cannot be opened or read.
pub async fn stats(url: &str) -> Result<DbStats, MaintenanceError> {
    let mut end = open::existing(url, &Env::system()).await?;
    Ok(stats_of(&mut end).await?)
}

pub(super) async fn stats_of(end: &mut open::OpenDatabase) -> Result<DbStats, StoreError> {
    let (kind, size) = match end.connection.dialect() {
        Dialect::Sqlite => ("SQLite", "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"),
        Dialect::Postgres => ("PostgreSQL", "SELECT pg_database_size(current_database())"),
    };
    let mut tx = end.connection.begin(Access::Read).await?;
    let sql: &mut dyn Sql = &mut *tx;
    let mut tables = Vec::new();
    for table in TABLES {
        tables.push((table.name, count(sql, table.name).await?));
    }
    let mut deliveries = Vec::new();
    let mut each = |row: &dyn Row| {
        let mut cells = Cells { row, table: "deliveries", columns: &[], next: 0 };
        deliveries.push((cells.take()?, cells.take()?));
        Ok(())
    };
    sql.query("SELECT state, count(*) FROM deliveries GROUP BY state ORDER BY state", &[], &mut each).await?;
    let oldest = "SELECT min(created_at) FROM deliveries WHERE state = 'pending'";
    let stats = DbStats {
        kind,
        schema: one(sql, "SELECT max(name) FROM schema_migrations").await?,
        bytes: one(sql, size).await?,
        tables,
        deliveries,
        oldest_pending: one(sql, oldest).await?,
    };
    tx.commit().await?;
    Ok(stats)
}

/// The only cell of an answer.
async fn one<T: Column + Send>(sql: &mut dyn Sql, statement: &str) -> Result<T, StoreError> {
    let mut found = None;
    let mut each = |row: &dyn Row| {
        found = Some(Cells { row, table: "stats", columns: &[], next: 0 }.take()?);
        Ok(())
    };
    sql.query(statement, &[], &mut each).await?;
    found.ok_or_else(|| StoreError::Internal(format!("no answer to {statement}")))
}
