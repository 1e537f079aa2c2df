//! Claiming attempts: gives due deliveries a lease, and reschedules their endpoints.

use std::time::Duration;

use super::attempt::Attempt;
use super::batch::{Action, Batch, Selection};
use super::plan::FULL_WINDOW_DELAY;
use super::policy::Policy;
use crate::env::time_of_id;
use crate::error::{Error, StoreError};
use crate::store::{DueDelivery, Repository, Tx};
use crate::values::TenantId;
use crate::webhooks::deliveries::{Delivery, WAITS_FOR_ANOTHER};
use crate::webhooks::subscriptions::{self, SETTLE_PAUSE, SETTLE_STEP, SubscriptionId, WebhookSubscription};

/// How long an endpoint is deferred when one of its rows cannot be read.
const CORRUPT_ROW_DELAY: Duration = Duration::from_secs(60);

/// Carries out the selections of a batch and returns the attempts that were claimed.
pub(super) async fn claim_attempts(tx: &mut dyn Tx, policy: &Policy, batch: &Batch) -> Result<Vec<Attempt>, Error> {
    let now = tx.env().now();
    let mut attempts = Vec::new();
    for Selection { subscription, action } in batch.selections.iter().copied() {
        let claimed = match action {
            Action::Claim { limit, in_flight } => {
                claim_endpoint(tx, policy, batch, subscription, (limit, in_flight), &mut attempts).await
            }
            Action::Defer(delay) => {
                Ok(tx.schedule_endpoint(batch.tenant_id, subscription, now.checked_add(delay)).await?)
            }
        };
        match claimed {
            // A damaged row must not block other endpoints. Its own endpoint is tried again later.
            Err(Error::Store(StoreError::Corrupt { .. })) => {
                tx.schedule_endpoint(batch.tenant_id, subscription, now.checked_add(CORRUPT_ROW_DELAY)).await?;
            }
            claimed => claimed?,
        }
    }
    Ok(attempts)
}

/// Claims the due deliveries of one endpoint, within the limit of its selection.
async fn claim_endpoint(
    tx: &mut dyn Tx,
    policy: &Policy,
    batch: &Batch,
    id: SubscriptionId,
    (limit, in_flight): (usize, usize),
    attempts: &mut Vec<Attempt>,
) -> Result<(), Error> {
    let (tenant, now) = (batch.tenant_id, tx.env().now());
    let Some(mut subscription) = Repository::<WebhookSubscription>::get(tx, tenant, id).await? else {
        return Ok(tx.schedule_endpoint(tenant, id, None).await?);
    };
    if subscription.stopped_at.is_some() || !subscription.is_active() {
        return settle_next(tx, tenant, subscription).await;
    }
    // During the back-off after a failure, there is one attempt at a time of all processes.
    let limit = match subscription.backoff_until {
        None => limit,
        Some(until) if until > now => return schedule_next(tx, tenant, &subscription).await,
        Some(_) => limit.min(1_usize.saturating_sub(in_flight)),
    };
    let policy = policy.of(&subscription);
    let limit = within_max_in_flight(tx, &policy, tenant, &subscription, limit).await?;
    if limit == 0 {
        return Ok(tx.schedule_endpoint(tenant, id, now.checked_add(FULL_WINDOW_DELAY)).await?);
    }
    let pace = subscription.max_per_second.map(|rate| Duration::from_secs(1) / rate.get());
    let limit = match pace {
        Some(_) if subscription.paced_until > Some(now) => return schedule_next(tx, tenant, &subscription).await,
        Some(pace) => limit.min(usize::try_from(Policy::PACE.as_nanos() / pace.as_nanos()).unwrap_or(limit).max(1)),
        None => limit,
    };
    let mut options = subscription.attempt_options(now);
    options.timeout = options.timeout.map(|_| policy.timeout);
    let lease_ends = now.checked_add(policy.lease() + pace.map_or(Duration::ZERO, |_| Policy::PACE)).unwrap_or(now);
    let lease = tx.env().id(lease_ends);
    let due = tx.due_deliveries(tenant, id, now, u32::try_from(limit).unwrap_or(u32::MAX)).await?;
    for DueDelivery { mut delivery, event, is_sandbox } in due {
        let previous_lease = delivery.lease;
        // The id of a lease contains the time when it ends. `next_attempt_at` is earlier if the lease was bounded, and later
        // once it was extended past that time. No lease is extended after that, so repeated clock jumps cannot defer a
        // delivery forever.
        if batch.clock_jump_grace_until.is_some() && previous_lease.map(time_of_id) >= delivery.next_attempt_at {
            delivery.next_attempt_at = batch.clock_jump_grace_until;
            tx.update_delivery(&delivery, previous_lease).await?;
            continue;
        }
        if subscription.is_ordered() && waits_for_another(tx, &delivery).await? {
            delivery.next_attempt_at = Some(WAITS_FOR_ANOTHER);
            tx.update_delivery(&delivery, previous_lease).await?;
            continue;
        }
        delivery.claim(lease, lease_ends);
        tx.claim_delivery(&delivery, previous_lease).await?;
        let (url, secrets) = (subscription.url.clone(), subscription.signing_secrets(now));
        attempts.push(Attempt { delivery, event, url, secrets, is_sandbox, options: options.clone() });
        options.delay += pace.unwrap_or_default();
        if subscription.backoff_until.is_some() {
            subscription.begin_single_attempt(lease_ends);
            tx.update_delivery_outcome(tenant, &subscription).await?;
        }
    }
    if !options.delay.is_zero() {
        subscription.paced_until = now.checked_add(options.delay);
        tx.set_paced_until(tenant, id, subscription.paced_until.unwrap_or(now)).await?;
    }
    schedule_next(tx, tenant, &subscription).await
}

/// Returns how many of `limit` attempts the subscription's own `max_in_flight` leaves, over all processes.
async fn within_max_in_flight(
    tx: &mut dyn Tx,
    policy: &Policy,
    tenant: TenantId,
    subscription: &WebhookSubscription,
    limit: usize,
) -> Result<usize, Error> {
    let Some(max) = subscription.max_in_flight else { return Ok(limit) };
    let now = tx.env().now();
    let last_end = now.checked_add(policy.lease() + Policy::PACE).unwrap_or(now);
    let in_flight = tx.count_in_flight(tenant, subscription.id, now..last_end.next()).await?;
    let left = u64::from(max.get()).saturating_sub(in_flight);
    Ok(limit.min(usize::try_from(left).unwrap_or(limit)))
}

/// Returns whether an earlier delivery of the same record is pending.
async fn waits_for_another(tx: &mut dyn Tx, delivery: &Delivery) -> Result<bool, Error> {
    let Some(order_key) = delivery.order_key else { return Ok(false) };
    let first = tx.first_ordered(delivery.tenant_id, delivery.subscription_id, order_key).await?;
    Ok(first != Some(delivery.id))
}

/// Returns the longest time for which the rate of an endpoint is used up at once.
pub(super) fn longest_pace() -> Duration {
    Policy::PACE.max(Duration::from_secs(1))
}

/// Takes the next step of holding or ending what was pending when a subscription stopped sending.
async fn settle_next(tx: &mut dyn Tx, tenant: TenantId, before: WebhookSubscription) -> Result<(), Error> {
    let mut subscription = before.clone();
    subscriptions::settle(tx, tenant, &mut subscription, SETTLE_STEP).await?;
    if subscription != before {
        Repository::<WebhookSubscription>::update(tx, tenant, &subscription).await?;
    }
    schedule_next(tx, tenant, &subscription).await
}

/// Schedules an endpoint for its next due delivery, but not before now, so that it queues behind the endpoints that are
/// due already, and not before the end of its back-off. One whose deliveries are still to be held or ended is due for the
/// next step of that.
pub(super) async fn schedule_next(
    tx: &mut dyn Tx,
    tenant: TenantId,
    subscription: &WebhookSubscription,
) -> Result<(), Error> {
    let now = tx.env().now();
    let due_at = match subscription.stopped_at {
        Some(_) => now.checked_add(SETTLE_PAUSE),
        None => {
            let not_before = subscription.backoff_until.max(subscription.paced_until).max(Some(now));
            tx.next_delivery_due(tenant, subscription.id).await?.and_then(|due_at| Some(due_at).max(not_before))
        }
    };
    Ok(tx.schedule_endpoint(tenant, subscription.id, due_at).await?)
}
