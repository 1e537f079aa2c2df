//! Statements on a PostgreSQL connection of sqlx.

use ::sqlx::encode::IsNull;
use ::sqlx::error::BoxDynError;
use ::sqlx::postgres::types::Oid;
use ::sqlx::postgres::{PgArgumentBuffer, PgArguments, PgRow, PgTypeInfo};
use ::sqlx::{
    Arguments as _, AssertSqlSafe, Column as _, Connection as _, Either, Encode, Error as DriverError, Executor as _,
    PgConnection, Postgres, Row as _, SqlSafeStr as _, Statement as _, Transaction, Type, ValueRef as _,
};
use async_trait::async_trait;
use svc_core::error::{Error, StoreError};
use svc_core::store::{StoreResult, UnitOfWork};
use tokio_postgres::types::Type as ServerType;
use uuid::Uuid;

use super::{ApplicationConnection, Context, Join, Joined, Operations, sealed};
use crate::PostgresStore;
use crate::column::{CellError, Param, Row, Value};
use crate::dialect::{Dialect, locking};
use crate::postgres::{Argument, NOTIFY, arguments, error_of_code, read_cell};
use crate::sql::{EachRow, Sql};
use crate::vault::Vault;

impl Join<Postgres> for PostgresStore {}

impl sealed::Join<Postgres> for PostgresStore {
    fn join<'t>(&'t self, transaction: &'t mut Transaction<'_, Postgres>) -> Joined<'t> {
        let context = Context { store: self, shared: self.context() };
        Joined::new(
            ApplicationConnection::Postgres(PostgresTransaction {
                connection: transaction,
                vault: &context.shared.vault,
            }),
            context,
        )
    }
}

pub(super) struct PostgresTransaction<'t> {
    connection: &'t mut PgConnection,
    vault: &'t Vault,
}

impl PostgresTransaction<'_> {
    pub(super) async fn run(&mut self, operations: Operations<'_>, work: &UnitOfWork) -> Result<bool, Error> {
        let mut nested = self.connection.begin().await.map_err(store_error)?;
        let mut executor = PostgresExecutor::new(&mut nested, self.vault);
        match operations.run(&mut executor, Dialect::Postgres, work).await {
            Ok(has_due_deliveries) => {
                if has_due_deliveries {
                    // The server passes it on when the transaction is committed.
                    nested.execute(NOTIFY).await.map_err(store_error)?;
                }
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

pub(super) struct PostgresExecutor<'c> {
    connection: &'c mut PgConnection,
    vault: &'c Vault,
    /// The serialization failure or deadlock after which the transaction can only be rolled back and run again.
    pub(super) conflict: Option<StoreError>,
}

impl<'c> PostgresExecutor<'c> {
    pub(super) fn new(connection: &'c mut PgConnection, vault: &'c Vault) -> Self {
        Self { connection, vault, conflict: None }
    }

    fn failed(&mut self, error: DriverError) -> StoreError {
        let code = error.as_database_error().and_then(|failure| failure.code());
        let is_conflict = code.is_some_and(|code| ["40001", "40P01"].contains(&&*code));
        let error = store_error(error);
        if is_conflict {
            self.conflict = Some(error.clone());
        }
        error
    }

    /// Binds parameters by the types that the server reports for them. The connection keeps the statement prepared.
    async fn bind(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<PgArguments> {
        let statement = self.connection.prepare(AssertSqlSafe(sql).into_sql_str()).await.map_err(store_error)?;
        let Some(Either::Left(types)) = statement.parameters() else {
            return Err(StoreError::Internal("the types of the parameters are not known".to_owned()));
        };
        let mut bound = PgArguments::default();
        for (argument, ty) in arguments(params, self.vault)?.into_iter().zip(types) {
            let added = bound.add(Bound { argument, ty: ty.clone() });
            added.map_err(|error| StoreError::Internal(error.to_string()))?;
        }
        Ok(bound)
    }
}

#[async_trait]
impl Sql for PostgresExecutor<'_> {
    async fn lock_row(&mut self, _key: Uuid, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        self.query(&locking(sql, true), params, each).await
    }

    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        let query = ::sqlx::query_with(AssertSqlSafe(sql), self.bind(sql, params).await?);
        let done = self.connection.execute(query).await;
        Ok(done.map_err(|error| self.failed(error))?.rows_affected())
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        let query = ::sqlx::query_with(AssertSqlSafe(sql), self.bind(sql, params).await?);
        let rows: Result<Vec<PgRow>, _> = self.connection.fetch_all(query).await;
        let rows = rows.map_err(|error| self.failed(error))?;
        rows.iter().try_for_each(|row| each(&FetchedRow { row, vault: self.vault }))
    }
}

/// A parameter, and the type that the server expects in its place.
struct Bound {
    argument: Argument,
    ty: PgTypeInfo,
}

impl Type<Postgres> for Bound {
    fn type_info() -> PgTypeInfo {
        // `produces` has the type of each.
        <str as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for Bound {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let is_null = self.argument.write(&server_type(&self.ty)?, &mut **buffer)?;
        Ok(if is_null { IsNull::Yes } else { IsNull::No })
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(self.ty.clone())
    }
}

/// Returns the type with the same number in the catalogue, as the driver of the store names it.
fn server_type(ty: &PgTypeInfo) -> Result<ServerType, BoxDynError> {
    let known = ty.oid().and_then(|Oid(number)| ServerType::from_oid(number));
    known.ok_or_else(|| format!("the type {ty} is not supported").into())
}

struct FetchedRow<'r> {
    row: &'r PgRow,
    vault: &'r Vault,
}

impl Row for FetchedRow<'_> {
    fn value(&self, index: usize) -> Result<Value<'_>, CellError> {
        let cell = self.row.try_get_raw(index).map_err(store_error)?;
        if cell.is_null() {
            return Ok(Value::Null);
        }
        let ty = self.row.columns().get(index).map(|column| server_type(column.type_info()));
        let value = match ty {
            Some(Ok(ty)) => cell.as_bytes().and_then(|raw| read_cell(&ty, raw)),
            Some(Err(error)) => Err(error),
            None => Err(format!("there is no cell {index}").into()),
        };
        Ok(value.map_err(|error| StoreError::Internal(error.to_string()))?)
    }

    fn decrypt(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        self.vault.open(sealed)
    }
}

/// Classifies an error as the store does with those of its own connections.
pub(super) fn store_error(error: DriverError) -> StoreError {
    let text = error.to_string();
    match error.as_database_error() {
        Some(failure) => {
            let code = failure.code().unwrap_or_default().into_owned();
            let constraint = failure.constraint().unwrap_or(failure.message());
            error_of_code(&code, format!("{} ({code})", failure.message()), constraint)
        }
        None => match error {
            DriverError::Io(_) | DriverError::Tls(_) | DriverError::PoolTimedOut | DriverError::PoolClosed => {
                StoreError::Unavailable(text)
            }
            _ => StoreError::Internal(text),
        },
    }
}
