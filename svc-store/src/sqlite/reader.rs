//! A reader thread: all waiting jobs share one short read transaction. The jobs are taken before the
//! transaction begins, so each sees every write that was acknowledged before it was asked for.

use svc_core::error::StoreError;
use svc_core::store::Access;

use super::connection::Connection;
use super::connection_pool::ConnectionPool;
use super::queue::Queue;
use super::{Context, QueuedWork, fail_all};

/// Jobs of one read transaction at most, so that a snapshot stays short.
const MAX_GROUP: usize = 64;

pub(super) fn run(pool: &ConnectionPool, number: usize, queue: &Queue, context: &Context) {
    while let Some(mut group) = queue.wait(MAX_GROUP) {
        let begun = pool.read(number, |connection| begin_and_serve(connection, &mut group, context));
        if let Err(error) = begun.and_then(|begun| begun) {
            fail_all(group, &error);
        }
    }
}

fn begin_and_serve(
    connection: &mut Connection,
    group: &mut Vec<QueuedWork>,
    context: &Context,
) -> Result<(), StoreError> {
    connection.batch("BEGIN")?;
    context.report_group(Access::Read, group.len());
    for QueuedWork { name, job, answer } in group.drain(..) {
        // Whoever stopped waiting needs no answer.
        if !answer.is_closed() {
            let result = connection.run(name, &job, context);
            // Jobs hold handles of the store, which should go before those who wait go on.
            drop(job);
            let _ = answer.send(result);
        }
    }
    if let Err(error) = connection.batch("COMMIT") {
        tracing::warn!(%error, "a read transaction did not end");
        let _ = connection.batch("ROLLBACK");
    }
    Ok(())
}
