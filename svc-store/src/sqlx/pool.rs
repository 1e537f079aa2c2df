//! A store whose transactions run on the PostgreSQL pool of an application.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ::sqlx::PgPool;
use async_trait::async_trait;
use svc_core::accounts::actor::Actor;
use svc_core::env::Env;
use svc_core::error::{Error, StoreError};
use svc_core::store::{Access, AccountServers, Observer, RequestCounts, Store, StoreResult, UnitOfWork};
use svc_core::webhooks::deliveries::DeliveryWakeup;
use tokio::sync::watch;

use super::postgres::{PostgresExecutor, store_error};
use super::{Context, Operations};
use crate::PostgresStore;
use crate::dialect::Dialect;
use crate::postgres::{MAX_DURATION, MAX_RUNS, too_long};

/// Begins a read of one snapshot, which its first statement takes.
const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE";

/// A PostgreSQL store whose transactions run on the pool of an application, so that both share their connections.
///
/// Hand it to [`Svc::new`](svc_core::Svc::new) in place of the store itself. Everything that runs transactions then uses the
/// pool: the facade, the API and the sender of webhooks.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use svc_core::env::Env;
/// use svc_core::prelude::*;
/// use svc_store::sqlx::PooledStore;
/// use svc_store::{Options, PostgresStore};
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
///
/// let options = Options { read_connections: 1, write_connections: 1, ..Options::default() };
/// let store = PostgresStore::open("postgres://svc@localhost/harbour", Env::system(), options).await?;
/// let svc = Svc::new(PooledStore::new(Arc::new(store), pool));
/// # drop(svc);
/// # Ok(())
/// # }
/// ```
///
/// # Connections that remain
///
/// The store keeps three connections of its own: one that it opened with, one that listens for the commits of other
/// processes and compares the clocks, and one for rate limits, once there are requests to count. The first is idle, and its
/// tasks open no others.
///
/// # What it costs
///
/// A transaction on the pool waits for the response to each statement, whereas the store's own connections pipeline them.
/// Each read is a transaction of its own, and a slow planner setting of the pool applies to svc as well. So prefer the store
/// where connections are not scarce, and give the pool a connection for each transaction that is to run at the same time.
///
/// # Failures
///
/// A transaction runs again after a serialization failure or a deadlock. If the connection is lost during the commit, the
/// error is [`StoreError::OutcomeUnknown`]. All else that concerns the connection is [`StoreError::Unavailable`].
pub struct PooledStore {
    shared: Arc<Shared>,
    /// Each transaction has a receiver until it has ended.
    running: watch::Sender<()>,
}

struct Shared {
    store: Arc<PostgresStore>,
    pool: PgPool,
    /// Whether the pool was seen to be on the database of the store.
    is_checked: AtomicBool,
}

impl PooledStore {
    /// Returns a store whose transactions run on `pool`, which must be on the database of `store`. Keep a handle of the store
    /// for [`join`](super::join).
    pub fn new(store: Arc<PostgresStore>, pool: PgPool) -> Self {
        let (running, _) = watch::channel(());
        Self { shared: Arc::new(Shared { store, pool, is_checked: AtomicBool::new(false) }), running }
    }
}

#[async_trait]
impl Store for PooledStore {
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        match access {
            Access::Read => self.shared.store.check_open()?,
            Access::Write => self.check_writable()?,
        }
        let (shared, running) = (Arc::clone(&self.shared), self.running.subscribe());
        // A task of its own completes also when the caller stops waiting.
        let run = tokio::spawn(async move {
            let done = match tokio::time::timeout(MAX_DURATION, shared.run_with_retries(access, &work)).await {
                Ok(done) => done,
                Err(_) => Err(too_long(name).into()),
            };
            // The closure may hold a handle of the store, which must be dropped before the caller continues.
            drop((shared, work, running));
            done
        });
        run.await.unwrap_or_else(|error| Err(StoreError::Internal(format!("{name}: {error}")).into()))
    }

    fn env(&self) -> &Env {
        self.shared.store.env()
    }

    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        self.shared.store.delivery_wakeup()
    }

    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        self.shared.store.request_counts()
    }

    fn servers(&self) -> Option<&dyn AccountServers> {
        self.shared.store.servers()
    }

    fn check_writable(&self) -> StoreResult<()> {
        self.shared.store.check_writable()
    }

    /// Closes the store, and waits for the transactions on the pool. The pool stays open, as it is the application's.
    async fn close(&self) {
        self.shared.store.close().await;
        self.running.closed().await;
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.shared.store.observe(observer);
    }
}

impl Shared {
    async fn run_with_retries(&self, access: Access, work: &UnitOfWork) -> Result<(), Error> {
        let mut runs = 1;
        loop {
            match self.run_once(access, work).await {
                ControlFlow::Break(result) => return result,
                ControlFlow::Continue(conflict) if runs == MAX_RUNS => return Err(conflict.into()),
                ControlFlow::Continue(_) => self.store.pause_after_conflict(runs).await,
            }
            runs += 1;
        }
    }

    /// Runs a unit of work. Goes on with the error when the transaction was rolled back after a serialization failure or a
    /// deadlock.
    async fn run_once(&self, access: Access, work: &UnitOfWork) -> ControlFlow<Result<(), Error>, StoreError> {
        let context = Context { store: &self.store, shared: self.store.context() };
        let begin = if access == Access::Read { BEGIN_READ } else { BEGIN_WRITE };
        let mut transaction = match self.pool.begin_with(begin).await {
            Ok(transaction) => transaction,
            Err(error) => return ControlFlow::Break(Err(store_error(error).into())),
        };
        let mut executor = PostgresExecutor::new(&mut transaction, &context.shared.vault);
        let is_checked = self.is_checked.load(Ordering::Relaxed);
        let operations = Operations { context, actor: Actor::System, is_checked };
        let done = operations.run(&mut executor, Dialect::Postgres, work).await;
        let conflict = executor.conflict.take();
        let has_due_deliveries = match (conflict, done) {
            (None, Ok(has_due_deliveries)) => has_due_deliveries,
            (conflict, done) => {
                let _ = transaction.rollback().await;
                return match (conflict, done) {
                    (Some(conflict), _) => ControlFlow::Continue(conflict),
                    (None, done) => ControlFlow::Break(done.map(drop)),
                };
            }
        };
        self.is_checked.store(true, Ordering::Relaxed);
        if let Err(error) = transaction.commit().await {
            let outcome = match error.as_database_error() {
                Some(_) => store_error(error),
                None => StoreError::OutcomeUnknown(error.to_string()),
            };
            return ControlFlow::Break(Err(outcome.into()));
        }
        if has_due_deliveries {
            self.store.notify_senders();
        }
        ControlFlow::Break(Ok(()))
    }
}
