//! A read task: it runs all queued reads concurrently on one connection, in one `REPEATABLE READ` transaction.
//!
//! The reads are taken from the queue before the transaction begins, so each one sees every write that was acknowledged
//! before the read was requested. A statement that takes long is ended by the server, and its read runs again on the connection of a
//! task for slow reads; so does a read of many statements that takes long with all of them. A read whose caller is gone ends at once.
//!
//! `BEGIN` is pipelined with the first statements, the statements of all reads are pipelined together, and nothing waits for
//! `COMMIT`. So `GET /contacts/{id}` takes two round trips, one to look up the API key and one to read the row, however
//! many other reads run at the same time.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use svc_core::error::{Error, StoreError};
use svc_core::store::Access;
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::DeliveryWakeup;
use tokio::time::timeout;

use super::Shared;
use super::connect_options::Role;
use super::connection::{Pipeline, PostgresConnection};
use super::failure::TransactionFailure;
use super::queue::QueuedWork;
use super::transaction::{BEGIN_READ, MAX_DURATION, PostgresTransaction, too_long};
use crate::slow_reads::too_slow;

/// The most reads in one transaction, so that snapshots stay short.
const MAX_GROUP: usize = 64;

/// How long a read may take with all of its statements on a connection that reads share, in times of one statement.
const SHARED_STATEMENTS: u32 = 4;

pub(super) async fn run(shared: Arc<Shared>) {
    while let Some(connection) = shared.connection(Access::Read).await {
        if !serve(&connection, &shared).await {
            break;
        }
        connection.abort();
    }
    shared.slow.reader_ended();
}

/// Runs slow reads, each in a transaction of its own.
pub(super) async fn run_slow(shared: Arc<Shared>) {
    let mut open: Option<PostgresConnection> = None;
    while let Some(slow) = shared.slow.wait_for_next().await {
        let (account, name) = (slow.account, slow.name);
        if slow.is_late(&shared.read_times) {
            slow.work.complete(Err(too_slow(name).into()));
        } else if !slow.work.is_abandoned() {
            let connected = match open.take().filter(|connection| !connection.is_closed()) {
                Some(connection) => Ok(connection),
                None => PostgresConnection::open(&shared.connect_options, Role::SlowRead).await,
            };
            match connected {
                Ok(connection) => {
                    if run_slow_read(&connection, &shared, account, slow.work).await {
                        open = Some(connection);
                    } else {
                        connection.abort();
                    }
                }
                Err(error) => slow.work.complete(Err(error.into())),
            }
        }
        shared.slow.end(account);
    }
}

/// Runs a slow read and completes it. Returns whether the connection can still be used.
async fn run_slow_read(
    connection: &PostgresConnection,
    shared: &Shared,
    account: Option<TenantId>,
    mut work: QueuedWork,
) -> bool {
    let name = work.name();
    // Not in the load of its server: a slow read holds its connection for long without a server that hangs.
    let mut transaction = PostgresTransaction::new(connection, &shared.context.vault, Access::Read);
    let result = {
        let (unit, abandoned) = work.work_and_abandonment();
        let delivery_wakeup = DeliveryWakeup::default();
        let reading = transaction.run(name, unit, &shared.context, &delivery_wakeup, None);
        tokio::select! {
            result = timeout(shared.read_times.of(account), reading) => result.ok(),
            () = abandoned => None,
        }
    };
    let Some(result) = result else {
        shared.connect_options.cancel(&connection.client).await;
        work.complete(Err(too_slow(name).into()));
        return false;
    };
    match transaction.failure().cloned() {
        Some(failure) if failure.is_connection_lost() => {
            shared.requeue(Access::Read, work, failure.error);
            return false;
        }
        Some(failure) => work.complete(Err(failure.error.into())),
        None => work.complete(result),
    }
    transaction.roll_back().await.is_ok()
}

/// Serves reads until the connection is lost. Returns `false` when the store is closed and the queue is empty.
async fn serve(connection: &PostgresConnection, shared: &Shared) -> bool {
    let mut pipeline = Pipeline::default();
    loop {
        tokio::select! {
            biased;
            () = connection.closed() => return true,
            filled = shared.reads.wait_until_filled() => if !filled { return false },
        }
        if connection.is_closed() {
            return true;
        }
        // A server that hangs would hold up all that shares a connection with its accounts.
        let max_group = if shared.context.is_distributed { 1 } else { MAX_GROUP };
        let mut group = shared.reads.take(max_group);
        group.retain(|work| !work.is_abandoned());
        if group.is_empty() {
            continue;
        }
        shared.context.report_group(Access::Read, group.len());
        pipeline.send(connection, BEGIN_READ).await;
        let alone = group.len() == 1;
        let reads = join_all(group.into_iter().map(|work| run_in_group(connection, shared, work)));
        // Each read has a timeout of its own. The rest of the time is for responses that the server still has to send.
        let (begun, failed) = match timeout(MAX_DURATION * 2, join(pipeline.finish(), reads)).await {
            Ok(both) => both,
            Err(_) => return true,
        };
        // After an error, COMMIT rolls back. Its response is received together with that of the next BEGIN.
        pipeline.send(connection, "COMMIT").await;
        let mut is_usable = begun.is_ok();
        for (work, failure) in failed.into_iter().flatten() {
            if failure.is_connection_lost() || !is_usable || connection.is_closed() {
                is_usable = false;
                shared.requeue(Access::Read, work, failure.error);
            } else if alone {
                work.complete(Err(failure.error.into()));
            } else {
                // Any of the reads may have made the shared transaction fail, so each runs again in its own transaction.
                is_usable = run_alone(connection, shared, work).await;
            }
        }
        if !is_usable {
            return true;
        }
    }
}

/// Runs a read in the shared transaction and completes it, or has it run again among the slow ones. If the transaction failed, it
/// returns the read instead.
async fn run_in_group(
    connection: &PostgresConnection,
    shared: &Shared,
    mut work: QueuedWork,
) -> Option<(QueuedWork, TransactionFailure)> {
    let transaction = PostgresTransaction::join(connection, &shared.context.vault, Access::Read);
    let transaction = transaction.with_load(shared.read_load.as_ref());
    let mut transaction = transaction.with_read(shared.running_read(work.name()));
    match read(connection, shared, &mut work, &mut transaction).await {
        Ok(ReadEnd::Done(result)) => work.complete(result),
        Ok(ReadEnd::Slow(account)) => shared.add_slow(account, work),
        Err(failure) => return Some((work, failure)),
    }
    None
}

/// Runs a read in its own transaction and completes it. Returns whether the connection can still be used.
async fn run_alone(connection: &PostgresConnection, shared: &Shared, mut work: QueuedWork) -> bool {
    let transaction = PostgresTransaction::new(connection, &shared.context.vault, Access::Read);
    let transaction = transaction.with_load(shared.read_load.as_ref());
    let mut transaction = transaction.with_read(shared.running_read(work.name()));
    match read(connection, shared, &mut work, &mut transaction).await {
        Ok(ReadEnd::Done(result)) => work.complete(result),
        Ok(ReadEnd::Slow(account)) => shared.add_slow(account, work),
        Err(failure) if failure.is_connection_lost() => {
            shared.requeue(Access::Read, work, failure.error);
            return false;
        }
        Err(failure) => work.complete(Err(failure.error.into())),
    }
    transaction.roll_back().await.is_ok()
}

/// How a read has ended on a connection that reads share.
enum ReadEnd {
    Done(Result<(), Error>),
    /// It has to run again among the slow reads of its account.
    Slow(Option<TenantId>),
}

async fn read(
    connection: &PostgresConnection,
    shared: &Shared,
    work: &mut QueuedWork,
    transaction: &mut PostgresTransaction<'_>,
) -> Result<ReadEnd, TransactionFailure> {
    let name = work.name();
    let has_slow = transaction.read().is_some_and(|read| read.slow.is_some());
    let time = if has_slow { shared.read_times.shared * SHARED_STATEMENTS } else { MAX_DURATION };
    let result = {
        let (unit, abandoned) = work.work_and_abandonment();
        let delivery_wakeup = DeliveryWakeup::default();
        let reading = transaction.run(name, unit, &shared.context, &delivery_wakeup, None);
        tokio::select! {
            biased;
            result = timeout(time.min(MAX_DURATION), reading) => result,
            // What runs of it ends by itself within the time of a statement.
            () = abandoned => return Ok(ReadEnd::Done(Err(too_slow(name).into()))),
        }
    };
    let result = match result {
        Ok(result) => result,
        Err(_) if has_slow => return Ok(ReadEnd::Slow(transaction.read().and_then(|read| read.account))),
        Err(_) => {
            connection.abort();
            return Ok(ReadEnd::Done(Err(too_long(name).into())));
        }
    };
    let is_late = matches!(transaction.failure(), Some(failure) if matches!(failure.error, StoreError::TooSlow(_)));
    match transaction.read().filter(|read| read.slow.is_some()) {
        Some(read) if read.is_postponed || is_late => return Ok(ReadEnd::Slow(read.account)),
        _ => {}
    }
    match transaction.failure() {
        // The failure of the transaction takes precedence over the result of the unit of work.
        Some(failure) => Err(failure.clone()),
        None => Ok(ReadEnd::Done(result)),
    }
}
