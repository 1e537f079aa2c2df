//! A transaction on a connection, which runs units of work and implements [`Sql`] for the binding layer.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryStreamExt as _};
use svc_core::error::{Error, StoreError};
use svc_core::store::{Access, StoreResult, UnitOfWork};
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::DeliveryWakeup;
use tokio_postgres::{Error as DriverError, Statement};
use uuid::Uuid;

use super::connection::{MAX_PIPELINED, Pipeline, PostgresConnection, poll_once};
use super::failure::{Recovery, TransactionFailure};
use super::notifications;
use super::queue::{QueuedWork, TenantQueue};
use super::servers::{Held, ServerLoad};
use super::values::{Argument, Received, arguments};
use crate::accounts::tenants::store_clocks;
use crate::column::{Param, Row};
use crate::dialect::{Dialect, locking};
use crate::locked_tenants::LockedTenants;
use crate::slow_reads::{RunningRead, too_slow};
use crate::sql::{EachRow, Sql, SqlTx, StoreContext};
use crate::vault::Vault;

/// The longest that a unit of work may take. The timeouts of the server apply to single statements only.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(30);

const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
pub(super) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The event that a unit of work has to wait for before it runs again.
#[derive(Clone, Copy)]
pub(super) enum WaitingFor {
    /// Another task has the turn of this tenant.
    Turn(TenantId),
    /// Another transaction has locked the row of this tenant.
    Row(TenantId),
    /// It is of no tenant, and has to have a transaction of its own.
    Transaction,
}

/// A transaction on a connection.
pub(super) struct PostgresTransaction<'c> {
    connection: &'c PostgresConnection,
    vault: &'c Vault,
    access: Access,
    /// The statement that begins the transaction, until it has begun.
    begin: Option<&'static str>,
    pipeline: Pipeline<'c>,
    failure: Option<TransactionFailure>,
    /// The turns that are taken before the rows of tenants are locked.
    tenant_queue: Option<&'c TenantQueue<'c>>,
    /// Whether a unit of work has locked the row of a tenant, or is about to.
    has_lock: bool,
    /// The unit of work that runs.
    unit: Unit,
    /// The load of the accounts of each server, where there are several.
    load: Option<&'c ServerLoad>,
    /// The part of it that this transaction is.
    held: Option<Held<'c>>,
    /// The read that runs.
    read: Option<RunningRead<'c, QueuedWork>>,
}

/// The knowledge of a transaction about the unit of work that runs in it.
#[derive(Default)]
struct Unit {
    /// Whether it is not the first of the transaction.
    joins: bool,
    /// Whether it has the turn of a tenant.
    has_turn: bool,
    /// Whether it may have changed rows.
    has_written: bool,
    /// The event that it has to wait for, after which it sends nothing.
    waiting: Option<WaitingFor>,
}

impl<'c> PostgresTransaction<'c> {
    /// Returns a transaction that begins with its first statement, with which `BEGIN` is pipelined.
    pub(super) fn new(connection: &'c PostgresConnection, vault: &'c Vault, access: Access) -> Self {
        let begin = match access {
            Access::Read => BEGIN_READ,
            Access::Write => BEGIN_WRITE,
        };
        Self { begin: Some(begin), ..Self::join(connection, vault, access) }
    }

    /// Joins a transaction that the caller begins and ends.
    pub(super) fn join(connection: &'c PostgresConnection, vault: &'c Vault, access: Access) -> Self {
        Self {
            connection,
            vault,
            access,
            begin: None,
            pipeline: Pipeline::default(),
            failure: None,
            tenant_queue: None,
            has_lock: false,
            unit: Unit::default(),
            load: None,
            held: None,
            read: None,
        }
    }

    /// Makes the transaction count among those that the server of its account holds.
    pub(super) fn with_load(self, load: Option<&'c ServerLoad>) -> Self {
        Self { load, ..self }
    }

    /// Makes what runs a read that may have to join the slow ones.
    pub(super) fn with_read(self, read: RunningRead<'c, QueuedWork>) -> Self {
        Self { read: Some(read), ..self }
    }

    /// Returns the read that has run.
    pub(super) fn read(&self) -> Option<&RunningRead<'c, QueuedWork>> {
        self.read.as_ref()
    }

    /// Makes the transaction take a turn before it locks the row of a tenant.
    pub(super) fn with_tenant_queue(self, tenant_queue: &'c TenantQueue<'c>) -> Self {
        Self { tenant_queue: Some(tenant_queue), ..self }
    }

    /// Runs a unit of work. A panic becomes an error.
    pub(super) async fn run(
        &mut self,
        name: &'static str,
        work: &UnitOfWork,
        context: &StoreContext,
        delivery_wakeup: &DeliveryWakeup,
        locked: Option<&mut LockedTenants>,
    ) -> Result<(), Error> {
        if self.access == Access::Write {
            context.check_clock()?;
        }
        let mut tx = SqlTx { locked, ..SqlTx::new(self, Dialect::Postgres, context, delivery_wakeup) };
        match AssertUnwindSafe(async { work(&mut tx).await }).catch_unwind().await {
            Ok(result) => result,
            Err(_) => Err(StoreError::Internal(format!("{name} panicked")).into()),
        }
    }

    async fn begin(&mut self) {
        if let Some(begin) = self.begin.take() {
            self.pipeline.send(self.connection, begin).await;
        }
    }

    /// Is called before a unit of work that joins the transaction.
    pub(super) fn begin_joining_unit(&mut self) {
        self.unit = Unit { joins: true, ..Unit::default() };
    }

    /// Returns whether others may join: a unit of work of a tenant has locked it.
    pub(super) fn can_be_joined(&self) -> bool {
        self.has_lock
    }

    /// Returns what the last unit of work has to wait for, if it could not go on.
    pub(super) fn waiting(&self) -> Option<WaitingFor> {
        self.unit.waiting
    }

    /// Returns whether the last unit of work may have changed rows. Such a unit of work cannot be rolled back alone.
    pub(super) fn unit_has_written(&self) -> bool {
        self.unit.has_written
    }

    /// Returns the first failure, after which the transaction cannot be committed.
    pub(super) fn failure(&self) -> Option<&TransactionFailure> {
        self.failure.as_ref()
    }

    /// Notifies the webhook senders of all nodes when the transaction is committed.
    pub(super) async fn notify(&mut self) {
        self.begin().await;
        self.pipeline.send(self.connection, notifications::NOTIFY).await;
    }

    /// Stores the clocks of tenants, and commits the transaction.
    ///
    /// `Ok(Ok(()))` means that every statement succeeded and that the server confirmed the commit. Both are checked, as the
    /// server also reports success for a `COMMIT` after a failed statement, although it rolls back.
    ///
    /// `Ok(Err(_))` means that an earlier statement failed, so the transaction was rolled back. `Err(_)` means that the
    /// commit itself failed.
    pub(super) async fn commit(
        &mut self,
        locked: &mut LockedTenants,
    ) -> Result<Result<(), TransactionFailure>, TransactionFailure> {
        if self.begin.is_some() {
            return Ok(Ok(()));
        }
        // The last unit of work may have been put off.
        self.unit = Unit::default();
        if let Err(error) = store_clocks(locked, self).await {
            let failure = self.failure.take().unwrap_or_else(|| TransactionFailure::permanent(error));
            let _ = self.roll_back().await;
            return Ok(Err(failure));
        }
        // The server would commit an update that found no row, so the row counts are checked before COMMIT is sent.
        if let Err(failure) = self.pipeline.check_counts().await {
            let _ = self.roll_back().await;
            return Ok(Err(failure));
        }
        let connection = self.connection;
        let mut commit: BoxFuture<'_, _> = Box::pin(connection.client.batch_execute("COMMIT"));
        let ready = poll_once(&mut commit).await;
        let statements = self.pipeline.finish().await;
        let committed = match ready {
            Some(committed) => committed,
            None => commit.await,
        };
        match statements {
            // If the response to a statement is lost, so is the response to the commit after it.
            Err(failure) if failure.recovery == Recovery::ConnectionLost => Err(failure),
            Err(failure) => Ok(Err(failure)),
            Ok(()) => match committed {
                Ok(()) => Ok(Ok(())),
                Err(error) => Err(TransactionFailure::of(&error)),
            },
        }
    }

    /// Rolls the transaction back. The connection can be used again afterwards.
    pub(super) async fn roll_back(&mut self) -> Result<(), TransactionFailure> {
        if self.begin.is_some() {
            return Ok(());
        }
        let connection = self.connection;
        self.pipeline.send(connection, "ROLLBACK").await;
        match self.pipeline.finish().await {
            Err(failure) if failure.is_connection_lost() => Err(failure),
            _ => Ok(()),
        }
    }

    /// Records the first failure. Later failures only follow from it.
    fn fail(&mut self, failure: TransactionFailure) -> StoreError {
        self.failure.get_or_insert(failure).error.clone()
    }

    /// Fails after a failure, so that no further statement is sent.
    fn check(&self) -> StoreResult<()> {
        if self.unit.waiting.is_some() {
            return Err(postponed());
        }
        if let Some(read) = self.read.as_ref().filter(|read| read.is_postponed) {
            return Err(too_slow(read.name));
        }
        self.failure.as_ref().map_or(Ok(()), |failure| Err(failure.error.clone()))
    }

    /// Ends a unit of work that has to wait.
    fn wait_for(&mut self, waiting: WaitingFor) -> StoreError {
        self.unit.waiting = Some(waiting);
        postponed()
    }

    /// Sends a request and waits for its response, after those of the pipelined statements.
    async fn wait<T>(&mut self, request: impl Future<Output = Result<T, DriverError>>) -> StoreResult<T> {
        let mut request = pin!(request);
        let ready = poll_once(&mut request).await;
        if let Err(failure) = self.pipeline.wait(0).await {
            return Err(self.fail(failure));
        }
        let response = match ready {
            Some(response) => response,
            None => request.await,
        };
        response.map_err(|error| self.fail(TransactionFailure::of(&error)))
    }

    async fn statement(&mut self, sql: &str) -> StoreResult<Statement> {
        self.check()?;
        if self.unit.joins && !self.unit.has_turn {
            // It locks rows that others may lock in another order.
            return Err(self.wait_for(WaitingFor::Transaction));
        }
        self.begin().await;
        let connection = self.connection;
        match connection.prepared(sql) {
            Some(statement) => Ok(statement),
            None => self.wait(connection.prepare(sql)).await,
        }
    }

    /// Sends a statement that changes rows, without waiting for its response.
    async fn send(&mut self, sql: &str, arguments: Vec<Argument>, table: Option<&'static str>) -> StoreResult<()> {
        let statement = self.statement(sql).await?;
        self.unit.has_written = true;
        let connection = self.connection;
        let changed = Box::pin(async move { connection.client.execute_raw(&statement, arguments).await });
        self.pipeline.add(changed, table).await;
        self.pipeline.wait(MAX_PIPELINED).await.map_err(|failure| self.fail(failure))
    }

    /// Fails in a read transaction, which may only run queries. The server refuses queries that write.
    fn require_write_access(&self) -> StoreResult<()> {
        match self.access {
            Access::Write => Ok(()),
            Access::Read => Err(StoreError::Internal("a read transaction tried to write".to_owned())),
        }
    }
}

pub(crate) fn too_long(name: &str) -> StoreError {
    StoreError::TooSlow(format!("{name} took longer than {MAX_DURATION:?}"))
}

/// The error of a unit of work that has to wait, and runs again later.
fn postponed() -> StoreError {
    StoreError::Unavailable("another transaction is running".to_owned())
}

#[async_trait]
impl Sql for PostgresTransaction<'_> {
    fn enter(&mut self, key: Uuid) -> StoreResult<()> {
        if let Some(load) = self.load.filter(|_| self.held.is_none()) {
            self.held = load.enter(TenantId(key))?;
        }
        Ok(())
    }

    fn read_as(&mut self, account: TenantId) -> StoreResult<()> {
        self.read.as_mut().map_or(Ok(()), |read| read.read_as(account))
    }

    fn take_turn(&mut self, key: Uuid) -> StoreResult<()> {
        self.check()?;
        self.enter(key)?;
        let tenant = TenantId(key);
        let has_turn = self.tenant_queue.is_none_or(|tenant_queue| tenant_queue.take(tenant));
        // The first unit of work may wait for a second tenant, whose turn another task has.
        if !has_turn && (self.unit.joins || !self.has_lock) {
            return Err(self.wait_for(WaitingFor::Turn(tenant)));
        }
        (self.has_lock, self.unit.has_turn) = (true, true);
        Ok(())
    }

    async fn lock_row(&mut self, key: Uuid, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        // What joins has no row that others wait for, but the transaction has.
        let (may_wait, mut is_found) = (!self.unit.joins, false);
        let mut each = |row: &dyn Row| {
            is_found = true;
            each(row)
        };
        self.query(&locking(sql, may_wait), params, &mut each).await?;
        if is_found || may_wait { Ok(()) } else { Err(self.wait_for(WaitingFor::Row(TenantId(key)))) }
    }

    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        self.require_write_access()?;
        let arguments = arguments(params, self.vault)?;
        let statement = self.statement(sql).await?;
        let connection = self.connection;
        let changed = self.wait(connection.client.execute_raw(&statement, arguments)).await?;
        self.unit.has_written |= changed > 0;
        Ok(changed)
    }

    async fn pipeline(&mut self, sql: &str, params: &[Param<'_>], table: Option<&'static str>) -> StoreResult<()> {
        self.require_write_access()?;
        let arguments = arguments(params, self.vault)?;
        self.send(sql, arguments, table).await
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        let arguments = arguments(params, self.vault)?;
        let statement = self.statement(sql).await?;
        let connection = self.connection;
        let mut rows = pin!(self.wait(connection.client.query_raw(&statement, arguments)).await?);
        let mut read = Ok(());
        // All rows are read even if one is invalid, as the server may report an error after them.
        while let Some(row) = rows.try_next().await.map_err(|error| self.fail(TransactionFailure::of(&error)))? {
            // Such as `UPDATE … RETURNING`, which returns what it has changed.
            self.unit.has_written |= !sql.starts_with("SELECT");
            if read.is_ok() {
                read = each(&Received { row: &row, vault: self.vault });
            }
        }
        read
    }
}
