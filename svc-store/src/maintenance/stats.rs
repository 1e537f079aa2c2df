//! The size and the contents of a database, in numbers.

use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::{Access, StoreResult};
use svc_core::values::Timestamp;

use super::copy::count;
use super::tables::TABLES;
use super::{MaintenanceError, open};
use crate::column::{Column, Row};
use crate::dialect::Dialect;
use crate::maintenance_connection::Opening;
use crate::sql::{Cells, Sql};

/// The size and the contents of a database, in numbers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DbStats {
    /// The kind of database: `SQLite`, `PostgreSQL` or `PostgreSQL with Citus`.
    pub kind: &'static str,
    /// The name of the newest migration that was applied.
    pub schema: String,
    /// The size on the disk, in bytes, on Citus that of all servers.
    pub bytes: u64,
    /// The name and the number of rows of each table.
    pub tables: Vec<(&'static str, u64)>,
    /// Each status that deliveries have, and the number of deliveries with it.
    pub deliveries: Vec<(String, u64)>,
    /// When the oldest pending delivery was created. `None` when there is no pending delivery.
    pub oldest_pending: Option<Timestamp>,
}

/// Measures the database at `url`. It counts all rows in one snapshot, and can run while servers use the database.
///
/// # Errors
/// [`MaintenanceError::Open`] when the database cannot be opened, is not one of svc, or has the schema of another version,
/// and [`MaintenanceError::Store`] when it cannot be read.
pub async fn stats(url: &str) -> Result<DbStats, MaintenanceError> {
    let mut database = open::existing(url, &Env::system(), Opening::Read).await?;
    Ok(stats_of(&mut database).await?)
}

pub(super) async fn stats_of(database: &mut open::OpenDatabase) -> StoreResult<DbStats> {
    let (kind, size) = match database.connection.dialect() {
        Dialect::Sqlite => ("SQLite", "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"),
        Dialect::Postgres if database.connection.is_distributed() => ("PostgreSQL with Citus", SIZE_ON_CITUS),
        Dialect::Postgres => ("PostgreSQL", "SELECT pg_database_size(current_database())"),
    };
    let mut tx = database.connection.begin(Access::Read).await?;
    let sql: &mut dyn Sql = &mut *tx;
    let mut tables = Vec::new();
    for table in TABLES {
        tables.push((table.name, count(sql, table.name).await?));
    }
    let mut deliveries = Vec::new();
    let mut each = |row: &dyn Row| {
        let mut cells = Cells::new(row);
        deliveries.push((cells.take("deliveries", "status")?, cells.take("deliveries", "count(*)")?));
        Ok(())
    };
    sql.query("SELECT status, count(*) FROM deliveries GROUP BY status ORDER BY status", &[], &mut each).await?;
    let oldest = "SELECT min(created_at) FROM deliveries WHERE status = 'pending'";
    let stats = DbStats {
        kind,
        schema: single_cell(sql, "SELECT max(name) FROM schema_migrations", ("schema_migrations", "name")).await?,
        bytes: single_cell(sql, size, ("the database", "size")).await?,
        tables,
        deliveries,
        oldest_pending: single_cell(sql, oldest, ("deliveries", "created_at")).await?,
    };
    tx.commit().await?;
    Ok(stats)
}

/// The sum of all servers.
const SIZE_ON_CITUS: &str = "SELECT sum(result::bigint)::bigint \
     FROM run_command_on_all_nodes('SELECT pg_database_size(current_database())')";

/// Returns the only cell of a result. Errors name it by a table and a column.
async fn single_cell<T: Column + Send>(
    sql: &mut dyn Sql,
    statement: &str,
    (table, column): (&'static str, &'static str),
) -> StoreResult<T> {
    let mut found = None;
    let mut each = |row: &dyn Row| {
        found = Some(Cells::new(row).take(table, column)?);
        Ok(())
    };
    sql.query(statement, &[], &mut each).await?;
    found.ok_or_else(|| StoreError::Internal(format!("the statement returned no row: {statement}")))
}
