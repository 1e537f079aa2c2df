//! Which webhook subscriptions want an event, and when their endpoints are due.

use async_trait::async_trait;

use super::{MemoryTx, Tables, of_tenant};
use crate::store::{Endpoint, EndpointSchedule, StoreResult, SubscriptionMatching};
use crate::values::{EventKind, TenantId, Timestamp};
use crate::webhooks::deliveries::MatchedSubscription;
use crate::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

#[async_trait]
impl SubscriptionMatching for MemoryTx<'_> {
    async fn matching_subscriptions(
        &mut self,
        tenant: TenantId,
        kind: EventKind,
    ) -> StoreResult<Vec<MatchedSubscription>> {
        let subscriptions = of_tenant(&self.state.subscriptions, tenant);
        Ok(subscriptions.filter_map(|subscription| subscription.match_event(kind)).collect())
    }

    async fn count_live_subscriptions(&mut self, tenant: TenantId) -> StoreResult<u64> {
        let live = of_tenant(&self.state.subscriptions, tenant).filter(|row| row.deleted_at.is_none());
        Ok(live.count() as u64)
    }

    async fn set_subscription_expiry(
        &mut self,
        tenant: TenantId,
        id: SubscriptionId,
        expires_at: Timestamp,
    ) -> StoreResult<bool> {
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
    ) -> StoreResult<Vec<(TenantId, SubscriptionId)>> {
        let all = self.state.subscriptions.iter();
        let expired =
            all.filter(|(_, stored)| stored.deleted_at.is_none() && stored.expires_at.is_some_and(|at| at <= now));
        Ok(expired.map(|(key, _)| *key).take(limit as usize).collect())
    }

    async fn set_paced_until(&mut self, tenant: TenantId, id: SubscriptionId, until: Timestamp) -> StoreResult<()> {
        self.state_mut()?.subscriptions.change(&(tenant, id), |stored| stored.paced_until = Some(until));
        Ok(())
    }

    async fn update_delivery_outcome(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> StoreResult<()> {
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

impl Tables {
    /// Returns the endpoints of these tenants that are due, the earliest first.
    fn due_endpoints(&self, now: Timestamp, is_asked_for: impl Fn(&TenantId) -> bool, limit: u32) -> Vec<Endpoint> {
        let due = self.endpoints_by_due_at.keys().take_while(|(due_at, _)| *due_at <= now);
        let due = due.filter(|(_, endpoint)| is_asked_for(&endpoint.tenant_id));
        due.take(limit as usize).map(|(_, endpoint)| *endpoint).collect()
    }

    fn set_due_at(&mut self, endpoint: Endpoint, due_at: Option<Timestamp>) {
        if let Some(before) = self.endpoint_schedule.get(&endpoint).copied() {
            self.endpoints_by_due_at.take(&(before, endpoint));
            self.endpoint_schedule.take(&endpoint);
        }
        if let Some(due_at) = due_at {
            self.endpoints_by_due_at.put((due_at, endpoint), ());
            self.endpoint_schedule.put(endpoint, due_at);
        }
    }
}

#[async_trait]
impl EndpointSchedule for MemoryTx<'_> {
    async fn due_endpoints(&mut self, now: Timestamp, except: &[TenantId], limit: u32) -> StoreResult<Vec<Endpoint>> {
        Ok(self.state.due_endpoints(now, |tenant| !except.contains(tenant), limit))
    }

    async fn due_endpoints_of(
        &mut self,
        now: Timestamp,
        tenants: &[TenantId],
        limit: u32,
    ) -> StoreResult<Vec<Endpoint>> {
        Ok(self.state.due_endpoints(now, |tenant| tenants.contains(tenant), limit))
    }

    async fn scheduled_endpoints(&mut self, after: Option<Endpoint>, limit: u32) -> StoreResult<Vec<Endpoint>> {
        let endpoints = self.state.endpoint_schedule.keys().filter(|endpoint| Some(**endpoint) > after);
        Ok(endpoints.take(limit as usize).copied().collect())
    }

    async fn next_endpoint_due(&mut self) -> StoreResult<Option<Timestamp>> {
        Ok(self.state.endpoints_by_due_at.keys().next().map(|(due_at, _)| *due_at))
    }

    async fn schedule_endpoint(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        due_at: Option<Timestamp>,
    ) -> StoreResult<()> {
        let endpoint = Endpoint { tenant_id: tenant, subscription_id: subscription };
        self.state_mut()?.set_due_at(endpoint, due_at);
        Ok(())
    }

    async fn schedule_endpoint_by(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        due_at: Timestamp,
    ) -> StoreResult<()> {
        let endpoint = Endpoint { tenant_id: tenant, subscription_id: subscription };
        let state = self.state_mut()?;
        if state.endpoint_schedule.get(&endpoint).is_none_or(|scheduled| due_at < *scheduled) {
            state.set_due_at(endpoint, Some(due_at));
        }
        self.delivery_wakeup.mark();
        Ok(())
    }
}
