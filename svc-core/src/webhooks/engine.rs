//! The delivery engine: decides which webhook attempts are made and when, and records their outcomes. It performs no
//! I/O besides the transactions that it is given.
//!
//! A *driver* (svc-server's `deliver` module, or a test under a virtual clock) runs the loop: it reads the [`DueWork`]
//! with [`poll`], lets [`InFlight::plan`] turn it into one [`Batch`] per tenant, runs each batch with [`run_batch`] in a
//! write transaction, and makes the attempts that the batch claimed. It reports the end of each batch and of each attempt
//! to [`InFlight`], and the [`Outcome`] of an attempt goes into the tenant's next batch. Any number of processes can
//! drive the same database.
//!
//! # Schedule
//!
//! Every subscription with pending deliveries (an *endpoint*) has one schedule entry, its `due_at`: the time from which
//! it may be selected. A poll reads the endpoints that are due, the longest due first. An endpoint that was selected is
//! rescheduled for its next due delivery, but not before the current time, so it queues behind the endpoints that are due
//! already. An endpoint with a long backlog therefore delays no other one. Committing a new delivery brings
//! the entry of its endpoint forward, and wakes the driver of the same process
//! ([`DeliveryWakeup`](super::deliveries::DeliveryWakeup)).
//!
//! # Batches
//!
//! A batch is the work of one tenant in one transaction: outcomes to record, attempts to claim, and perhaps a step of a
//! bulk replay. It locks the tenant's row, as every write of the tenant does, so batches of different tenants never wait
//! for each other. The driver runs one batch per tenant at a time; the outcomes that arrive meanwhile form the next
//! batch, so the batches of a tenant grow with its load.
//!
//! # Claims and leases
//!
//! Claiming a delivery increments its attempt number and gives it a *lease*, which hides it from other claims for a
//! while, as the visibility timeout of a message queue does. The lease is a token that no other attempt at this delivery
//! has, and `next_attempt_at` is set to the time when it ends. A lease lasts for twice the timeout of an attempt and 10
//! seconds more ([`Policy::lease`]), so a slow endpoint never causes a duplicate attempt. The token is a fencing token:
//! an outcome is recorded only while the delivery still has the same lease. Any later outcome is dropped.
//!
//! # Concurrency
//!
//! Three limits apply to each process, and an attempt is claimed only within all of them:
//!
//! - The *window* of an endpoint, which adapts to its outcomes like a congestion window: it starts at 4, each success adds
//!   one up to 64, and a failure sets it to 1. While `consecutive_failures` of a subscription is not 0, every process
//!   sends it one delivery at a time, whichever process saw the failure. So an endpoint that recovers is not flooded.
//! - The share of a tenant: half of [`Policy::concurrency`].
//! - The total: [`Policy::concurrency`]. Once half of it is in use, endpoints that have not grown beyond the first window
//!   get one attempt at a time, so that a large number of slow endpoints cannot take the rest.
//!
//! An endpoint whose window is full is deferred for 2 seconds, one whose tenant has used its share for 100 milliseconds.
//! An outcome that frees capacity reschedules its endpoint earlier than that.
//!
//! # Failures
//!
//! A failed attempt is retried by the [`RetrySchedule`](super::deliveries::RetrySchedule): increasing delays with up to
//! 10 % jitter, or longer if the endpoint asked for it with `Retry-After`. The tenth failure in a row pauses the
//! subscription and holds its deliveries (`docs/contract.md`, "Retries and pauses"). A stored row that cannot be read
//! never blocks others: its endpoint is deferred for a minute, and its outcomes are dropped.
//!
//! # Crashes
//!
//! Windows and in-flight counts are kept in memory only; everything else is in the database. The deliveries that a
//! process had claimed when it crashed become due again when their leases end, and are sent again with the next attempt
//! number. Subscribers recognise the duplicate by its delivery id.
//!
//! # Clock jumps
//!
//! Leases end at wall-clock times. If the clock jumps forward, leases seem to have ended although their attempts are still
//! in flight. A driver polls at least every few seconds, so a gap of more than 5 seconds between two polls means that the
//! clock has jumped or the process was suspended. During the grace period that follows, as long as one lease, the engine
//! extends a lease that seems to have ended instead of claiming its delivery again. It extends each lease only once.

mod attempt;
mod batch;
mod claim;
mod in_flight;
mod outcomes;
mod plan;
mod policy;
mod responses;

use crate::accounts::audit::Actor;
use crate::error::{Error, StoreError};
use crate::store::Tx;
use crate::webhooks::replays;

pub use self::attempt::{Attempt, Outcome};
pub use self::batch::{Batch, BatchResult};
pub use self::in_flight::InFlight;
pub use self::plan::{DueWork, poll};
pub use self::policy::Policy;

/// Runs a batch in a write transaction: records its outcomes, then advances a bulk replay if the batch says so, then
/// claims attempts. Outcomes of deliveries that no longer hold the lease of the attempt are dropped.
///
/// # Errors
/// [`Error::Store`]; the transaction has then changed nothing.
pub async fn run_batch(tx: &mut dyn Tx, policy: &Policy, batch: &Batch) -> Result<BatchResult, Error> {
    tx.act_as(Actor::Sender);
    tx.lock_tenant(batch.tenant_id).await?;
    let paused = outcomes::record(tx, policy, batch).await?;
    if batch.advance_replay {
        match replays::step(tx, batch.tenant_id).await {
            // The row of the replay itself cannot be read. It must not block the rest of the batch.
            Err(Error::Store(StoreError::Corrupt { .. })) => {}
            stepped => drop(stepped?),
        }
    }
    Ok(BatchResult { attempts: claim::claim_attempts(tx, policy, batch).await?, paused })
}

#[cfg(test)]
mod tests;
