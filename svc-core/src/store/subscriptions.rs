//! Matching of events with webhook subscriptions, and their number.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::values::{EventKind, TenantId, Timestamp};
use crate::webhooks::deliveries::MatchedSubscription;
use crate::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

/// Operations on webhook subscriptions besides those of [`Repository`](super::Repository).
#[async_trait]
pub trait SubscriptionMatching: Send {
    /// Returns the subscriptions of a tenant that match events of this kind and are enabled or paused by the service. Those
    /// that are deleted, or disabled by their owner, do not match. They are in the order of their ids.
    async fn matching_subscriptions(
        &mut self,
        tenant: TenantId,
        kind: EventKind,
    ) -> Result<Vec<MatchedSubscription>, StoreError>;

    /// Returns how many subscriptions of a tenant are not deleted.
    async fn count_live_subscriptions(&mut self, tenant: TenantId) -> Result<u64, StoreError>;

    /// Sets when a subscription that is not deleted expires, and no other field. Returns whether there is one.
    async fn set_subscription_expiry(
        &mut self,
        tenant: TenantId,
        id: SubscriptionId,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Returns at most `limit` subscriptions of all tenants that have expired at `now` and are not deleted.
    async fn expired_subscriptions(
        &mut self,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<(TenantId, SubscriptionId)>, StoreError>;

    /// Stores what outcomes change of a subscription: `last_delivery_at`, `last_delivery_status`, `consecutive_failures`,
    /// `backoff_until`, `responses_kept` and `responses_deleted_until`, and no other field.
    async fn update_delivery_outcome(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> Result<(), StoreError>;
}
