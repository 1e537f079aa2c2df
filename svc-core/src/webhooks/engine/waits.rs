//! Bounding waits: after the clock was set back, no delivery waits longer than it would have waited anyway.

use std::borrow::Cow;

use super::claim::{longest_pace, schedule_next};
use super::outcomes::none_if_corrupt;
use super::policy::Policy;
use crate::accounts::actor::Actor;
use crate::error::{Error, StoreError};
use crate::store::{Repository, Tx};
use crate::values::TenantId;
use crate::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

/// Bounds the due times of the deliveries at some endpoints of a tenant, in a write transaction: each becomes due after the
/// longest time that its kind of wait can take from now on, unless it is due earlier. The back-off of an endpoint is
/// bounded in the same way.
///
/// # Errors
/// [`Error::Store`]; the transaction has then changed nothing.
pub async fn bound_waits(
    tx: &mut dyn Tx,
    policy: &Policy,
    tenant: TenantId,
    subscriptions: &[SubscriptionId],
) -> Result<(), Error> {
    tx.act_as(Actor::Sender);
    tx.lock_tenant(tenant).await?;
    for id in subscriptions {
        match bound_endpoint(tx, policy, tenant, *id).await {
            // A damaged row must not block other endpoints.
            Err(Error::Store(StoreError::Corrupt { .. })) => {}
            bounded => bounded?,
        }
    }
    Ok(())
}

async fn bound_endpoint(tx: &mut dyn Tx, policy: &Policy, tenant: TenantId, id: SubscriptionId) -> Result<(), Error> {
    let now = tx.env().now();
    let subscription = none_if_corrupt(Repository::<WebhookSubscription>::get(tx, tenant, id).await)?;
    let policy = subscription.as_ref().map_or(Cow::Borrowed(policy), |subscription| policy.of(subscription));
    for (waiting, longest) in policy.longest_waits() {
        let latest = now.checked_add(longest).unwrap_or(now);
        tx.bring_deliveries_forward(tenant, id, waiting, latest).await?;
    }
    let Some(mut subscription) = subscription else { return Ok(()) };
    let longest = policy.lease().max(policy.retry.backoff(subscription.consecutive_failures, None));
    let latest = now.checked_add(longest);
    if subscription.backoff_until > latest {
        subscription.backoff_until = latest;
        tx.update_delivery_outcome(tenant, &subscription).await?;
    }
    if subscription.paced_until > now.checked_add(longest_pace()) {
        subscription.paced_until = Some(now);
        tx.set_paced_until(tenant, id, now).await?;
    }
    schedule_next(tx, tenant, &subscription).await
}
