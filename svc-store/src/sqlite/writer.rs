//! The writer thread, which commits in groups.
//!
//! Queued units of work share one transaction, and all of them complete after its durable commit.
//!
//! # Failures of units of work
//!
//! There are no savepoints at first, since SQLite copies each page that is changed in one: most errors, such as a 404 or a 409,
//! come before the first change. When a unit of work fails after a change, the transaction is rolled back. Those that succeeded
//! before run again, and from then on each unit of work of the group is a savepoint, of which one that fails rolls back its own
//! only.
//!
//! # Disk failures
//!
//! When fsync fails, the pages that it should have written can still be read from the cache of the operating system, but no
//! later fsync writes them unless they are written again. This has four consequences:
//!
//! - A commit whose fsync failed is rolled back, but it is complete in the write-ahead log, after the last commit. A process
//!   that opens the file after a crash would take it for a commit. So an empty transaction is written in its place before
//!   its units of work fail, and no other transaction begins until an empty transaction is on the disk.
//! - A checkpoint that does not reach the end of the log, beside commits or because of a reader, counts its pages as written,
//!   and leaves the fsync to the next checkpoint, which does not write those pages again. So when that fsync fails, all
//!   connections are closed and opened again. SQLite then reads the log from its beginning, and the next checkpoint writes all
//!   of it.
//! - The checkpointer thread syncs the log as well, and may be the one whose fsync fails on the pages of a commit. Linux reports
//!   such a failure once to each open file, so the fsync of the commit fails too.
//! - The log that is read when the file is opened may not be on the disk, and later commits would depend on it. So the
//!   log is rewritten before the first commit.

use svc_core::error::{Error, StoreError};
use svc_core::store::{Access, StoreResult};

use super::checkpointer::{Checkpointer, Progress};
use super::connection::{DurabilityError, SqliteConnection};
use super::connection_pool::ConnectionPool;
use super::{Queue, QueuedWork, fail_all};
use crate::locked_tenants::LockedTenants;
use crate::sql::StoreContext;
use crate::vault::Vault;

/// The most units of work in one commit. It limits how long the first of them waits.
const MAX_GROUP: usize = 256;
/// The number of pages in the write-ahead log from which on checkpoints are made: 32 MB. A page that was written several times
/// is copied once, so checkpoints should be rare.
pub(super) const CHECKPOINT_PAGES: i64 = 8000;
/// How many checkpoints are made beside commits before one between two commits, for which the next commit waits. With more of
/// them it has less to do.
const CONCURRENT_CHECKPOINTS: u32 = 4;

/// A unit of work that has run, with its result, which is final after the commit.
type Completed = (QueuedWork, Result<(), Error>);

pub(super) fn run(
    connection: SqliteConnection,
    pool: &ConnectionPool,
    checkpointer: Checkpointer,
    queue: &Queue,
    context: &StoreContext,
) {
    let mut writer = Writer {
        connection: Some(connection),
        pool,
        checkpointer,
        checkpoints: 0,
        last_commit_is_durable: true,
        log_is_durable: false,
        checkpoint_at: CHECKPOINT_PAGES,
    };
    while let Some(group) = queue.wait(MAX_GROUP) {
        let completed = match writer.prepare() {
            Ok(transaction) => commit(transaction, group, queue, context),
            Err(error) => {
                fail_all(group, &error);
                continue;
            }
        };
        context.report_group(Access::Write, completed.len());
        for (queued, result) in completed {
            queued.complete(result);
        }
        writer.checkpoint_if_due();
    }
}

struct Writer<'a> {
    /// `None` when it could not be opened again after a disk failure.
    connection: Option<SqliteConnection>,
    pool: &'a ConnectionPool,
    checkpointer: Checkpointer,
    /// How many checkpoints were made beside commits since the log was last short.
    checkpoints: u32,
    /// Whether the last commit is on the disk.
    last_commit_is_durable: bool,
    /// Whether the write-ahead log that was found when the file was opened is on the disk.
    log_is_durable: bool,
    /// The number of pages in the log at which the next checkpoint is made.
    checkpoint_at: i64,
}

impl Writer<'_> {
    /// Makes sure that a transaction may begin: there is a connection, and the last commit and the log are on the disk.
    fn prepare(&mut self) -> StoreResult<GroupTransaction<'_>> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.pool.open()?),
        };
        let last_commit_is_durable = &mut self.last_commit_is_durable;
        let mut transaction = GroupTransaction {
            connection,
            last_commit_is_durable,
            locked: LockedTenants::default(),
            has_savepoints: false,
            locked_out: None,
        };
        if !*transaction.last_commit_is_durable {
            transaction.write_empty_transaction().map_err(|failure| failure.error)?;
        }
        if !self.log_is_durable {
            self.pool.rewrite_log(transaction.connection)?;
            self.log_is_durable = true;
        }
        Ok(transaction)
    }

    fn checkpoint_if_due(&mut self) {
        let Some(connection) = self.connection.as_ref().filter(|_| self.last_commit_is_durable) else { return };
        let Ok(length) = connection.wal_pages() else { return };
        match self.checkpointer.progress() {
            Progress::Running => return,
            Progress::Failed(failure) => return self.checkpoint_failed(&failure, length),
            Progress::Idle => {}
        }
        if length < CHECKPOINT_PAGES {
            (self.checkpoint_at, self.checkpoints) = (CHECKPOINT_PAGES, 0);
        }
        if length < self.checkpoint_at {
            return;
        }
        if self.checkpoints < CONCURRENT_CHECKPOINTS {
            self.checkpoints += 1;
            return self.checkpointer.begin();
        }
        self.checkpoints = 0;
        if let Err(failure) = connection.checkpoint() {
            self.checkpoint_failed(&failure, length);
        }
    }

    fn checkpoint_failed(&mut self, failure: &DurabilityError, length: i64) {
        tracing::error!(error = %failure.error, pages = length, "a checkpoint failed; the write-ahead log grows");
        self.checkpoint_at = length + CHECKPOINT_PAGES;
        if failure.is_failed_fsync()
            && let Some(connection) = self.connection.take()
        {
            self.log_is_durable = false;
            match self.pool.reopen(connection) {
                Ok(connection) => self.connection = Some(connection),
                Err(error) => {
                    tracing::error!(%error, "cannot reopen the database file; writes fail until it can be opened")
                }
            }
        }
    }
}

/// The transaction of a group, on the connection of the writer.
struct GroupTransaction<'a> {
    connection: &'a mut SqliteConnection,
    last_commit_is_durable: &'a mut bool,
    locked: LockedTenants,
    /// Whether each unit of work is a savepoint.
    has_savepoints: bool,
    /// Why the lock could not be taken. There is no second attempt, as one timeout for each unit of work would add up.
    locked_out: Option<StoreError>,
}

impl GroupTransaction<'_> {
    fn begin(&mut self) -> StoreResult<()> {
        if self.connection.in_transaction() {
            return Ok(());
        }
        if let Some(error) = &self.locked_out {
            return Err(error.clone());
        }
        self.locked = LockedTenants::default();
        self.connection.batch("BEGIN IMMEDIATE").inspect_err(|error| self.locked_out = Some(error.clone()))
    }

    /// Runs a unit of work. One that fails leaves no change, and if it has made some without a savepoint, none of the others.
    fn run(&mut self, queued: &QueuedWork, context: &StoreContext) -> Result<(), Error> {
        self.begin()?;
        if self.has_savepoints {
            self.connection.batch("SAVEPOINT unit")?;
        }
        self.locked.begin_unit();
        let changes = self.connection.raw().total_changes();
        let result = self.connection.run(queued.name, &queued.work, context, Some(&mut self.locked));
        if result.is_err() {
            self.locked.roll_back_unit();
        }
        let ended = match (&result, self.has_savepoints) {
            (Ok(()), true) => "RELEASE unit",
            (Err(_), true) => "ROLLBACK TO unit; RELEASE unit",
            (Err(_), false) if self.connection.raw().total_changes() != changes => "ROLLBACK",
            _ => return result,
        };
        if let Err(error) = self.connection.batch(ended) {
            // Otherwise the changes of the failed unit of work would be committed with the rest of the group.
            let _ = self.connection.batch("ROLLBACK");
            return Err(error.into());
        }
        result
    }

    /// Runs the units of work that have succeeded again, each as a savepoint, after the transaction was rolled back.
    fn run_again(&mut self, completed: &mut [Completed], context: &StoreContext) {
        self.has_savepoints = true;
        for (queued, result) in completed.iter_mut().filter(|(_, result)| result.is_ok()) {
            *result = self.run(queued, context);
            if !self.connection.in_transaction() {
                return fail_completed(completed, &rolled_back());
            }
        }
    }

    fn write_empty_transaction(&mut self) -> Result<(), DurabilityError> {
        self.connection.write_empty_transaction()?;
        *self.last_commit_is_durable = true;
        Ok(())
    }

    fn commit(&mut self, vault: &Vault) -> StoreResult<()> {
        if let Err(error) = self.connection.store_clocks(vault, &mut self.locked) {
            let _ = self.connection.batch("ROLLBACK");
            return Err(error);
        }
        let Err(failure) = self.connection.commit() else { return Ok(()) };
        let _ = self.connection.batch("ROLLBACK");
        *self.last_commit_is_durable = false;
        let is_rolled_back = match self.write_empty_transaction() {
            Ok(()) => true,
            Err(second_failure) => failure.is_incomplete_write() || second_failure.is_failed_fsync(),
        };
        Err(if is_rolled_back { failure.error } else { StoreError::OutcomeUnknown(failure.error.to_string()) })
    }
}

/// Runs and commits a group, and the units of work that are queued in the meantime. Returns all of them.
fn commit(
    mut transaction: GroupTransaction<'_>,
    first: Vec<QueuedWork>,
    queue: &Queue,
    context: &StoreContext,
) -> Vec<Completed> {
    let mut completed: Vec<Completed> = Vec::with_capacity(first.len());
    let mut group = first;
    let mut has_due_deliveries = false;
    while !group.is_empty() {
        for queued in group {
            let result = transaction.run(&queued, context);
            has_due_deliveries |= context.delivery_wakeup.take_mark() && result.is_ok();
            completed.push((queued, result));
            if transaction.connection.in_transaction() {
                continue;
            }
            if transaction.has_savepoints {
                // SQLite rolls back the whole transaction after some errors, such as a full disk or a failed write.
                fail_completed(&mut completed, &rolled_back());
            } else {
                transaction.run_again(&mut completed, context);
            }
        }
        if transaction.locked_out.is_some() {
            break;
        }
        // Units of work that were queued in the meantime join this commit.
        group = queue.try_take(MAX_GROUP.saturating_sub(completed.len()));
    }
    if transaction.connection.in_transaction()
        && let Err(error) = transaction.commit(&context.vault)
    {
        tracing::error!(%error, units = completed.len(), "a commit failed");
        fail_completed(&mut completed, &error);
    }
    if has_due_deliveries {
        context.delivery_wakeup.notify();
    }
    completed
}

fn rolled_back() -> StoreError {
    StoreError::Unavailable("the transaction was rolled back".to_owned())
}

/// Replaces the result of each unit of work that had succeeded, because the transaction was not committed.
fn fail_completed(completed: &mut [Completed], error: &StoreError) {
    for (_, result) in completed.iter_mut().filter(|(_, result)| result.is_ok()) {
        *result = Err(error.clone().into());
    }
}
