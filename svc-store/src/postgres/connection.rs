//! A connection: its client, its prepared statements, and the task that drives it.
//!
//! # Pipelining
//!
//! The driver sends a statement when its future is first polled, and responses arrive in the order in which the statements
//! were sent. A statement whose result is not needed at once is *pipelined*: its future is polled once and kept in a queue.
//! The queue is emptied before the response of the next statement that is waited for, and at the commit. Only those waits
//! cost a round trip.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures_util::future::BoxFuture;
use svc_core::store::StoreResult;
use svc_core::sync::lock;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio_postgres::{Client, Error, Statement};

use super::connect_options::{ConnectOptions, Role, in_time};
use super::failure::{TransactionFailure, cannot_connect};
use crate::sql::check_changed;

/// Prevents writes even if the `BEGIN` of a read transaction fails. It is set once the connection is open, as
/// `target_session_attrs=read-write` asks for connections that may write.
const READ_ONLY: &str = "SET default_transaction_read_only = on";

/// The most pipelined statements whose responses were not read yet. It limits the memory of a transaction that only writes.
pub(super) const MAX_PIPELINED: usize = 256;

pub(super) struct PostgresConnection {
    pub(super) client: Client,
    statements: Mutex<HashMap<String, Statement>>,
    driver: AbortHandle,
    /// Closed when the driver ends.
    driver_alive: watch::Receiver<()>,
    is_aborted: AtomicBool,
}

impl PostgresConnection {
    pub(super) async fn open(connect_options: &ConnectOptions, role: Role) -> StoreResult<Self> {
        let (client, connection) = connect_options.connect(role).await?;
        let (alive_sender, driver_alive) = watch::channel(());
        let driver = tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(alive_sender);
        });
        let connection = Self {
            client,
            statements: Mutex::default(),
            driver: driver.abort_handle(),
            driver_alive,
            is_aborted: AtomicBool::new(false),
        };
        if matches!(role, Role::Read | Role::SlowRead) {
            in_time(connection.client.batch_execute(READ_ONLY)).await?;
        }
        // Not in the options of the connection, which a pooler ignores.
        if let Some(timeout) = connect_options.statement_timeout(role) {
            let set = format!("SET statement_timeout = {}", timeout.as_millis().max(1));
            in_time(connection.client.batch_execute(&set)).await?;
        }
        Ok(connection)
    }

    /// Returns whether the database is on Citus, which spreads the rows of tables over servers.
    pub(super) async fn has_citus(&self) -> StoreResult<bool> {
        let found =
            self.client.query_one("SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')", &[]).await;
        found.and_then(|row| row.try_get(0)).map_err(|error| cannot_connect(&error))
    }

    /// Returns a statement if it is already prepared.
    pub(super) fn prepared(&self, sql: &str) -> Option<Statement> {
        lock(&self.statements).get(sql).cloned()
    }

    /// Prepares a statement. It stays prepared until the connection ends, as there are only a few hundred statements.
    pub(super) async fn prepare(&self, sql: &str) -> Result<Statement, Error> {
        let statement = self.client.prepare(sql).await?;
        let mut statements = lock(&self.statements);
        statements.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }

    /// Waits until the connection has ended.
    pub(super) async fn closed(&self) {
        let mut driver_alive = self.driver_alive.clone();
        while driver_alive.changed().await.is_ok() {}
    }

    pub(super) fn is_closed(&self) -> bool {
        // The driver ends a moment after it was aborted.
        self.is_aborted.load(Ordering::Acquire) || self.client.is_closed()
    }

    /// Closes the connection at once. The server rolls back an open transaction.
    pub(super) fn abort(&self) {
        self.is_aborted.store(true, Ordering::Release);
        self.driver.abort();
    }
}

/// A statement that was sent.
struct PipelinedStatement<'c> {
    /// The number of rows that it changes.
    changed: BoxFuture<'c, Result<u64, Error>>,
    /// The output of `changed`, if it was ready when the statement was sent.
    ready: Option<Result<u64, Error>>,
    /// The table of which the statement must change exactly one row, if any.
    table: Option<&'static str>,
}

/// The pipelined statements of a connection, in the order of their responses.
#[derive(Default)]
pub(super) struct Pipeline<'c>(VecDeque<PipelinedStatement<'c>>);

impl<'c> Pipeline<'c> {
    /// Sends a statement without parameters.
    pub(super) async fn send(&mut self, connection: &'c PostgresConnection, sql: &'static str) {
        self.add(Box::pin(async move { connection.client.batch_execute(sql).await.map(|()| 0) }), None).await;
    }

    pub(super) async fn add(&mut self, mut changed: BoxFuture<'c, Result<u64, Error>>, table: Option<&'static str>) {
        let ready = poll_once(&mut changed).await;
        self.0.push_back(PipelinedStatement { changed, ready, table });
    }

    /// Waits for the responses to all but the last `remaining` statements.
    pub(super) async fn wait(&mut self, remaining: usize) -> Result<(), TransactionFailure> {
        while self.0.len() > remaining {
            let Some(PipelinedStatement { changed, ready, table }) = self.0.pop_front() else { break };
            let changed = match ready {
                Some(ready) => ready,
                None => changed.await,
            };
            let changed = changed.map_err(|error| TransactionFailure::of(&error))?;
            check_changed(changed, table).map_err(TransactionFailure::permanent)?;
        }
        Ok(())
    }

    /// Waits for all responses if one of the statements has to change exactly one row.
    pub(super) async fn check_counts(&mut self) -> Result<(), TransactionFailure> {
        let remaining = if self.0.iter().any(|statement| statement.table.is_some()) { 0 } else { self.0.len() };
        self.wait(remaining).await
    }

    /// Waits for all responses and returns the first failure. Later failures only follow from it.
    pub(super) async fn finish(&mut self) -> Result<(), TransactionFailure> {
        let mut first = Ok(());
        while !self.0.is_empty() {
            first = first.and(self.wait(0).await);
        }
        first
    }
}

/// Polls a future once, by which the driver sends its statement.
pub(super) async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut future = std::pin::Pin::new(future);
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}
