//! A write task, which commits waiting writes in groups.
//!
//! # Locking
//!
//! Writes of one tenant follow each other: `advance_clock` and `lock_tenant` lock the tenant's row. Writes of different
//! tenants run concurrently. In this process a task takes the turn of a tenant before it locks its row (see [`TenantQueue`]), and
//! the others set aside for it what they find of that tenant. So a busy tenant occupies one connection and leaves the others
//! to other tenants. Writes of other processes wait at the row.
//!
//! # Groups
//!
//! Units of work that were set aside join the `READ COMMITTED` transaction, and all complete after the commit. So a busy tenant pays for
//! one commit where it would pay for many, and for one look-up of what all of them have to know (see
//! [`LockedTenants`]). When all connections are busy, writes of other tenants join as
//! well. They do not wait for a row that is locked, as what locked it may wait for a row of this transaction, but run again
//! later. A write of no tenant, such as of statistics, has a transaction of its own for the same reason.
//!
//! There are no savepoints: most errors, such as of input, come before the first change. When a unit of work returns an error
//! after a change, when a statement fails, or the commit, the group is rolled back, and each of its units of work runs again
//! in a transaction of its own. When the connection is lost at the commit, the outcome of all is unknown.
//!
//! # Round trips
//!
//! The cost of a write is its round trips: the responses that it waits for. `BEGIN` is pipelined with the first statement,
//! inserts are pipelined, and so is `COMMIT`. So `POST /contacts` takes five round trips, whatever the number of
//! subscriptions: looking up the API key behind the lock of the tenant, advancing the clock, checking the email, finding the
//! matching subscriptions, and the commit. Of one that joins a transaction of its tenant, only the check of the email is
//! left. An `Idempotency-Key` takes two more: claiming the key, and looking for a stored response. Before all this the API
//! key is looked up in a read of one round trip, to refuse the request early.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use svc_core::error::{Error, StoreError};
use svc_core::store::Access;
use svc_core::webhooks::deliveries::DeliveryWakeup;
use tokio::time::timeout;

use super::connection::PostgresConnection;
use super::failure::{Recovery, TransactionFailure};
use super::queue::{QueuedWork, TenantQueue};
use super::transaction::{MAX_DURATION, PostgresTransaction, WaitingFor, too_long};
use super::{Shared, fail_all};
use crate::locked_tenants::LockedTenants;

/// The most units of work in one commit.
const MAX_GROUP: usize = 32;
/// How long units of work join a transaction. It limits how long the first of them waits for the commit. A busy machine would split
/// the groups that tests expect.
const MAX_JOINING: Duration = if cfg!(test) { Duration::from_secs(10) } else { Duration::from_millis(20) };
/// The most runs of a unit of work that fails with serialization failures or deadlocks.
pub(crate) const MAX_RUNS: u32 = 6;
/// The pause before the second run. It grows by this much with each further run.
pub(super) const PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn run(shared: Arc<Shared>, mut connection: Option<PostgresConnection>) {
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
async fn serve(connection: &PostgresConnection, shared: &Shared) -> bool {
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
            serve_turn(connection, shared, work).await;
        }
    }
}

/// Runs a unit of work, and then what is set aside for its tenant, until nothing is.
async fn serve_turn(connection: &PostgresConnection, shared: &Shared, first: QueuedWork) {
    let tenant_queue = shared.writes.tenant_queue();
    let mut next = Some(first);
    while let Some(work) = next {
        let mut alone = VecDeque::from(run_group(connection, shared, work, &tenant_queue, MAX_GROUP).await);
        while !connection.is_closed()
            && let Some(work) = alone.pop_front()
        {
            run_group(connection, shared, work, &tenant_queue, 1).await;
        }
        // These have not run since their group was rolled back.
        shared.writes.put_back(alone);
        next = if connection.is_closed() { None } else { tenant_queue.next_transaction() };
    }
}

/// The outcome of one run of a group.
enum RunOutcome {
    /// The transaction was committed, or rolled back for good. These are the results, in the order of the group.
    Completed(Vec<Result<(), Error>>),
    /// The transaction was rolled back after a serialization failure or a deadlock.
    RunAgain(StoreError),
    /// The transaction of several units of work was rolled back, and each has to run alone.
    RunAlone,
    /// The transaction was rolled back because its first unit of work has to wait.
    Wait(WaitingFor),
    /// The connection was lost, and the transaction was rolled back.
    Reconnect(StoreError),
    /// The last unit of work of the group took too long.
    TooLong,
}

/// Runs a unit of work and what joins it, up to `max_units`, and completes them. Returns those that have to run alone.
async fn run_group(
    connection: &PostgresConnection,
    shared: &Shared,
    first: QueuedWork,
    tenant_queue: &TenantQueue<'_>,
    max_units: usize,
) -> Vec<QueuedWork> {
    let mut group = vec![first];
    let mut runs = 1;
    loop {
        match run_once(connection, shared, &mut group, tenant_queue, max_units).await {
            RunOutcome::Completed(results) => {
                group.into_iter().zip(results).for_each(|(work, result)| work.complete(result));
            }
            RunOutcome::RunAgain(error) if runs >= MAX_RUNS => fail_all(group, &error),
            RunOutcome::RunAgain(_) => {
                report_retries(shared, &group);
                tokio::time::sleep(shared.jittered(PAUSE * runs)).await;
                runs += 1;
                continue;
            }
            RunOutcome::RunAlone => {
                report_retries(shared, &group);
                return group;
            }
            RunOutcome::Wait(waiting) => {
                group.into_iter().for_each(|work| shared.writes.postpone(work, waiting));
            }
            RunOutcome::Reconnect(error) => {
                connection.abort();
                requeue(shared, group, &error);
            }
            RunOutcome::TooLong => {
                connection.abort();
                // The one that was running is the last one.
                if let Some(running) = group.pop() {
                    let error = too_long(running.name());
                    requeue(shared, group, &error);
                    running.complete(Err(error.into()));
                }
            }
        }
        return Vec::new();
    }
}

fn report_retries(shared: &Shared, group: &[QueuedWork]) {
    group.iter().for_each(|work| shared.context.report_retry(work.name()));
}

/// Puts a group back to the front of the queue, in its order.
fn requeue(shared: &Shared, group: Vec<QueuedWork>, error: &StoreError) {
    group.into_iter().rev().for_each(|work| shared.requeue(Access::Write, work, error.clone()));
}

/// Runs the first unit of work of `group`, and those that join it, which are added to `group`.
async fn run_once(
    connection: &PostgresConnection,
    shared: &Shared,
    group: &mut Vec<QueuedWork>,
    tenant_queue: &TenantQueue<'_>,
    max_units: usize,
) -> RunOutcome {
    let transaction = PostgresTransaction::new(connection, &shared.context.vault, Access::Write);
    let mut transaction = transaction.with_tenant_queue(tenant_queue).with_load(shared.write_load.as_ref());
    let mut locked = LockedTenants::default();
    let mut results = Vec::new();
    let mut has_due_deliveries = false;
    let mut joined_until = None;
    let mut join = |group: &mut Vec<QueuedWork>, transaction: &mut PostgresTransaction<'_>| {
        if group.len() < max_units
            && transaction.can_be_joined()
            && Instant::now() < *joined_until.get_or_insert_with(|| Instant::now() + MAX_JOINING)
            && let Some(joining) = tenant_queue.next_to_join()
        {
            transaction.begin_joining_unit();
            group.push(joining);
        }
    };
    while let Some(work) = group.get(results.len()) {
        // Units of work run concurrently, so each has its own wakeup.
        let delivery_wakeup = DeliveryWakeup::default();
        let run = transaction.run(work.name(), work.work(), &shared.context, &delivery_wakeup, Some(&mut locked));
        let Ok(result) = timeout(MAX_DURATION, run).await else { return RunOutcome::TooLong };
        if let Some(failure) = transaction.failure().cloned() {
            if !failure.is_connection_lost() {
                roll_back(connection, &mut transaction).await;
            }
            return outcome_of(&failure, result, group);
        }
        let (is_first, waiting) = (results.is_empty(), transaction.waiting());
        if (waiting.is_some() || result.is_err()) && (is_first || transaction.unit_has_written()) {
            roll_back(connection, &mut transaction).await;
            return match waiting {
                _ if !is_first => RunOutcome::RunAlone,
                Some(waiting) => RunOutcome::Wait(waiting),
                None => RunOutcome::Completed(vec![result]),
            };
        }
        match waiting {
            Some(waiting) => group.pop().into_iter().for_each(|work| shared.writes.postpone(work, waiting)),
            None => {
                has_due_deliveries |= result.is_ok() && delivery_wakeup.take_mark();
                results.push(result);
            }
        }
        join(group, &mut transaction);
    }
    if has_due_deliveries && shared.is_short_lived {
        // The process may exit before the notification task runs.
        transaction.notify().await;
    }
    let lost = |error: &StoreError| {
        connection.abort();
        // What returned an error has changed nothing, whatever became of the commit.
        let unknown = |result: Result<(), Error>| result.and(Err(outcome_unknown(error).into()));
        RunOutcome::Completed(results.iter().cloned().map(unknown).collect())
    };
    let Ok(committed) = timeout(MAX_DURATION, transaction.commit(&mut locked)).await else {
        return lost(&too_long("a commit"));
    };
    match committed {
        Ok(Ok(())) => {
            shared.context.report_group(Access::Write, group.len());
            if has_due_deliveries {
                shared.context.delivery_wakeup.notify();
                if !shared.is_short_lived {
                    shared.notifications.notify_one();
                }
            }
            RunOutcome::Completed(results)
        }
        Err(failure) if failure.is_connection_lost() => lost(&failure.error),
        // The server rolled back instead of committing.
        Ok(Err(failure)) | Err(failure) => outcome_of(&failure, Ok(()), group),
    }
}

/// Rolls a transaction back, or closes its connection if that fails.
async fn roll_back(connection: &PostgresConnection, transaction: &mut PostgresTransaction<'_>) {
    if !matches!(timeout(MAX_DURATION, transaction.roll_back()).await, Ok(Ok(()))) {
        connection.abort();
    }
}

/// Returns the outcome of a transaction that was rolled back because of a failure, in which the last unit of work of the
/// group returned `result`.
fn outcome_of(failure: &TransactionFailure, result: Result<(), Error>, group: &[QueuedWork]) -> RunOutcome {
    let error = failure.error.clone();
    match failure.recovery {
        Recovery::Reconnect | Recovery::ConnectionLost => RunOutcome::Reconnect(error),
        Recovery::None | Recovery::RunAgain if group.len() > 1 => RunOutcome::RunAlone,
        Recovery::RunAgain => RunOutcome::RunAgain(error),
        Recovery::None => RunOutcome::Completed(vec![Err(first_cause(result, &error))]),
    }
}

fn outcome_unknown(error: &StoreError) -> StoreError {
    StoreError::OutcomeUnknown(error.to_string())
}

/// Returns the error of the unit of work, unless it only passes on an error of the database. Then it returns `failure`, the
/// first error of the transaction.
fn first_cause(result: Result<(), Error>, failure: &StoreError) -> Error {
    match result {
        Err(Error::Store(_)) | Ok(()) => failure.clone().into(),
        Err(own) => own,
    }
}
