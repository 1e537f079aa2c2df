//! Operations on a subscription besides creating, changing and deleting it: its secret is rotated, it gets a test event,
//! and it expires if it belongs to a program that has ended.

use std::time::Duration;

use super::{SubscriptionId, WebhookSubscription};
use crate::accounts::audit::AuditAction;
use crate::accounts::clocks::advance_clock;
use crate::accounts::operational::{OperationalKind, PLATFORM_ACCOUNT};
use crate::error::Error;
use crate::resources::{Update as _, crud};
use crate::store::{Repository, Store, Tx};
use crate::values::{EventKind, EventSet, TenantId};
use crate::webhooks::deliveries::{Delivery, MatchedSubscription};
use crate::webhooks::signatures::{self, SigningKeys};
use crate::webhooks::{events, samples};

/// How many subscriptions that have expired are found at once.
const EXPIRED_AT_ONCE: u32 = 100;

/// Replaces the signing secret, and likewise the key of asymmetric signatures. For the length of `overlap` the previous secret
/// still makes `X-SVC-Signature`, and signs beside the new one in `webhook-signature`, so that a receiver that knows only the
/// previous secret keeps working.
///
/// During the overlap of an earlier rotation, the secret of that rotation is replaced: the previous secret, which receivers
/// are sure to have, goes on signing for the length of the new overlap.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] for a subscription whose events go to a stream, and for that of an app unless the
/// app itself asks.
pub async fn rotate_secret(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: SubscriptionId,
    overlap: Duration,
) -> Result<WebhookSubscription, Error> {
    let now = advance_clock(tx, tenant).await?;
    let before: WebhookSubscription = crud::get(tx, tenant, id).await?;
    before.require_deliveries()?;
    before.require_owner(tx)?;
    let mut subscription = before.clone();
    let wall_clock = tx.env().now();
    let previous = before.overlapping_secret(wall_clock).unwrap_or(&before.secret);
    subscription.previous_secret = Some(previous.clone());
    let until = wall_clock.checked_add(overlap).unwrap_or(wall_clock);
    subscription.previous_until = Some(until);
    subscription.secret = signatures::new_webhook_secret(tx.env());
    subscription.signing_keys = before.signing_keys.as_ref().map(|keys| keys.rotated(tx.env(), until));
    subscription.set_updated_at(now);
    Repository::<WebhookSubscription>::update(tx, tenant, &subscription).await?;
    crud::audit_change(tx, tenant, AuditAction::Rotate, Some(&before), Some(&subscription)).await?;
    Ok(subscription)
}

/// Ends the overlap of a rotation: from the next attempt on, the new secret alone signs. Changes nothing when no overlap
/// lasts.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] for the subscription of an app unless the app itself asks.
pub async fn finish_rotation(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: SubscriptionId,
) -> Result<WebhookSubscription, Error> {
    let now = advance_clock(tx, tenant).await?;
    let before: WebhookSubscription = crud::get(tx, tenant, id).await?;
    before.require_owner(tx)?;
    let signing_keys = before.signing_keys.as_ref().map(SigningKeys::newest);
    if before.overlapping_secret(tx.env().now()).is_none() && signing_keys == before.signing_keys {
        return Ok(before);
    }
    let mut subscription = before.clone();
    subscription.previous_secret = None;
    subscription.previous_until = None;
    subscription.signing_keys = signing_keys;
    subscription.set_updated_at(now);
    Repository::<WebhookSubscription>::update(tx, tenant, &subscription).await?;
    crud::audit_change(tx, tenant, AuditAction::FinishRotation, Some(&before), Some(&subscription)).await?;
    Ok(subscription)
}

/// Sends a test event to one subscription, by the same way as every event. No other subscription receives it.
///
/// Its data is the [sample](samples::data) of its kind, and its deliveries say that it is a test in `X-SVC-Test`. Without
/// a `kind`, it is of the first kind that the subscription is for. If that is all kinds, it is `contact.created`, or
/// `endpoint.paused` for the platform account.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] when the subscription is disabled or paused, or is not for `kind`, or the
/// kind is no longer registered.
pub async fn send_test(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: SubscriptionId,
    kind: Option<EventKind>,
) -> Result<Delivery, Error> {
    let now = advance_clock(tx, tenant).await?;
    let subscription: WebhookSubscription = crud::get(tx, tenant, id).await?;
    subscription.require_deliveries()?;
    if !subscription.is_active() {
        let state = if subscription.disabled_reason.is_some() { "paused" } else { "disabled" };
        return Err(Error::NotAllowed(format!("The subscription is {state}; enable it first.")));
    }
    let kind = match (kind, &subscription.events) {
        (Some(kind), events) if !events.contains(kind) => {
            let takes = events.names().join(", ");
            return Err(Error::NotAllowed(format!("The subscription does not take {kind}; it takes {takes}.")));
        }
        (Some(kind), _) => kind,
        (None, EventSet::Kinds(kinds)) => {
            let known = kinds.iter().find(|kind| tx.env().event_kinds.contains(**kind));
            known.or(kinds.first()).copied().unwrap_or(EventKind::ContactCreated)
        }
        (None, EventSet::All) => {
            let operational = OperationalKind::EndpointPaused.event_kind().filter(|_| tenant == PLATFORM_ACCOUNT);
            operational.unwrap_or(EventKind::ContactCreated)
        }
    };
    let data = samples::data_for(tenant, &tx.env().event_kinds, kind).ok_or_else(|| {
        Error::NotAllowed(format!("This service has no event kind {kind} now, and so no sample of it."))
    })?;
    let to = MatchedSubscription { subscription_id: id, paused: false, filter: None, is_ordered: false };
    events::emit_to(tx, tenant, now, kind, &data, to).await
}

/// Keeps a subscription for this long from now on, after which the service deletes it by itself. A program that makes a
/// subscription for as long as it runs keeps it again and again, so that none is left however the program ends.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn keep_for(tx: &mut dyn Tx, tenant: TenantId, id: SubscriptionId, lifetime: Duration) -> Result<(), Error> {
    let now = tx.env().now();
    let until = now.checked_add(lifetime).unwrap_or(now);
    if tx.lock_tenant(tenant).await? && tx.set_subscription_expiry(tenant, id, until).await? {
        Ok(())
    } else {
        Err(Error::NotFound)
    }
}

/// Deletes the subscriptions that were kept for a time which has passed, and returns how many there were.
///
/// # Errors
/// [`Error::Store`]; those that were deleted before it stay deleted.
pub async fn delete_expired(store: &dyn Store) -> Result<u64, Error> {
    let mut count = 0;
    loop {
        let expired = store.read("webhooks.expired", (), async |tx, ()| {
            let now = tx.env().now();
            Ok(tx.expired_subscriptions(now, EXPIRED_AT_ONCE).await?)
        });
        let expired = expired.await?;
        for (tenant, id) in &expired {
            let (tenant, id) = (*tenant, *id);
            let deleted = store
                .write("webhooks.delete_expired", (tenant, id), async |tx, &(tenant, id)| {
                    delete_if_expired(tx, tenant, id).await
                })
                .await?;
            count += u64::from(deleted);
        }
        if expired.len() < EXPIRED_AT_ONCE as usize {
            return Ok(count);
        }
    }
}

/// Deletes a subscription unless someone has deleted it, or has kept it for longer, since it was found to have expired.
async fn delete_if_expired(tx: &mut dyn Tx, tenant: TenantId, id: SubscriptionId) -> Result<bool, Error> {
    tx.lock_tenant(tenant).await?;
    let found: Option<WebhookSubscription> = tx.get(tenant, id).await?;
    let now = tx.env().now();
    let has_expired = found.is_some_and(|found| {
        found.deleted_at.is_none() && found.expires_at.is_some_and(|expires_at| expires_at <= now)
    });
    if has_expired {
        crud::delete::<WebhookSubscription>(tx, tenant, id).await?;
    }
    Ok(has_expired)
}
