//! A read task: all waiting jobs run at once on one connection, in one REPEATABLE READ transaction. The jobs are taken
//! before it begins, so each sees every write that was acknowledged before it was asked for.
//!
//! BEGIN travels with the first statements, the statements of all jobs travel together, and nobody waits for COMMIT;
//! so a GET takes one round trip for the look-up of its key and one for its row, whatever else is read meanwhile.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use svc_core::error::Error;
use svc_core::store::Access;
use svc_core::webhooks::deliveries::DeliveryWakeup;
use tokio::time::timeout;

use super::connection::Connection;
use super::failure::Failure;
use super::queue::QueuedWork;
use super::transaction::{BEGIN_READ, Pipeline, PostgresTransaction};
use super::{Shared, unit_of_work};

/// Jobs of one read transaction at most, so that a snapshot stays short.
const MAX_GROUP: usize = 64;

pub(super) async fn run(shared: Arc<Shared>) {
    while let Some(connection) = shared.connection(Access::Read).await {
        if !serve(&connection, &shared).await {
            return;
        }
        connection.abort();
    }
}

/// Works until the connection is lost; `false` when there will be no more work.
async fn serve(connection: &Connection, shared: &Shared) -> bool {
    let mut pipeline = Pipeline::default();
    loop {
        tokio::select! {
            biased;
            () = connection.closed() => return true,
            filled = shared.reads.filled() => if !filled { return false },
        }
        if connection.is_closed() {
            return true;
        }
        let mut group = shared.reads.take(MAX_GROUP);
        // Whoever stopped waiting needs no answer.
        group.retain(|waiting| !waiting.is_abandoned());
        if group.is_empty() {
            continue;
        }
        shared.report_group(Access::Read, group.len());
        pipeline.send(connection, BEGIN_READ).await;
        let alone = group.len() == 1;
        let jobs = join_all(group.into_iter().map(|waiting| together(connection, shared, waiting)));
        // The jobs have a bound each; the rest is only what the server still owes.
        let (begun, left) = match timeout(unit_of_work::MAX_DURATION * 2, join(pipeline.finish(), jobs)).await {
            Ok(both) => both,
            Err(_) => return true,
        };
        // After an error this is a ROLLBACK. Its answer is awaited with the next BEGIN.
        pipeline.send(connection, "COMMIT").await;
        let mut usable = begun.is_ok();
        for (waiting, failure) in left.into_iter().flatten() {
            if failure.is_connection_lost() || !usable || connection.is_closed() {
                usable = false;
                shared.requeue(Access::Read, waiting, failure.error);
            } else if alone {
                waiting.answer(Err(failure.error.into()));
            } else {
                // Who spoilt the transaction for the others cannot be told; on its own each gets its own answer.
                usable = singly(connection, shared, waiting).await;
            }
        }
        if !usable {
            return true;
        }
    }
}

/// Runs and answers a job of a group, unless the transaction failed under it: then it is given back.
async fn together(connection: &Connection, shared: &Shared, waiting: QueuedWork) -> Option<(QueuedWork, Failure)> {
    let mut session = PostgresTransaction::joined(connection, &shared.vault, Access::Read);
    match read(connection, shared, &waiting, &mut session).await {
        Ok(result) => {
            waiting.answer(result);
            None
        }
        Err(failure) => Some((waiting, failure)),
    }
}

/// Runs and answers a job in a transaction of its own; `false` when the connection is of no more use.
async fn singly(connection: &Connection, shared: &Shared, waiting: QueuedWork) -> bool {
    let mut session = PostgresTransaction::begin(connection, &shared.vault, Access::Read).await;
    match read(connection, shared, &waiting, &mut session).await {
        Ok(result) => waiting.answer(result),
        Err(failure) if failure.is_connection_lost() => {
            shared.requeue(Access::Read, waiting, failure.error);
            return false;
        }
        Err(failure) => waiting.answer(Err(failure.error.into())),
    }
    session.roll_back().await.is_ok()
}

async fn read(
    connection: &Connection,
    shared: &Shared,
    waiting: &QueuedWork,
    session: &mut PostgresTransaction<'_>,
) -> Result<Result<(), Error>, Failure> {
    let delivery_wakeup = DeliveryWakeup::default();
    let reading = unit_of_work::run(waiting.name(), waiting.job(), session, shared, &delivery_wakeup);
    let result = match timeout(unit_of_work::MAX_DURATION, reading).await {
        Ok(result) => result,
        Err(_) => {
            connection.abort();
            return Ok(Err(unit_of_work::too_long(waiting.name()).into()));
        }
    };
    match session.failure() {
        // What the job made of a failure of the transaction does not count.
        Some(failure) => Err(failure.clone()),
        None => Ok(result),
    }
}
