//! Subscriptions that a program makes for as long as it runs.

use std::time::Duration;

use super::{SubscriptionId, WebhookSubscription};
use crate::error::Error;
use crate::resources::crud;
use crate::store::{Store, Tx};
use crate::values::TenantId;

/// How many subscriptions that have expired are found at once.
const EXPIRED_AT_ONCE: u32 = 100;

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
        let expired = store.read("webhooks.expired", |tx| {
            Box::pin(async move {
                let now = tx.env().now();
                Ok(tx.expired_subscriptions(now, EXPIRED_AT_ONCE).await?)
            })
        });
        let expired = expired.await?;
        for (tenant, id) in &expired {
            let (tenant, id) = (*tenant, *id);
            let deleted =
                store.write("webhooks.delete_expired", move |tx| Box::pin(delete_if_expired(tx, tenant, id))).await?;
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
