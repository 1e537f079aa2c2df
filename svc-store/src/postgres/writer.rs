//! A write task: one job is one transaction, READ COMMITTED. Jobs of one tenant wait for each other at its row, where
//! `advance_clock` and `hold` take it; jobs of different tenants run side by side.
//!
//! What a job costs is round trips: the answers that it waits for. BEGIN travels with its first statement, what is
//! inserted is posted, and COMMIT travels behind it. So `POST /contacts` takes four, whatever the number of
//! subscriptions: the tick, the look for its email, the look for subscriptions, the commit. An Idempotency-Key takes
//! three more: the claim, the hold, the look for an answer. (The key itself is looked up in a read job before: one.)

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use svc_core::error::{Error, StoreError};
use svc_core::store::Access;
use svc_core::webhooks::deliveries::DeliveryWakeup;

use super::connection::Connection;
use super::failure::{Failure, Recovery};
use super::queue::QueuedWork;
use super::transaction::PostgresTransaction;
use super::{Shared, unit_of_work};

/// How often a job runs at most that always meets another transaction.
const RUNS: u32 = 6;
/// Before a job runs again, times the runs so far.
const PAUSE: Duration = Duration::from_millis(10);

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

/// Works until the connection is lost; `false` when there will be no more work.
async fn serve(connection: &Connection, shared: &Shared) -> bool {
    loop {
        tokio::select! {
            biased;
            () = connection.closed() => return true,
            filled = shared.writes.filled() => if !filled { return false },
        }
        if connection.is_closed() {
            return true;
        }
        for waiting in shared.writes.take(1) {
            perform(connection, shared, waiting).await;
        }
    }
}

/// What a run came to.
enum Run {
    Done(Result<(), Error>),
    /// It met another transaction and was undone.
    RunAgain(StoreError),
    /// The connection is lost, and nothing was done.
    Reconnect(StoreError),
}

async fn perform(connection: &Connection, shared: &Shared, waiting: QueuedWork) {
    let mut runs = 1;
    loop {
        let committing = AtomicBool::new(false);
        let run = tokio::time::timeout(unit_of_work::MAX_DURATION, attempt(connection, shared, &waiting, &committing)).await;
        let result = match run {
            Ok(Run::Done(result)) => result,
            Ok(Run::RunAgain(_)) if runs < RUNS => {
                shared.report_retry(waiting.name());
                tokio::time::sleep(shared.jittered(PAUSE * runs)).await;
                runs += 1;
                continue;
            }
            Ok(Run::RunAgain(reason)) => Err(reason.into()),
            Ok(Run::Reconnect(reason)) => {
                connection.abort();
                return shared.requeue(Access::Write, waiting, reason);
            }
            Err(_) => {
                connection.abort();
                let reason = unit_of_work::too_long(waiting.name());
                Err(if committing.into_inner() { unknown(&reason) } else { reason }.into())
            }
        };
        return waiting.answer(result);
    }
}

async fn attempt(connection: &Connection, shared: &Shared, waiting: &QueuedWork, committing: &AtomicBool) -> Run {
    let mut session = PostgresTransaction::begin(connection, &shared.vault, Access::Write).await;
    // Jobs run side by side, so each has a flag of its own.
    let delivery_wakeup = DeliveryWakeup::default();
    let result = unit_of_work::run(waiting.name(), waiting.job(), &mut session, shared, &delivery_wakeup).await;
    if let Some(failure) = session.failure().cloned() {
        return undo(&mut session, connection, &failure, result).await;
    }
    if result.is_err() {
        if session.roll_back().await.is_err() {
            connection.abort();
        }
        return Run::Done(result);
    }
    let sends = delivery_wakeup.take_mark();
    if sends && shared.is_short_lived {
        // Nobody may be here to ring after the commit.
        session.notify().await;
    }
    committing.store(true, Ordering::Release);
    match session.commit().await {
        Ok(Ok(())) => {
            shared.report_group(Access::Write, 1);
            if sends {
                shared.delivery_wakeup.notify();
                if !shared.is_short_lived {
                    shared.notifications.notify_one();
                }
            }
            Run::Done(Ok(()))
        }
        // The COMMIT was answered as a ROLLBACK.
        Ok(Err(failure)) => after(&failure, Ok(())),
        Err(failure) if failure.is_connection_lost() => {
            connection.abort();
            Run::Done(Err(unknown(&failure.error).into()))
        }
        Err(failure) => after(&failure, Ok(())),
    }
}

async fn undo(session: &mut PostgresTransaction<'_>, connection: &Connection, failure: &Failure, result: Result<(), Error>) -> Run {
    if !failure.is_connection_lost() && session.roll_back().await.is_err() {
        connection.abort();
    }
    after(failure, result)
}

/// What is to be done about a failure that left nothing behind.
fn after(failure: &Failure, result: Result<(), Error>) -> Run {
    let reason = failure.error.clone();
    match failure.recovery {
        Recovery::None => Run::Done(Err(unit_of_work::first_cause(result, &reason))),
        Recovery::RunAgain => Run::RunAgain(reason),
        Recovery::Reconnect | Recovery::ConnectionLost => Run::Reconnect(reason),
    }
}

fn unknown(error: &StoreError) -> StoreError {
    StoreError::OutcomeUnknown(error.to_string())
}
