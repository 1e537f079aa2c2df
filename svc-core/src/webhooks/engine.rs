//! The delivery engine: decides which webhook attempts are made and when, and records their outcomes. It performs no
//! I/O besides the transactions that it is given.
//!
//! A *driver* (svc-server's `deliver` module, or a test under a virtual clock) runs the loop: it reads the [`DueWork`]
//! with [`poll`], lets [`InFlight::plan`] turn it into one [`Batch`] per tenant, runs each batch with [`run_batch`] in a
//! write transaction, and makes the attempts that the batch claimed. It reports the end of each batch and of each attempt
//! to [`InFlight`], and the [`AttemptResult`] of an attempt goes into the tenant's next batch. Any number of processes can
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
//!   one up to 64, and a failure sets it to 1. During the back-off after a failure there is one attempt at a time of all
//!   processes (see below). So an endpoint that recovers is not flooded.
//! - The share of a tenant: half of [`Policy::concurrency`].
//! - The total: [`Policy::concurrency`]. Once half of it is in use, endpoints that have not grown beyond the first window
//!   get one attempt at a time, so that a large number of slow endpoints cannot take the rest.
//!
//! An endpoint whose window is full is deferred for 2 seconds. An outcome that frees capacity reschedules its endpoint
//! earlier than that. The endpoints of a tenant that has used its share stay due, which costs no write.
//!
//! Capacity that becomes free goes to the tenant with the fewest attempts in flight. A poll finds it, even if many
//! endpoints of another tenant have been due for longer: it reads the due endpoints in pages, and each page leaves out the
//! tenants that take up much of the pages before it.
//!
//! # What a subscription asks for
//!
//! A subscription can have limits of its own ([`options`](super::options)). They hold over all processes, as they are looked
//! up in the transaction of the claim:
//!
//! - At most `max_in_flight` of its deliveries have a lease.
//! - With `max_per_second`, a claim takes what is due within [`Policy::PACE`], and the attempts begin one after the other. The
//!   next claim is due after that (`paced_until`), so an endpoint gets a smooth pace.
//! - With an order, a delivery is claimed only if no earlier one of its record is pending. Otherwise it is due
//!   [never](super::deliveries::WAITS_FOR_ANOTHER), until the earlier one has ended, in whichever way: it is the outcome of that
//!   one that makes it due.
//!
//! # Failures
//!
//! A failed attempt is retried by the [`RetrySchedule`](super::deliveries::RetrySchedule): increasing delays with up to
//! 10 % jitter, or longer if the endpoint asked for it with `Retry-After`. A 410 ends the retries. The tenth failure in a
//! row pauses the subscription and holds its deliveries (`docs/contract.md`, "Retries and pauses"). A stored row that cannot be read
//! never blocks others: its endpoint is deferred for a minute, and its outcomes are dropped.
//!
//! # Back-off
//!
//! A failure begins a back-off of the endpoint, `backoff_until` of its subscription. It lasts until an attempt succeeds
//! that was made during it. When the wait is over, one process claims one delivery and sets `backoff_until` to the end of
//! its lease; by that time the outcome is recognised among those of other attempts. A failure begins the next wait, twice
//! as long as the one before, up to the first delay of the retries. Attempts that were in flight when the back-off began
//! failed of the same cause, so their failures are not counted. Ten failures in a row therefore take minutes.
//!
//! A failure that asks for a delay with `Retry-After` is back-pressure. It begins a back-off of that length, but does not
//! count, unless there was a back-off already.
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
//!
//! If the clock is set back, everything that waits would wait so much longer. Two polls show it, unless the process was not
//! running. So after a start and after a step back a driver [bounds the waits](bound_waits) of all endpoints: a delivery is
//! due no later than after the longest wait of its kind, be it a lease, a retry or an endpoint's back-off. A lease that
//! was bounded can be extended, after each jump forward, until the end that it had at first.

mod attempt;
mod batch;
mod claim;
mod in_flight;
mod outcomes;
mod plan;
mod policy;
mod responses;
mod waits;

use crate::accounts::actor::Actor;
use crate::error::{Error, StoreError};
use crate::store::Tx;
use crate::webhooks::replays;

pub use self::attempt::{Attempt, AttemptOptions, AttemptResult};
pub use self::batch::{Batch, BatchResult, FailedAttempt};
pub use self::in_flight::InFlight;
pub use self::plan::{DueWork, poll, poll_of};
pub use self::policy::Policy;
pub use self::waits::bound_waits;

/// Runs a batch in a write transaction: records its outcomes, then advances a bulk replay if the batch says so, then
/// claims attempts. Outcomes of deliveries that no longer hold the lease of the attempt are dropped.
///
/// # Errors
/// [`Error::Store`]; the transaction has then changed nothing.
pub async fn run_batch(tx: &mut dyn Tx, policy: &Policy, batch: &Batch) -> Result<BatchResult, Error> {
    tx.act_as(Actor::Sender);
    tx.lock_tenant(batch.tenant_id).await?;
    let failures = outcomes::record(tx, policy, batch).await?;
    if batch.advance_replay {
        match replays::step(tx, batch.tenant_id).await {
            // The row of the replay itself cannot be read. It must not block the rest of the batch.
            Err(Error::Store(StoreError::Corrupt { .. })) => {}
            stepped => drop(stepped?),
        }
    }
    Ok(BatchResult { attempts: claim::claim_attempts(tx, policy, batch).await?, failures })
}

#[cfg(test)]
mod tests;
