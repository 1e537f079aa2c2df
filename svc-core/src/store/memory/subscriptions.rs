//! Which webhook subscriptions want an event.

use async_trait::async_trait;

use super::{MemoryTx, of_tenant};
use crate::error::StoreError;
use crate::store::SubscriptionMatching;
use crate::values::{EventKind, TenantId, Timestamp};
use crate::webhooks::deliveries::MatchedSubscription;
use crate::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

#[async_trait]
impl SubscriptionMatching for MemoryTx<'_> {
    async fn matching_subscriptions(
        &mut self,
        tenant: TenantId,
        kind: EventKind,
    ) -> Result<Vec<MatchedSubscription>, StoreError> {
        let subscriptions = of_tenant(&self.state.subscriptions, tenant);
        Ok(subscriptions.filter_map(|subscription| subscription.match_event(kind)).collect())
    }

    async fn count_live_subscriptions(&mut self, tenant: TenantId) -> Result<u64, StoreError> {
        let live = of_tenant(&self.state.subscriptions, tenant).filter(|row| row.deleted_at.is_none());
        Ok(live.count() as u64)
    }

    async fn set_subscription_expiry(
        &mut self,
        tenant: TenantId,
        id: SubscriptionId,
        expires_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let key = (tenant, id);
        let live = self.state.subscriptions.get(&key).is_some_and(|stored| stored.deleted_at.is_none());
        if live {
            self.state_mut()?.subscriptions.change(&key, |stored| stored.expires_at = Some(expires_at));
        }
        Ok(live)
    }

    async fn expired_subscriptions(
        &mut self,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<(TenantId, SubscriptionId)>, StoreError> {
        let all = self.state.subscriptions.iter();
        let expired =
            all.filter(|(_, stored)| stored.deleted_at.is_none() && stored.expires_at.is_some_and(|at| at <= now));
        Ok(expired.map(|(key, _)| *key).take(limit as usize).collect())
    }

    async fn update_delivery_outcome(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> Result<(), StoreError> {
        self.state_mut()?.subscriptions.change(&(tenant, subscription.id), |stored| {
            stored.last_delivery_at = subscription.last_delivery_at;
            stored.last_delivery_status = subscription.last_delivery_status;
            stored.consecutive_failures = subscription.consecutive_failures;
            stored.backoff_until = subscription.backoff_until;
            stored.responses_kept = subscription.responses_kept;
            stored.responses_deleted_until = subscription.responses_deleted_until;
        });
        Ok(())
    }
}
