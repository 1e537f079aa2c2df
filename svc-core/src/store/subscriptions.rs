//! Which webhook subscriptions want an event, and how many there are.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::values::{EventKind, TenantId};
use crate::webhooks::deliveries::MatchedSubscription;
use crate::webhooks::subscriptions::WebhookSubscription;

/// What webhook subscriptions have besides their [`Repository`](super::Repository): which of them want an event, how many
/// there are, and the outcome of their latest deliveries.
#[async_trait]
pub trait SubscriptionMatching: Send {
    /// Returns the subscriptions of a tenant that want events of this kind: those that are not deleted, and are enabled or
    /// paused automatically.
    async fn matching_subscriptions(
        &mut self,
        tenant: TenantId,
        kind: EventKind,
    ) -> Result<Vec<MatchedSubscription>, StoreError>;

    /// Returns how many subscriptions of a tenant are not deleted.
    async fn count_live_subscriptions(&mut self, tenant: TenantId) -> Result<u64, StoreError>;

    /// Stores `last_delivery_at`, `last_delivery_status` and `consecutive_failures` of a subscription, and nothing else of
    /// it.
    async fn update_delivery_outcome(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> Result<(), StoreError>;
}
