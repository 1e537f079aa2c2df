//! A reader thread: all queued reads share one short read transaction.
//!
//! The reads are taken from the queue before the transaction begins, so each one sees every write that was acknowledged
//! before the read was requested.

use svc_core::error::Error;
use svc_core::store::{Access, StoreResult, UnitOfWork};

use super::connection::SqliteConnection;
use super::connection_pool::ConnectionPool;
use super::{Queue, QueuedWork, fail_all};
use crate::sql::StoreContext;

/// The most reads in one transaction, so that snapshots stay short.
const MAX_GROUP: usize = 64;

pub(super) fn run(pool: &ConnectionPool, number: usize, queue: &Queue, context: &StoreContext) {
    while let Some(mut group) = queue.wait(MAX_GROUP) {
        let begun = pool.read(number, |connection| begin_and_serve(connection, &mut group, context));
        if let Err(error) = begun.and_then(|begun| begun) {
            fail_all(group, &error);
        }
    }
}

fn begin_and_serve(
    connection: &mut SqliteConnection,
    group: &mut Vec<QueuedWork>,
    context: &StoreContext,
) -> StoreResult<()> {
    begin(connection, group.len(), context)?;
    for QueuedWork { name, work, result_sender } in group.drain(..) {
        // A read is skipped when its caller has stopped waiting.
        if !result_sender.is_closed() {
            let result = connection.run(name, &work, context, None);
            // The closure may hold a handle of the store, which must be dropped before the caller continues.
            drop(work);
            let _ = result_sender.send(result);
        }
    }
    end(connection);
    Ok(())
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
