//! Matching of events with webhook subscriptions, and their number.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::values::{EventKind, TenantId};
use crate::webhooks::deliveries::MatchedSubscription;
use crate::webhooks::subscriptions::WebhookSubscription;

/// Operations on webhook subscriptions besides those of [`Repository`](super::Repository).
#[async_trait]
pub trait SubscriptionMatching: Send {
    /// Returns the subscriptions of a tenant that match events of this kind and are enabled or paused by the service. Those
    /// that are deleted, or disabled by their owner, do not match.
    async fn matching_subscriptions(
        &mut self,
        tenant: TenantId,
        kind: EventKind,
    ) -> Result<Vec<MatchedSubscription>, StoreError>;

    /// Returns how many subscriptions of a tenant are not deleted.
    async fn count_live_subscriptions(&mut self, tenant: TenantId) -> Result<u64, StoreError>;

    /// Stores what outcomes change of a subscription: `last_delivery_at`, `last_delivery_status`, `consecutive_failures`,
    /// `backoff_until`, `responses_kept` and `responses_deleted_until`, and no other field.
    async fn update_delivery_outcome(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> Result<(), StoreError>;
}
