//! The binding layer: the connection trait that both databases implement, and the transaction over it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use svc_core::accounts::actor::Actor;
use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::pages::CursorKey;
use svc_core::store::{Access, Observer, StoreResult, Tx};
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::DeliveryWakeup;
use svc_core::webhooks::events::WrittenEvents;
use uuid::Uuid;

use crate::column::{CellError, Column, Param, Row};
use crate::database_clock::DatabaseClock;
use crate::dialect::Dialect;
use crate::locked_tenants::{LockedTenant, LockedTenants};
use crate::vault::Vault;

/// A function that is called with each row of a result.
pub(crate) type EachRow<'a> = &'a mut (dyn FnMut(&dyn Row) -> StoreResult<()> + Send);

/// A connection within a transaction.
#[async_trait]
pub(crate) trait Sql: Send {
    /// Is called before a unit of work relies on a row being locked, also if the transaction has locked it already. `key` is
    /// the same wherever the row is locked. While another transaction of this process has the row, the unit of work is put
    /// off: it fails here, and runs again later.
    fn take_turn(&mut self, _key: Uuid) -> StoreResult<()> {
        Ok(())
    }

    /// Is called before statements that concern the rows of one tenant, in a database that has them on several servers. A server
    /// that hangs takes no more than a part of the connections: then the unit of work fails here.
    fn enter(&mut self, _key: Uuid) -> StoreResult<()> {
        Ok(())
    }

    /// Is called when a unit of work names the account that it reads for. Fails if it has to run again among the slow reads.
    fn read_as(&mut self, _account: TenantId) -> StoreResult<()> {
        Ok(())
    }

    /// Runs a query whose row stays locked until the transaction ends. Its turn was taken.
    async fn lock_row(&mut self, _key: Uuid, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        self.query(sql, params, each).await
    }

    /// Runs a statement and returns how many rows it changed.
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64>;

    /// Runs a statement without waiting for its result. On PostgreSQL it is only sent; a failure is returned by a later
    /// statement, at the latest by the commit. With `table`, it must change exactly one row of that table.
    async fn pipeline(&mut self, sql: &str, params: &[Param<'_>], table: Option<&'static str>) -> StoreResult<()> {
        let changed = self.execute(sql, params).await?;
        check_changed(changed, table)
    }

    /// Runs a statement and calls `each` with each of its rows.
    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()>;
}

/// Checks that an update of one row of a table found that row.
pub(crate) fn check_changed(changed: u64, table: Option<&'static str>) -> StoreResult<()> {
    match table {
        Some(table) if changed != 1 => Err(StoreError::Internal(format!("an update of {table} found {changed} rows"))),
        _ => Ok(()),
    }
}

/// The state that the transactions of a store share.
pub(crate) struct StoreContext {
    pub(crate) env: Env,
    pub(crate) cursor_key: CursorKey,
    pub(crate) vault: Vault,
    pub(crate) delivery_wakeup: DeliveryWakeup,
    /// Whether the rows of a tenant may be on another server than those that are of no tenant, as on Citus.
    pub(crate) is_distributed: bool,
    /// Whether a person runs the program and waits, so that upkeep may lock a table for as long as it takes.
    pub(crate) is_by_hand: bool,
    /// The clock of the database, if it has one.
    pub(crate) database_clock: Option<DatabaseClock>,
    observer: OnceLock<Arc<dyn Observer>>,
}

impl StoreContext {
    pub(crate) fn new(env: Env, cursor_key: CursorKey, vault: Vault) -> Self {
        let (delivery_wakeup, observer) = (DeliveryWakeup::default(), OnceLock::new());
        Self {
            env,
            cursor_key,
            vault,
            delivery_wakeup,
            is_distributed: false,
            is_by_hand: false,
            database_clock: None,
            observer,
        }
    }

    /// Returns the error of a write that takes its time now, if the clock of this machine is wrong.
    pub(crate) fn check_clock(&self) -> StoreResult<()> {
        self.database_clock.as_ref().map_or(Ok(()), DatabaseClock::check)
    }

    /// Registers the first observer; later ones are ignored.
    pub(crate) fn observe(&self, observer: Arc<dyn Observer>) {
        let _ = self.observer.set(observer);
    }

    pub(crate) fn report_group(&self, access: Access, units: usize) {
        self.observer.get().into_iter().for_each(|observer| observer.group(access, units));
    }

    pub(crate) fn report_partitions(&self, ahead: Duration, is_blocked: bool) {
        self.observer.get().into_iter().for_each(|observer| observer.partitions(ahead, is_blocked));
    }

    pub(crate) fn report_retry(&self, name: &'static str) {
        self.observer.get().into_iter().for_each(|observer| observer.retry(name));
    }
}

/// svc-core's transaction on a connection. The repository traits of [`Tx`] are implemented beside the SQL of each table.
pub(crate) struct SqlTx<'a> {
    pub(crate) sql: &'a mut dyn Sql,
    pub(crate) context: &'a StoreContext,
    /// Marked when a unit of work makes deliveries due.
    pub(crate) delivery_wakeup: &'a DeliveryWakeup,
    pub(crate) dialect: Dialect,
    pub(crate) actor: Actor,
    pub(crate) written_events: WrittenEvents,
    /// The knowledge of the transaction about tenants. `None` where others may change them in it, or nothing is locked.
    pub(crate) locked: Option<&'a mut LockedTenants>,
}

impl Tx for SqlTx<'_> {
    fn env(&self) -> &Env {
        &self.context.env
    }
    fn cursor_key(&self) -> &CursorKey {
        &self.context.cursor_key
    }
    fn actor(&self) -> &Actor {
        &self.actor
    }
    fn act_as(&mut self, actor: Actor) {
        self.actor = actor;
    }
    fn read_as(&mut self, account: TenantId) -> StoreResult<()> {
        self.sql.read_as(account)
    }
    fn written_events(&self) -> WrittenEvents {
        self.written_events
    }
}

impl<'a> SqlTx<'a> {
    /// Returns a transaction of the system, which keeps nothing of tenants.
    pub(crate) fn new(
        sql: &'a mut dyn Sql,
        dialect: Dialect,
        context: &'a StoreContext,
        delivery_wakeup: &'a DeliveryWakeup,
    ) -> Self {
        let (actor, written_events) = (Actor::System, WrittenEvents::default());
        Self { sql, context, delivery_wakeup, dialect, actor, written_events, locked: None }
    }

    /// Returns what is known of a tenant, if the transaction has locked it.
    pub(crate) fn locked(&mut self, tenant: TenantId) -> Option<&mut LockedTenant> {
        self.locked.as_mut()?.get(tenant)
    }

    /// Forgets what is known of a tenant, as it changes, or one of its keys or subscriptions.
    pub(crate) fn forget(&mut self, tenant: TenantId) {
        self.locked(tenant).into_iter().for_each(LockedTenant::forget);
    }

    pub(crate) async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        self.sql.execute(sql, params).await
    }

    /// Runs a statement without waiting for its result.
    pub(crate) async fn pipeline(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<()> {
        self.sql.pipeline(sql, params, None).await
    }

    /// Returns all rows of a statement, each read by `read`.
    pub(crate) async fn fetch<T: Send>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: impl Fn(&mut Cells<'_>) -> Result<T, CellError> + Send + Sync,
    ) -> StoreResult<Vec<T>> {
        let mut rows = Vec::new();
        let mut each = |row: &dyn Row| {
            rows.push(read(&mut Cells::new(row))?);
            Ok(())
        };
        self.sql.query(sql, params, &mut each).await?;
        Ok(rows)
    }

    /// Returns the first row of a statement, if it has one.
    pub(crate) async fn fetch_one<T: Send>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: impl Fn(&mut Cells<'_>) -> Result<T, CellError> + Send + Sync,
    ) -> StoreResult<Option<T>> {
        Ok(self.fetch(sql, params, read).await?.into_iter().next())
    }

    /// Returns the number that a `SELECT count(*)` of a table counts.
    pub(crate) async fn count(&mut self, sql: &str, params: &[Param<'_>], table: &'static str) -> StoreResult<u64> {
        Ok(self.fetch_one(sql, params, |cells| cells.take(table, "count(*)")).await?.unwrap_or_default())
    }
}

/// Reads the cells of a row from left to right.
pub(crate) struct Cells<'r> {
    row: &'r dyn Row,
    next: usize,
}

impl<'r> Cells<'r> {
    pub(crate) fn new(row: &'r dyn Row) -> Self {
        Self { row, next: 0 }
    }

    /// Reads the next cell, which holds this column of this table.
    pub(crate) fn take<T: Column>(&mut self, table: &'static str, column: &'static str) -> Result<T, CellError> {
        let index = self.next;
        self.next += 1;
        let value = T::take(self.row.value(index)?, self.row);
        value.ok_or_else(|| CellError::corrupt(table, column, std::any::type_name::<T>()))
    }
}
