//! A transaction on a connection, as the binding layer sees it.
//!
//! The driver sends a statement when its future is first polled, and answers come in the order in which statements
//! were sent. So a statement whose result nobody needs is *posted*: its future is polled once and kept in a queue,
//! which is worked off before the answer of the next statement that somebody waits for, and at the commit. Only
//! those waits cost a round trip.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use futures_util::future::BoxFuture;
use svc_core::error::StoreError;
use svc_core::store::Access;
use tokio_postgres::{Error, Statement};

use super::connection::Connection;
use super::failure::{Failure, Recovery};
use super::notifications;
use super::values::{Received, arguments};
use crate::sql::{EachRow, Param, Sql, check_changed};
use crate::vault::Vault;

/// Statements that may be under way unread: bounds the memory of a job that only writes.
const MAX_PIPELINED: usize = 256;

const BEGIN_WRITE: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE";
pub(super) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// A statement that was sent: how many rows it changed, and the table where that must be one.
struct PipelinedStatement<'c> {
    changed: BoxFuture<'c, Result<u64, Error>>,
    done: Option<Result<u64, Error>>,
    table: Option<&'static str>,
}

/// Statements that were sent and not waited for, in the order of their answers.
#[derive(Default)]
pub(super) struct Pipeline<'c>(VecDeque<PipelinedStatement<'c>>);

impl<'c> Pipeline<'c> {
    /// Sends a statement without parameters.
    pub(super) async fn send(&mut self, connection: &'c Connection, sql: &'static str) {
        self.add(Box::pin(async move { connection.client.batch_execute(sql).await.map(|()| 0) }), None).await;
    }

    async fn add(&mut self, mut changed: BoxFuture<'c, Result<u64, Error>>, table: Option<&'static str>) {
        let done = poll_once(&mut changed).await;
        self.0.push_back(PipelinedStatement { changed, done, table });
    }

    /// Waits for the answers to all but the last `rest` statements.
    async fn settle(&mut self, rest: usize) -> Result<(), Failure> {
        while self.0.len() > rest {
            let Some(PipelinedStatement { changed, done, table }) = self.0.pop_front() else { break };
            let changed = match done {
                Some(done) => done,
                None => changed.await,
            };
            let changed = changed.map_err(|error| Failure::of(&error))?;
            check_changed(changed, table).map_err(Failure::permanent)?;
        }
        Ok(())
    }

    /// Waits for all answers; the first failure counts, as those behind it only tell that there was one.
    pub(super) async fn finish(&mut self) -> Result<(), Failure> {
        let mut first = Ok(());
        while !self.0.is_empty() {
            first = first.and(self.settle(0).await);
        }
        first
    }
}

/// Polls a future once: the driver has sent its statement then.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    let mut future = std::pin::Pin::new(future);
    poll_fn(|context| {
        Poll::Ready(match future.as_mut().poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// A connection while a job has it.
pub(super) struct PostgresTransaction<'c> {
    connection: &'c Connection,
    vault: &'c Vault,
    access: Access,
    pipeline: Pipeline<'c>,
    failure: Option<Failure>,
}

impl<'c> PostgresTransaction<'c> {
    /// Begins a transaction of its own; that travels with the first statement.
    pub(super) async fn begin(connection: &'c Connection, vault: &'c Vault, access: Access) -> Self {
        let mut session = Self::joined(connection, vault, access);
        let begin = match access {
            Access::Read => BEGIN_READ,
            Access::Write => BEGIN_WRITE,
        };
        session.pipeline.send(connection, begin).await;
        session
    }

    /// Works in a transaction that somebody else begins and ends.
    pub(super) fn joined(connection: &'c Connection, vault: &'c Vault, access: Access) -> Self {
        Self { connection, vault, access, pipeline: Pipeline::default(), failure: None }
    }

    /// Why the transaction cannot be committed any more.
    pub(super) fn failure(&self) -> Option<&Failure> {
        self.failure.as_ref()
    }

    /// Tells the senders of all nodes, with the commit.
    pub(super) async fn notify(&mut self) {
        self.pipeline.send(self.connection, notifications::NOTIFY).await;
    }

    /// Commits. `Ok` means that the server said so, and that every statement before had succeeded: after a failed
    /// one the server answers COMMIT with success, too, though it rolls back.
    ///
    /// The inner result is that of the statements before, which tells for sure that nothing was done.
    pub(super) async fn commit(&mut self) -> Result<Result<(), Failure>, Failure> {
        // What is right for the server may be wrong for us: an update that found no row.
        if self.pipeline.0.iter().any(|pipelined| pipelined.table.is_some())
            && let Err(failure) = self.pipeline.settle(0).await
        {
            let _ = self.roll_back().await;
            return Ok(Err(failure));
        }
        let connection = self.connection;
        let mut commit: BoxFuture<'_, _> = Box::pin(connection.client.batch_execute("COMMIT"));
        let sent = poll_once(&mut commit).await;
        let before = self.pipeline.finish().await;
        let committed = match sent {
            Some(done) => done,
            None => commit.await,
        };
        match before {
            // Without an answer to a statement there is none to the commit behind it either.
            Err(failure) if failure.recovery == Recovery::ConnectionLost => Err(failure),
            Err(failure) => Ok(Err(failure)),
            Ok(()) => match committed {
                Ok(()) => Ok(Ok(())),
                Err(error) => Err(Failure::of(&error)),
            },
        }
    }

    /// Undoes everything and leaves the connection as it was.
    pub(super) async fn roll_back(&mut self) -> Result<(), Failure> {
        let connection = self.connection;
        self.pipeline.send(connection, "ROLLBACK").await;
        match self.pipeline.finish().await {
            Err(failure) if failure.is_connection_lost() => Err(failure),
            _ => Ok(()),
        }
    }

    /// Notes the first failure; those after it only tell that there was one.
    fn fail(&mut self, failure: Failure) -> StoreError {
        self.failure.get_or_insert(failure).error.clone()
    }

    /// Nothing is sent any more after a failure.
    fn check(&self) -> Result<(), StoreError> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(failure.error.clone()))
    }

    /// Waits for an answer, behind those of the statements that were sent before.
    async fn wait<T>(&mut self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, StoreError> {
        let mut answer = pin!(answer);
        let sent = poll_once(&mut answer).await;
        if let Err(failure) = self.pipeline.settle(0).await {
            return Err(self.fail(failure));
        }
        let answer = match sent {
            Some(done) => done,
            None => answer.await,
        };
        answer.map_err(|error| self.fail(Failure::of(&error)))
    }

    async fn statement(&mut self, sql: &str) -> Result<Statement, StoreError> {
        self.check()?;
        let connection = self.connection;
        match connection.prepared(sql) {
            Some(statement) => Ok(statement),
            None => self.wait(connection.prepare(sql)).await,
        }
    }

    /// Only queries are for read jobs. The server refuses those that write.
    fn writable(&self) -> Result<(), StoreError> {
        match self.access {
            Access::Write => Ok(()),
            Access::Read => Err(StoreError::Internal("a read job tried to write".to_owned())),
        }
    }
}

#[async_trait]
impl Sql for PostgresTransaction<'_> {
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.writable()?;
        let arguments = arguments(params, self.vault)?;
        let statement = self.statement(sql).await?;
        let connection = self.connection;
        self.wait(connection.client.execute_raw(&statement, arguments)).await
    }

    async fn pipeline(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        table: Option<&'static str>,
    ) -> Result<(), StoreError> {
        self.writable()?;
        let arguments = arguments(params, self.vault)?;
        let statement = self.statement(sql).await?;
        let connection = self.connection;
        let changed = Box::pin(async move { connection.client.execute_raw(&statement, arguments).await });
        self.pipeline.add(changed, table).await;
        self.pipeline.settle(MAX_PIPELINED).await.map_err(|failure| self.fail(failure))
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError> {
        let arguments = arguments(params, self.vault)?;
        let statement = self.statement(sql).await?;
        let connection = self.connection;
        let mut rows = pin!(self.wait(connection.client.query_raw(&statement, arguments)).await?);
        let mut read = Ok(());
        // To the end, whatever a row holds: the server may still have something to say.
        while let Some(row) = rows.try_next().await.map_err(|error| self.fail(Failure::of(&error)))? {
            if read.is_ok() {
                read = each(&Received { row: &row, vault: self.vault });
            }
        }
        read
    }
}
