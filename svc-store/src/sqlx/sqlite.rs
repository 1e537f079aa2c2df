//! Statements on a SQLite connection of sqlx.

use ::sqlx::sqlite::{SqliteArguments, SqliteRow};
use ::sqlx::{
    Arguments as _, AssertSqlSafe, Connection as _, Decode, Error as DriverError, Executor as _, Row as _, Sqlite,
    SqliteConnection, Transaction, TypeInfo as _, ValueRef as _,
};
use async_trait::async_trait;
use svc_core::error::{Error, StoreError};
use svc_core::store::{StoreResult, UnitOfWork};

use super::{ApplicationConnection, Context, Join, Joined, Operations, sealed};
use crate::SqliteStore;
use crate::column::{CellError, Param, Row, Value};
use crate::dialect::Dialect;
use crate::sql::{EachRow, Sql};
use crate::vault::Vault;

/// The primary result codes with which the database is not available: permission denied, busy, locked, out of memory,
/// read-only, input or output failed, corrupt, full, cannot be opened, locking failed, not a database
/// (<https://sqlite.org/rescode.html>).
const UNAVAILABLE: [i32; 11] = [3, 5, 6, 7, 8, 10, 11, 13, 14, 15, 26];
/// The primary result code of a violated constraint.
const CONSTRAINT: i32 = 19;

impl Join<Sqlite> for SqliteStore {}

impl sealed::Join<Sqlite> for SqliteStore {
    fn join<'t>(&'t self, transaction: &'t mut Transaction<'_, Sqlite>) -> Joined<'t> {
        let context = Context { store: self, shared: self.context() };
        Joined::new(
            ApplicationConnection::Sqlite(SqliteTransaction { connection: transaction, vault: &context.shared.vault }),
            context,
        )
    }
}

pub(super) struct SqliteTransaction<'t> {
    connection: &'t mut SqliteConnection,
    vault: &'t Vault,
}

impl SqliteTransaction<'_> {
    pub(super) async fn run(&mut self, operations: Operations<'_>, work: &UnitOfWork) -> Result<bool, Error> {
        let mut nested = self.connection.begin().await.map_err(store_error)?;
        let mut executor = SqliteExecutor { connection: &mut nested, vault: self.vault };
        match operations.run(&mut executor, Dialect::Sqlite, work).await {
            Ok(has_due_deliveries) => {
                nested.commit().await.map_err(store_error)?;
                Ok(has_due_deliveries)
            }
            Err(error) => {
                let _ = nested.rollback().await;
                Err(error)
            }
        }
    }
}

struct SqliteExecutor<'c> {
    connection: &'c mut SqliteConnection,
    vault: &'c Vault,
}

#[async_trait]
impl Sql for SqliteExecutor<'_> {
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        let query = ::sqlx::query_with(AssertSqlSafe(sql), arguments(params, self.vault)?);
        Ok(self.connection.execute(query).await.map_err(store_error)?.rows_affected())
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        let query = ::sqlx::query_with(AssertSqlSafe(sql), arguments(params, self.vault)?);
        let rows: Vec<SqliteRow> = self.connection.fetch_all(query).await.map_err(store_error)?;
        rows.iter().try_for_each(|row| each(&FetchedRow { row, vault: self.vault }))
    }
}

/// Binds parameters as the store does, and encrypts the secrets among them.
fn arguments(params: &[Param<'_>], vault: &Vault) -> StoreResult<SqliteArguments> {
    let mut arguments = SqliteArguments::default();
    for param in params {
        let added = match param {
            Param::Null => arguments.add(None::<i64>),
            Param::Bool(value) => arguments.add(i64::from(*value)),
            Param::Int(value) => arguments.add(*value),
            Param::Time(value) => arguments.add(value.as_micros()),
            Param::Text(text) => arguments.add(text.as_ref()),
            Param::Date(date) => arguments.add(date.to_string()),
            Param::Bytes(bytes) => arguments.add(*bytes),
            Param::Uuid(id) => arguments.add(id.as_bytes().as_slice()),
            Param::Secret(secret) => arguments.add(vault.seal(secret)?),
        };
        added.map_err(|error| StoreError::Internal(error.to_string()))?;
    }
    Ok(arguments)
}

struct FetchedRow<'r> {
    row: &'r SqliteRow,
    vault: &'r Vault,
}

impl Row for FetchedRow<'_> {
    fn value(&self, index: usize) -> Result<Value<'_>, CellError> {
        let cell = self.row.try_get_raw(index).map_err(store_error)?;
        let kind = if cell.is_null() { None } else { Some(cell.type_info().name().to_owned()) };
        let value = match kind.as_deref() {
            None => Ok(Value::Null),
            Some("INTEGER") => <i64 as Decode<'_, Sqlite>>::decode(cell).map(Value::Int),
            Some("TEXT") => <&str as Decode<'_, Sqlite>>::decode(cell).map(Value::Text),
            Some("BLOB") => <&[u8] as Decode<'_, Sqlite>>::decode(cell).map(Value::Bytes),
            Some(other) => Err(format!("cell {index} holds a value of the type {other}").into()),
        };
        Ok(value.map_err(|error| StoreError::Internal(error.to_string()))?)
    }

    fn decrypt(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        self.vault.open(sealed)
    }
}

/// Classifies an error as the store does with those of its own connections.
fn store_error(error: DriverError) -> StoreError {
    let text = error.to_string();
    let Some(failure) = error.as_database_error() else {
        return match error {
            DriverError::Io(_) | DriverError::WorkerCrashed => StoreError::Unavailable(text),
            _ => StoreError::Internal(text),
        };
    };
    let code = failure.code().and_then(|code| code.parse::<i32>().ok()).unwrap_or_default();
    match code & 0xff {
        CONSTRAINT => StoreError::Conflict { constraint: failure.message().to_owned() },
        primary if UNAVAILABLE.contains(&primary) => StoreError::Unavailable(text),
        _ => StoreError::Internal(text),
    }
}
