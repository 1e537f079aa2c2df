//! A reader thread: all waiting jobs share one short read transaction. The jobs are taken before the
//! transaction begins, so each sees every write that was acknowledged before it was asked for.

use svc_core::store::{Access, StoreError};

use super::connection::Connection;
use super::queue::Queue;
use super::{Context, Waiting};

/// Jobs of one read transaction at most, so that a snapshot stays short.
const GROUP: usize = 64;

pub(super) fn run(mut connection: Connection, queue: &Queue, context: &Context) {
    while let Some(group) = queue.wait(GROUP) {
        if let Err(why) = connection.batch("BEGIN") {
            refuse(group, &why);
            continue;
        }
        context.tell_group(Access::Read, group.len());
        for Waiting { name, job, answer } in group {
            // Whoever stopped waiting needs no answer.
            if !answer.is_closed() {
                let result = connection.run(name, &job, context);
                // Jobs hold handles of the store, which should go before those who wait go on.
                drop(job);
                let _ = answer.send(result);
            }
        }
        if let Err(why) = connection.batch("COMMIT") {
            tracing::warn!(%why, "a read transaction did not end");
            let _ = connection.batch("ROLLBACK");
        }
    }
}

fn refuse(group: Vec<Waiting>, why: &StoreError) {
    for waiting in group {
        let _ = waiting.answer.send(Err(why.clone().into()));
    }
}
