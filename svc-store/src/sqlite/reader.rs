//! A reader thread: all queued reads share one short read transaction.
//!
//! The reads are taken from the queue before the transaction begins, so each one sees every write that was acknowledged
//! before the read was requested. A read that takes long runs again on the thread of a slow reader.

use std::sync::Arc;

use svc_core::error::{Error, StoreError};
use svc_core::store::{Access, StoreResult, UnitOfWork};

use super::connection::SqliteConnection;
use super::connection_pool::ConnectionPool;
use super::{Queue, QueuedWork, fail_all};
use crate::slow_reads::{ReadTimes, RunningRead, SlowReads, too_many, too_slow};
use crate::sql::StoreContext;

/// The most reads in one transaction, so that snapshots stay short.
const MAX_GROUP: usize = 64;

/// The state that the threads that read have in common.
pub(super) struct Readers {
    pub(super) pool: Arc<ConnectionPool>,
    pub(super) queue: Arc<Queue>,
    pub(super) slow: Arc<SlowReads<QueuedWork>>,
    pub(super) times: ReadTimes,
    pub(super) context: Arc<StoreContext>,
}

/// Runs reads of all accounts, each for a short time.
pub(super) fn run(readers: &Readers, number: usize) {
    while let Some(mut group) = readers.queue.wait(MAX_GROUP) {
        let begun = readers.pool.read(number, |connection| begin_and_serve(connection, &mut group, readers));
        if let Err(error) = begun.and_then(|begun| begun) {
            fail_all(group, &error);
        }
    }
    readers.slow.reader_ended();
}

fn begin_and_serve(
    connection: &mut SqliteConnection,
    group: &mut Vec<QueuedWork>,
    readers: &Readers,
) -> StoreResult<()> {
    begin(connection, group.len(), &readers.context)?;
    for queued in group.drain(..) {
        // A read is skipped when its caller has stopped waiting.
        if queued.is_abandoned() {
            continue;
        }
        let mut read = RunningRead::new(queued.name, Some(&*readers.slow));
        let (result, is_late) = connection.run_read(&mut read, &queued, readers.times.shared, &readers.context);
        if read.is_postponed || is_late {
            let (account, name) = (read.account, queued.name);
            if let Err(queued) = readers.slow.add(account, name, queued) {
                queued.complete(Err(too_many(name).into()));
            }
        } else {
            queued.complete(result);
        }
    }
    end(connection);
    Ok(())
}

/// Runs slow reads, each in a transaction of its own.
pub(super) fn run_slow(readers: &Readers, number: usize) {
    while let Some(slow) = readers.slow.next() {
        let (account, name) = (slow.account, slow.name);
        if slow.is_late(&readers.times) {
            slow.work.complete(Err(too_slow(name).into()));
        } else if !slow.work.is_abandoned() {
            let time = readers.times.of(account);
            let read = |connection: &mut SqliteConnection| {
                begin(connection, 1, &readers.context)?;
                let read = &mut RunningRead::new(name, None);
                let (result, is_late) = connection.run_read(read, &slow.work, time, &readers.context);
                end(connection);
                Ok(if is_late { Err(too_slow(name).into()) } else { result })
            };
            let result = readers.pool.read(number, read).and_then(|result| result);
            slow.work.complete(result.unwrap_or_else(|error: StoreError| Err(error.into())));
        }
        readers.slow.end(account);
    }
}

/// Runs a read in a transaction of its own.
pub(super) fn run_alone(
    connection: &mut SqliteConnection,
    name: &'static str,
    work: &UnitOfWork,
    context: &StoreContext,
) -> Result<(), Error> {
    begin(connection, 1, context)?;
    let result = connection.run(name, work, context, None);
    end(connection);
    result
}

fn begin(connection: &mut SqliteConnection, units: usize, context: &StoreContext) -> StoreResult<()> {
    connection.batch("BEGIN")?;
    context.report_group(Access::Read, units);
    Ok(())
}

fn end(connection: &mut SqliteConnection) {
    if let Err(error) = connection.batch("COMMIT") {
        tracing::warn!(%error, "cannot end a read transaction");
        let _ = connection.batch("ROLLBACK");
    }
}
