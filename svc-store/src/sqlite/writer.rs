//! The writer thread: group commit. Every waiting job becomes a savepoint of one transaction, and all are
//! answered after its one durable commit. A job that fails undoes its own savepoint only.

use svc_core::error::Error;
use svc_core::store::{Access, StoreError};
use tokio::sync::oneshot;

use super::connection::Connection;
use super::queue::Queue;
use super::{Context, Waiting};

/// Jobs of one commit at most: bounds how long the first of them waits.
const GROUP: usize = 256;

/// What a job came to, until its commit decides whether that is so.
type Done = (oneshot::Sender<Result<(), Error>>, Result<(), Error>);

pub(super) fn run(mut connection: Connection, queue: &Queue, context: &Context) {
    while let Some(first) = queue.wait(GROUP) {
        let mut done: Vec<Done> = Vec::with_capacity(first.len());
        let mut group = first;
        let mut outgoing = false;
        while !group.is_empty() {
            // The lock is waited for once per group: one wait after the other would add up.
            if let Err(why) = begin(&mut connection) {
                done.extend(group.into_iter().map(|waiting| (waiting.answer, Err(why.clone().into()))));
                break;
            }
            for Waiting { name, job, answer } in group {
                let result = begin(&mut connection).map_err(Error::from).and_then(|()| {
                    connection.batch("SAVEPOINT job")?;
                    let result = connection.run(name, &job, context);
                    connection.batch(if result.is_ok() { "RELEASE job" } else { "ROLLBACK TO job; RELEASE job" })?;
                    result
                });
                outgoing |= context.outgoing.unmark() && result.is_ok();
                done.push((answer, result));
                // A full disk or a failed write can make SQLite undo the whole transaction at once.
                if !connection.in_transaction() {
                    lose(&mut done, &StoreError::Unavailable("the transaction was rolled back".to_owned()));
                }
            }
            // Those that came in the meantime join this commit.
            group = queue.poll(GROUP.saturating_sub(done.len()));
        }
        if connection.in_transaction()
            && let Err(why) = connection.batch("COMMIT")
        {
            tracing::error!(%why, jobs = done.len(), "a commit failed");
            let _ = connection.batch("ROLLBACK");
            lose(&mut done, &why);
        }
        if outgoing {
            context.outgoing.release();
        }
        context.tell_group(Access::Write, done.len());
        for (answer, result) in done {
            let _ = answer.send(result);
        }
    }
}

fn begin(connection: &mut Connection) -> Result<(), StoreError> {
    if connection.in_transaction() { Ok(()) } else { connection.batch("BEGIN IMMEDIATE") }
}

/// What seemed done is not, for this reason.
fn lose(done: &mut [Done], why: &StoreError) {
    for (_, result) in done.iter_mut().filter(|(_, result)| result.is_ok()) {
        *result = Err(why.clone().into());
    }
}
