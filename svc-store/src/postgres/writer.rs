//! A write task: each unit of work is one `READ COMMITTED` transaction.
//!
//! # Locking
//!
//! Writes of one tenant wait for each other at the tenant's row, which `advance_clock` and `lock_tenant` lock. Writes of
//! different tenants run concurrently. A tenant takes at most a quarter of the connections for that, so that a busy one
//! leaves the others some: further writes are set aside (see [`Queue`](super::queue::Queue)).
//!
//! # Round trips
//!
//! The cost of a write is its round trips: the responses that it waits for. `BEGIN` is pipelined with the first statement,
//! inserts are pipelined, and so is `COMMIT`. So `POST /contacts` takes four round trips, whatever the number of
//! subscriptions: advancing the clock, checking the email, finding the matching subscriptions, and the commit. An
//! `Idempotency-Key` takes three more: claiming the key, locking the tenant, and looking for a stored response. The API
//! key is looked up before, in a read of one round trip.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use svc_core::error::{Error, StoreError};
use svc_core::store::Access;
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::DeliveryWakeup;

use super::connection::Connection;
use super::failure::{Failure, Recovery};
use super::queue::QueuedWork;
use super::transaction::PostgresTransaction;
use super::{Shared, unit_of_work};

/// The most runs of a unit of work that fails with serialization failures or deadlocks.
pub(crate) const MAX_RUNS: u32 = 6;
/// The pause before the second run. It grows by this much with each further run.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn run(shared: Arc<Shared>, mut connection: Option<Connection>) {
    loop {
        let connection = match connection.take() {
            Some(connection) => connection,
            None => match shared.connection(Access::Write).await {
                Some(connection) => connection,
                None => return,
            },
        };
        if !serve(&connection, &shared).await {
            return;
        }
    }
}

/// Runs units of work until the connection is lost. Returns `false` when the store is closed and the queue is empty.
async fn serve(connection: &Connection, shared: &Shared) -> bool {
    loop {
        tokio::select! {
            biased;
            () = connection.closed() => return true,
            filled = shared.writes.wait_until_filled() => if !filled { return false },
        }
        if connection.is_closed() {
            return true;
        }
        for work in shared.writes.take(1) {
            run_with_retries(connection, shared, work).await;
        }
    }
}

/// The outcome of one run of a unit of work.
enum RunOutcome {
    /// The transaction was committed, or rolled back for good.
    Completed(Result<(), Error>),
    /// The transaction was rolled back after a serialization failure or a deadlock.
    RunAgain(StoreError),
    /// The transaction was rolled back because this tenant has no turn left.
    WaitForTurn(TenantId),
    /// The connection was lost, and the transaction was rolled back.
    Reconnect(StoreError),
}

async fn run_with_retries(connection: &Connection, shared: &Shared, work: QueuedWork) {
    let mut runs = 1;
    loop {
        let is_committing = AtomicBool::new(false);
        let run = run_once(connection, shared, &work, &is_committing);
        let result = match tokio::time::timeout(unit_of_work::MAX_DURATION, run).await {
            Ok(RunOutcome::Completed(result)) => result,
            Ok(RunOutcome::RunAgain(_)) if runs < MAX_RUNS => {
                shared.report_retry(work.name());
                tokio::time::sleep(shared.jittered(PAUSE * runs)).await;
                runs += 1;
                continue;
            }
            Ok(RunOutcome::RunAgain(error)) => Err(error.into()),
            Ok(RunOutcome::WaitForTurn(tenant)) => return shared.writes.set_aside(work, tenant),
            Ok(RunOutcome::Reconnect(error)) => {
                connection.abort();
                return shared.requeue(Access::Write, work, error);
            }
            Err(_) => {
                connection.abort();
                let error = unit_of_work::too_long(work.name());
                Err(if is_committing.into_inner() { outcome_unknown(&error) } else { error }.into())
            }
        };
        return work.complete(result);
    }
}

async fn run_once(
    connection: &Connection,
    shared: &Shared,
    work: &QueuedWork,
    is_committing: &AtomicBool,
) -> RunOutcome {
    let mut transaction = PostgresTransaction::begin(connection, &shared.vault, Access::Write).await;
    transaction.take_turns_of(&shared.writes);
    // Units of work run concurrently, so each has its own wakeup.
    let delivery_wakeup = DeliveryWakeup::default();
    let result = unit_of_work::run(work.name(), work.work(), &mut transaction, shared, &delivery_wakeup).await;
    if let Some(failure) = transaction.failure().cloned() {
        return roll_back_failed(&mut transaction, connection, &failure, result).await;
    }
    if result.is_err() {
        if transaction.roll_back().await.is_err() {
            connection.abort();
        }
        return RunOutcome::Completed(result);
    }
    let has_due_deliveries = delivery_wakeup.take_mark();
    if has_due_deliveries && shared.is_short_lived {
        // The process may exit before the notification task runs.
        transaction.notify().await;
    }
    is_committing.store(true, Ordering::Release);
    match transaction.commit().await {
        Ok(Ok(())) => {
            shared.report_group(Access::Write, 1);
            if has_due_deliveries {
                shared.delivery_wakeup.notify();
                if !shared.is_short_lived {
                    shared.notifications.notify_one();
                }
            }
            RunOutcome::Completed(Ok(()))
        }
        // The server rolled back instead of committing.
        Ok(Err(failure)) => outcome_of(&failure, Ok(())),
        Err(failure) if failure.is_connection_lost() => {
            connection.abort();
            RunOutcome::Completed(Err(outcome_unknown(&failure.error).into()))
        }
        Err(failure) => outcome_of(&failure, Ok(())),
    }
}

async fn roll_back_failed(
    transaction: &mut PostgresTransaction<'_>,
    connection: &Connection,
    failure: &Failure,
    result: Result<(), Error>,
) -> RunOutcome {
    if !failure.is_connection_lost() && transaction.roll_back().await.is_err() {
        connection.abort();
    }
    outcome_of(failure, result)
}

/// Returns the outcome of a transaction that was rolled back because of a failure.
fn outcome_of(failure: &Failure, result: Result<(), Error>) -> RunOutcome {
    let error = failure.error.clone();
    match failure.recovery {
        Recovery::None => RunOutcome::Completed(Err(unit_of_work::first_cause(result, &error))),
        Recovery::RunAgain => RunOutcome::RunAgain(error),
        Recovery::WaitForTurn(tenant) => RunOutcome::WaitForTurn(tenant),
        Recovery::Reconnect | Recovery::ConnectionLost => RunOutcome::Reconnect(error),
    }
}

fn outcome_unknown(error: &StoreError) -> StoreError {
    StoreError::OutcomeUnknown(error.to_string())
}
