//! The writer thread: group commit. Every waiting job becomes a savepoint of one transaction, and all are
//! answered after its one durable commit. A job that fails undoes its own savepoint only.
//!
//! **When the disk fails.** Pages that a failing fsync should have written stay readable, but no later fsync writes
//! them unless they are written anew.
//!
//! - A commit whose fsync fails is undone, but lies whole in the log, behind the last commit: whoever opened the file
//!   after a kill would take it for one. So an empty transaction is written in its place before its jobs are refused,
//!   and nothing else is begun until one has reached the disk.
//! - A checkpoint that readers cut short counts what it wrote as written, and leaves the fsync to the next one, which
//!   does not write it anew. So when that fsync fails, all connections are closed and opened again, which makes
//!   SQLite read the log from its beginning, and the next checkpoint writes all of it.
//! - What was read from the log at an opening may never have reached the disk, and later commits would hang on it. So
//!   before the first of them the log is written anew.

use svc_core::error::{Error, StoreError};
use svc_core::store::Access;
use tokio::sync::oneshot;

use super::connection::{Connection, DurabilityError};
use super::connection_pool::ConnectionPool;
use super::queue::Queue;
use super::{Context, QueuedWork, fail_all};

/// Jobs of one commit at most: bounds how long the first of them waits.
const MAX_GROUP: usize = 256;
/// Pages in the log from which on checkpoints are made: 16 MB. What was written often meanwhile is copied once; a longer
/// log would make the commits that wait for the copy wait longer.
const CHECKPOINT_PAGES: i64 = 4000;

/// What a job came to, until its commit decides whether that is so.
type Completed = (oneshot::Sender<Result<(), Error>>, Result<(), Error>);

pub(super) fn run(connection: Connection, pool: &ConnectionPool, queue: &Queue, context: &Context) {
    let mut writer = Writer {
        connection: Some(connection),
        pool,
        last_commit_is_durable: true,
        log_is_durable: false,
        checkpoint_at: CHECKPOINT_PAGES,
    };
    while let Some(group) = queue.wait(MAX_GROUP) {
        let done = match writer.ready() {
            Ok(ready) => commit(ready, group, queue, context),
            Err(error) => {
                fail_all(group, &error);
                continue;
            }
        };
        context.report_group(Access::Write, done.len());
        for (answer, result) in done {
            let _ = answer.send(result);
        }
        writer.checkpoint_if_due();
    }
}

struct Writer<'a> {
    /// `None` when it could not be opened again.
    connection: Option<Connection>,
    pool: &'a ConnectionPool,
    /// Whether the last commit has reached the disk.
    last_commit_is_durable: bool,
    /// Whether the log that was found at the opening has.
    log_is_durable: bool,
    /// The length of the log at which it is tried to shorten it.
    checkpoint_at: i64,
}

impl Writer<'_> {
    /// A connection on which a transaction may begin.
    fn ready(&mut self) -> Result<GroupTransaction<'_>, StoreError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.pool.open()?),
        };
        let mut ready = GroupTransaction { connection, last_commit_is_durable: &mut self.last_commit_is_durable };
        if !*ready.last_commit_is_durable {
            ready.write_empty_transaction().map_err(|failed| failed.error)?;
        }
        if !self.log_is_durable {
            self.pool.rewrite_log(ready.connection)?;
            self.log_is_durable = true;
        }
        Ok(ready)
    }

    fn checkpoint_if_due(&mut self) {
        let Some(connection) = self.connection.as_ref().filter(|_| self.last_commit_is_durable) else { return };
        let Ok(length) = connection.wal_pages() else { return };
        if length < self.checkpoint_at {
            if length < CHECKPOINT_PAGES {
                self.checkpoint_at = CHECKPOINT_PAGES;
            }
            return;
        }
        let Err(failed) = connection.checkpoint() else { return };
        tracing::error!(error = %failed.error, pages = length, "a checkpoint failed; the log grows");
        self.checkpoint_at = length + CHECKPOINT_PAGES;
        if failed.is_failed_fsync()
            && let Some(connection) = self.connection.take()
        {
            self.log_is_durable = false;
            match self.pool.reopen(connection) {
                Ok(connection) => self.connection = Some(connection),
                Err(reason) => tracing::error!(error = %reason, "the file cannot be opened again"),
            }
        }
    }
}

/// The connection of the writer while a group has it.
struct GroupTransaction<'a> {
    connection: &'a mut Connection,
    last_commit_is_durable: &'a mut bool,
}

impl GroupTransaction<'_> {
    fn begin(&self) -> Result<(), StoreError> {
        if self.connection.in_transaction() { Ok(()) } else { self.connection.batch("BEGIN IMMEDIATE") }
    }

    fn run(&mut self, waiting: &QueuedWork, context: &Context) -> Result<(), Error> {
        self.begin()?;
        self.connection.batch("SAVEPOINT unit")?;
        let result = self.connection.run(waiting.name, &waiting.job, context);
        let ended =
            self.connection.batch(if result.is_ok() { "RELEASE unit" } else { "ROLLBACK TO unit; RELEASE unit" });
        if let Err(error) = ended {
            // Otherwise what is left of it would be committed with the others.
            let _ = self.connection.batch("ROLLBACK");
            return Err(error.into());
        }
        result
    }

    fn write_empty_transaction(&mut self) -> Result<(), DurabilityError> {
        self.connection.write_empty_transaction()?;
        *self.last_commit_is_durable = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let Err(failed) = self.connection.commit() else { return Ok(()) };
        let _ = self.connection.batch("ROLLBACK");
        *self.last_commit_is_durable = false;
        let is_undone = match self.write_empty_transaction() {
            Ok(()) => true,
            Err(write_empty_transaction) => failed.is_incomplete_write() || write_empty_transaction.is_failed_fsync(),
        };
        Err(if is_undone { failed.error } else { StoreError::OutcomeUnknown(failed.error.to_string()) })
    }
}

/// Runs a group, and those that come in the meantime.
fn commit(mut ready: GroupTransaction<'_>, first: Vec<QueuedWork>, queue: &Queue, context: &Context) -> Vec<Completed> {
    let mut done: Vec<Completed> = Vec::with_capacity(first.len());
    let mut group = first;
    let mut delivery_wakeup = false;
    while !group.is_empty() {
        // The lock is waited for once per group: one wait after the other would add up.
        if let Err(reason) = ready.begin() {
            done.extend(group.into_iter().map(|waiting| (waiting.answer, Err(reason.clone().into()))));
            break;
        }
        for waiting in group {
            let result = ready.run(&waiting, context);
            delivery_wakeup |= context.delivery_wakeup.take_mark() && result.is_ok();
            done.push((waiting.answer, result));
            // A full disk or a failed write can make SQLite undo the whole transaction at once.
            if !ready.connection.in_transaction() {
                fail_completed(&mut done, &StoreError::Unavailable("the transaction was rolled back".to_owned()));
            }
        }
        // Those that came in the meantime join this commit.
        group = queue.poll(MAX_GROUP.saturating_sub(done.len()));
    }
    if ready.connection.in_transaction()
        && let Err(reason) = ready.commit()
    {
        tracing::error!(error = %reason, jobs = done.len(), "a commit failed");
        fail_completed(&mut done, &reason);
    }
    if delivery_wakeup {
        context.delivery_wakeup.notify();
    }
    done
}

/// What seemed done is not, for this reason.
fn fail_completed(done: &mut [Completed], error: &StoreError) {
    for (_, result) in done.iter_mut().filter(|(_, result)| result.is_ok()) {
        *result = Err(error.clone().into());
    }
}
