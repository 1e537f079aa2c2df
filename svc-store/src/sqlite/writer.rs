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

use super::connection::{Connection, Failed};
use super::connection_pool::ConnectionPool;
use super::queue::Queue;
use super::{Context, Waiting, refuse};

/// Jobs of one commit at most: bounds how long the first of them waits.
const GROUP: usize = 256;
/// Pages in the log from which on checkpoints are made: 16 MB. What was written often meanwhile is copied once; a longer
/// log would make the commits that wait for the copy wait longer.
const LOG: i64 = 4000;

/// What a job came to, until its commit decides whether that is so.
type Done = (oneshot::Sender<Result<(), Error>>, Result<(), Error>);

pub(super) fn run(connection: Connection, pool: &ConnectionPool, queue: &Queue, context: &Context) {
    let mut writer =
        Writer { connection: Some(connection), pool, is_sound: true, is_settled: false, checkpoint_at: LOG };
    while let Some(group) = queue.wait(GROUP) {
        let done = match writer.ready() {
            Ok(ready) => commit(ready, group, queue, context),
            Err(error) => {
                refuse(group, &error);
                continue;
            }
        };
        context.report_group(Access::Write, done.len());
        for (answer, result) in done {
            let _ = answer.send(result);
        }
        writer.keep_log_short();
    }
}

struct Writer<'a> {
    /// `None` when it could not be opened again.
    connection: Option<Connection>,
    pool: &'a ConnectionPool,
    /// Whether the last commit has reached the disk.
    is_sound: bool,
    /// Whether the log that was found at the opening has.
    is_settled: bool,
    /// The length of the log at which it is tried to shorten it.
    checkpoint_at: i64,
}

impl Writer<'_> {
    /// A connection on which a transaction may begin.
    fn ready(&mut self) -> Result<Ready<'_>, StoreError> {
        let connection = match &mut self.connection {
            Some(connection) => connection,
            none => none.insert(self.pool.open()?),
        };
        let mut ready = Ready { connection, is_sound: &mut self.is_sound };
        if !*ready.is_sound {
            ready.probe().map_err(|failed| failed.error)?;
        }
        if !self.is_settled {
            self.pool.settle(ready.connection)?;
            self.is_settled = true;
        }
        Ok(ready)
    }

    fn keep_log_short(&mut self) {
        let Some(connection) = self.connection.as_ref().filter(|_| self.is_sound) else { return };
        let Ok(length) = connection.log_length() else { return };
        if length < self.checkpoint_at {
            if length < LOG {
                self.checkpoint_at = LOG;
            }
            return;
        }
        let Err(failed) = connection.checkpoint() else { return };
        tracing::error!(error = %failed.error, pages = length, "a checkpoint failed; the log grows");
        self.checkpoint_at = length + LOG;
        if failed.is_fsync()
            && let Some(connection) = self.connection.take()
        {
            self.is_settled = false;
            match self.pool.reopen(connection) {
                Ok(connection) => self.connection = Some(connection),
                Err(reason) => tracing::error!(error = %reason, "the file cannot be opened again"),
            }
        }
    }
}

/// The connection of the writer while a group has it.
struct Ready<'a> {
    connection: &'a mut Connection,
    is_sound: &'a mut bool,
}

impl Ready<'_> {
    fn begin(&self) -> Result<(), StoreError> {
        if self.connection.in_transaction() { Ok(()) } else { self.connection.batch("BEGIN IMMEDIATE") }
    }

    fn run(&mut self, waiting: &Waiting, context: &Context) -> Result<(), Error> {
        self.begin()?;
        self.connection.batch("SAVEPOINT job")?;
        let result = self.connection.run(waiting.name, &waiting.job, context);
        let ended = self.connection.batch(if result.is_ok() { "RELEASE job" } else { "ROLLBACK TO job; RELEASE job" });
        if let Err(error) = ended {
            // Otherwise what is left of it would be committed with the others.
            let _ = self.connection.batch("ROLLBACK");
            return Err(error.into());
        }
        result
    }

    fn probe(&mut self) -> Result<(), Failed> {
        self.connection.probe()?;
        *self.is_sound = true;
        Ok(())
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        let Err(failed) = self.connection.commit() else { return Ok(()) };
        let _ = self.connection.batch("ROLLBACK");
        *self.is_sound = false;
        let is_undone = match self.probe() {
            Ok(()) => true,
            Err(probe) => failed.is_cut_short() || probe.is_fsync(),
        };
        Err(if is_undone { failed.error } else { StoreError::OutcomeUnknown(failed.error.to_string()) })
    }
}

/// Runs a group, and those that come in the meantime.
fn commit(mut ready: Ready<'_>, first: Vec<Waiting>, queue: &Queue, context: &Context) -> Vec<Done> {
    let mut done: Vec<Done> = Vec::with_capacity(first.len());
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
                lose(&mut done, &StoreError::Unavailable("the transaction was rolled back".to_owned()));
            }
        }
        // Those that came in the meantime join this commit.
        group = queue.poll(GROUP.saturating_sub(done.len()));
    }
    if ready.connection.in_transaction()
        && let Err(reason) = ready.commit()
    {
        tracing::error!(error = %reason, jobs = done.len(), "a commit failed");
        lose(&mut done, &reason);
    }
    if delivery_wakeup {
        context.delivery_wakeup.notify();
    }
    done
}

/// What seemed done is not, for this reason.
fn lose(done: &mut [Done], error: &StoreError) {
    for (_, result) in done.iter_mut().filter(|(_, result)| result.is_ok()) {
        *result = Err(error.clone().into());
    }
}
