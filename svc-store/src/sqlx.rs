//! Operations of svc inside a transaction of the application's own, on a connection of [sqlx](https://docs.rs/sqlx).
//!
//! The application's rows and svc's record, its event and its deliveries are then committed together, or not at all.
//!
//! ```no_run
//! use svc_core::prelude::*;
//! use svc_store::SqliteStore;
//! # async fn example(
//! #     pool: sqlx::SqlitePool, store: SqliteStore, tenant: TenantId,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//!
//! let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
//! sqlx::query("INSERT INTO orders (number) VALUES (1)").execute(&mut *tx).await?;
//! let invoice = InvoiceCreate::new("149.50".parse()?);
//! let invoice = svc_store::sqlx::join(&mut tx, &store).account(tenant).invoices().create(invoice).await?;
//! tx.commit().await?;
//! # let _ = invoice;
//! # Ok(())
//! # }
//! ```
//!
//! # Failures
//!
//! Each operation is a savepoint. When it fails, nothing of it is left, and the transaction of the application can go on
//! or be rolled back. A failure of the database itself, such as a deadlock or a lock that is not free in time, is
//! [`StoreError::Unavailable`], for which [`is_transient`](StoreError::is_transient) is true: roll back, and do the whole
//! transaction again.
//!
//! # Locks
//!
//! An operation that writes locks the row of its account until the transaction of the application ends, so all other
//! writes of that account wait, and so do its deliveries, whose outcomes are not stored meanwhile. On SQLite there is one
//! writer for the whole database: everybody waits, and after five seconds writes of the API fail with 503. So join late and
//! commit soon, and do not wait for anything else in between.
//!
//! A transaction that writes on SQLite should start with `BEGIN IMMEDIATE`, as above. One that has read before its first
//! write fails when another connection wrote in between.
//!
//! # The pool of the application
//!
//! On PostgreSQL a [`PooledStore`] runs all transactions of svc on the pool of the application, so that they share its
//! connections.
//!
//! # Delivery
//!
//! The commit makes the deliveries due. On PostgreSQL it notifies the webhook senders of all processes. On SQLite the
//! sender finds them within a second. To wake it at once, call [`notify`](DeliveryWakeup::notify) of
//! [`Store::delivery_wakeup`] after the commit, if [`Joined::has_due_deliveries`] says so.

#[cfg(feature = "postgres")]
mod pool;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::sync::atomic::{AtomicBool, Ordering};

use ::sqlx::{Database, Transaction};
use futures_util::future::BoxFuture;
use futures_util::lock::Mutex as AsyncMutex;
use svc_core::accounts::actor::Actor;
use svc_core::error::{Error, StoreError};
use svc_core::pages::CursorKey;
use svc_core::service::{self, Account, Accounts, Executor};
use svc_core::store::{Access, Store, Tx as _, UnitOfWork};
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::DeliveryWakeup;

#[cfg(feature = "postgres")]
pub use self::pool::PooledStore;
use crate::column::Param;
use crate::dialect::Dialect;
use crate::sql::{Sql, SqlTx, StoreContext};

/// Reads the value that each database has of its own.
const CURSOR_KEY: &str = "SELECT value FROM settings WHERE name = 'cursor_key'";

/// Joins a transaction of the application, which must be on the database of `store`.
///
/// `D` follows from the store: `sqlx::Sqlite` for [`SqliteStore`](crate::SqliteStore), and `sqlx::Postgres` for
/// [`PostgresStore`](crate::PostgresStore).
pub fn join<'t, 'c, D, S>(transaction: &'t mut Transaction<'c, D>, store: &'t S) -> Joined<'t>
where
    D: Database,
    S: Join<D>,
{
    store.join(transaction)
}

/// A store whose operations can be part of a transaction on a connection to the database `D`. Both stores of this crate
/// implement it, and nothing else can.
pub trait Join<D: Database>: sealed::Join<D> {}

pub(crate) mod sealed {
    use ::sqlx::{Database, Transaction};

    use super::Joined;

    pub trait Join<D: Database> {
        fn join<'t>(&'t self, transaction: &'t mut Transaction<'_, D>) -> Joined<'t>;
    }
}

/// The needs of the operations in a transaction besides its connection.
#[derive(Clone, Copy)]
pub(crate) struct Context<'s> {
    pub(crate) store: &'s dyn Store,
    pub(crate) shared: &'s StoreContext,
}

/// A transaction that svc has joined, with the same operations as [`Svc`](svc_core::Svc).
///
/// Operations run one after the other, in the order in which they are awaited.
pub struct Joined<'t> {
    connection: AsyncMutex<ApplicationConnection<'t>>,
    context: Context<'t>,
    actor: Actor,
    /// Whether the connection was seen to be on the database of the store.
    is_checked: AtomicBool,
    has_due_deliveries: AtomicBool,
}

/// The connection of a transaction. An enum, so that the transaction can end before a [`Joined`] goes out of scope.
enum ApplicationConnection<'t> {
    #[cfg(feature = "sqlite")]
    Sqlite(sqlite::SqliteTransaction<'t>),
    #[cfg(feature = "postgres")]
    Postgres(postgres::PostgresTransaction<'t>),
}

impl ApplicationConnection<'_> {
    /// Runs operations within a savepoint, and returns whether they made deliveries due.
    async fn run(&mut self, operations: Operations<'_>, work: &UnitOfWork) -> Result<bool, Error> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(transaction) => transaction.run(operations, work).await,
            #[cfg(feature = "postgres")]
            Self::Postgres(transaction) => transaction.run(operations, work).await,
        }
    }
}

/// How operations are run in a transaction.
struct Operations<'s> {
    context: Context<'s>,
    actor: Actor,
    is_checked: bool,
}

impl Operations<'_> {
    /// Runs operations, and returns whether they made deliveries due.
    async fn run(self, sql: &mut dyn Sql, dialect: Dialect, work: &UnitOfWork) -> Result<bool, Error> {
        // The wakeup of the store is for what is committed.
        let delivery_wakeup = &DeliveryWakeup::default();
        let mut tx = SqlTx::new(sql, dialect, self.context.shared, delivery_wakeup);
        tx.act_as(self.actor);
        if !self.is_checked {
            check_database(&mut tx).await?;
        }
        work(&mut tx).await?;
        Ok(delivery_wakeup.take_mark())
    }
}

/// Checks that the transaction is on the database of the store.
async fn check_database(tx: &mut SqlTx<'_>) -> Result<(), Error> {
    let no_params: &[Param<'_>] = &[];
    let found = tx.fetch_one(CURSOR_KEY, no_params, |cells| cells.take::<[u8; 32]>("settings", "value")).await;
    match found {
        Ok(Some(key)) if tx.context.cursor_key == CursorKey::new(key) => Ok(()),
        Err(error) if error.is_transient() => Err(error.into()),
        _ => Err(StoreError::Internal(
            "the transaction is on another database than the store; join transactions of a pool for the same URL"
                .to_owned(),
        )
        .into()),
    }
}

impl<'t> Joined<'t> {
    fn new(connection: ApplicationConnection<'t>, context: Context<'t>) -> Self {
        Self {
            connection: AsyncMutex::new(connection),
            context,
            actor: Actor::System,
            is_checked: AtomicBool::new(false),
            has_due_deliveries: AtomicBool::new(false),
        }
    }

    /// Sets who the audit log names for what follows.
    #[must_use]
    pub fn acting_as(mut self, actor: Actor) -> Self {
        self.actor = actor;
        self
    }

    /// Returns the operations on accounts.
    pub fn accounts(&self) -> Accounts<'_> {
        self.operations().accounts()
    }

    /// Returns the records of one account.
    pub fn account(&self, id: TenantId) -> Account<'_> {
        self.operations().account(id)
    }

    /// Returns all operations, as a handle that can be copied and passed to functions.
    pub fn operations(&self) -> service::Transaction<'_> {
        service::Transaction::over(self)
    }

    /// Returns whether the operations so far made deliveries due, for which the sender can be woken after the commit.
    pub fn has_due_deliveries(&self) -> bool {
        self.has_due_deliveries.load(Ordering::Relaxed)
    }
}

impl Executor for Joined<'_> {
    fn run(&self, _access: Access, _name: &'static str, work: UnitOfWork) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            let mut connection = self.connection.lock().await;
            self.context.store.check_writable()?;
            let operations = Operations {
                context: self.context,
                actor: self.actor.clone(),
                is_checked: self.is_checked.load(Ordering::Relaxed),
            };
            let has_due_deliveries = connection.run(operations, &work).await?;
            self.is_checked.store(true, Ordering::Relaxed);
            self.has_due_deliveries.fetch_or(has_due_deliveries, Ordering::Relaxed);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests;
