//! Deliveries of events to endpoints, and bulk replays.

use std::ops::Range;

use async_trait::async_trait;
use uuid::Uuid;

use super::{MemoryTx, Tables, insert, of_tenant};
use crate::store::{
    DeliveryFilter, DeliveryRepository, DueDelivery, Endpoint, EndpointSchedule as _, ReplayRepository, StoreResult,
    WaitingFor,
};
use crate::values::{Id, TenantId, Timestamp};
use crate::webhooks::deliveries::{Backlog, Delivery, DeliveryId, DeliveryStatus, FailureReason, MAX_BACKLOG_COUNT};
use crate::webhooks::replays::{Replay, ReplayId};
use crate::webhooks::subscriptions::SubscriptionId;

/// Returns the key of a delivery among the pending ones, if it is pending.
fn pending_key(delivery: &Delivery) -> Option<(Endpoint, Timestamp, DeliveryId)> {
    let due_at = delivery.next_attempt_at.filter(|_| delivery.status == DeliveryStatus::Pending)?;
    let endpoint = Endpoint { tenant_id: delivery.tenant_id, subscription_id: delivery.subscription_id };
    Some((endpoint, due_at, delivery.id))
}

impl Tables {
    /// Returns the pending deliveries of an endpoint, longest due first.
    fn pending(
        &self,
        tenant_id: TenantId,
        subscription_id: SubscriptionId,
    ) -> impl Iterator<Item = (Timestamp, &Delivery)> {
        let endpoint = Endpoint { tenant_id, subscription_id };
        let (first, last) = (Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX));
        let of_endpoint = (endpoint, first, Id::nil())..=(endpoint, last, Id::max());
        let pending = self.pending_deliveries.range(of_endpoint);
        pending.filter_map(move |((_, due_at, id), ())| Some((*due_at, self.deliveries.get(&(tenant_id, *id))?)))
    }

    /// Replaces a delivery and its key among the pending ones.
    fn put_delivery(&mut self, delivery: &Delivery) {
        let key = (delivery.tenant_id, delivery.id);
        if let Some(pending) = self.deliveries.get(&key).and_then(pending_key) {
            self.pending_deliveries.take(&pending);
        }
        if let Some(pending) = pending_key(delivery) {
            self.pending_deliveries.put(pending, ());
        }
        self.deliveries.put(key, delivery.clone());
    }
}

#[async_trait]
impl DeliveryRepository for MemoryTx<'_> {
    async fn insert_deliveries(&mut self, deliveries: &[Delivery]) -> StoreResult<()> {
        for delivery in deliveries {
            let state = self.state_mut()?;
            insert(&mut state.deliveries, (delivery.tenant_id, delivery.id), delivery)?;
            state.put_delivery(delivery);
            if let Some(due_at) = delivery.next_attempt_at {
                self.schedule_endpoint_by(delivery.tenant_id, delivery.subscription_id, due_at).await?;
            }
        }
        Ok(())
    }

    async fn delivery(&mut self, tenant: TenantId, id: DeliveryId) -> StoreResult<Option<Delivery>> {
        Ok(self.state.deliveries.get(&(tenant, id)).cloned())
    }

    async fn deliveries(&mut self, tenant: TenantId, ids: &[DeliveryId]) -> StoreResult<Vec<Delivery>> {
        Ok(ids.iter().filter_map(|id| self.state.deliveries.get(&(tenant, *id))).cloned().collect())
    }

    async fn update_delivery(&mut self, delivery: &Delivery, lease: Option<Uuid>) -> StoreResult<()> {
        let state = self.state_mut()?;
        let stored = state.deliveries.get(&(delivery.tenant_id, delivery.id));
        if stored.is_some_and(|stored| stored.lease == lease) {
            state.put_delivery(delivery);
        }
        Ok(())
    }

    async fn list_deliveries(&mut self, tenant: TenantId, filter: &DeliveryFilter) -> StoreResult<Vec<Delivery>> {
        let limit = if filter.limit == 0 { usize::MAX } else { filter.limit as usize };
        let rows = of_tenant(&self.state.deliveries, tenant).filter(|delivery| filter.matches(delivery));
        Ok(if filter.oldest_first {
            rows.take(limit).cloned().collect()
        } else {
            rows.rev().take(limit).cloned().collect()
        })
    }

    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<DueDelivery>> {
        let due = self.state.pending(tenant, subscription).take_while(|(due_at, _)| *due_at <= now);
        let with_event = due.filter_map(|(_, delivery)| {
            let event = self.state.events.get(&(tenant, delivery.event_id))?.clone();
            let is_sandbox = self.state.is_sandbox(tenant);
            Some(DueDelivery { delivery: delivery.clone(), event, is_sandbox })
        });
        Ok(with_event.take(limit as usize).collect())
    }

    async fn next_delivery_due(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
    ) -> StoreResult<Option<Timestamp>> {
        Ok(self.state.pending(tenant, subscription).next().map(|(due_at, _)| due_at))
    }

    async fn first_ordered(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        order_key: Uuid,
    ) -> StoreResult<Option<DeliveryId>> {
        let pending = self.state.pending(tenant, subscription).map(|(_, delivery)| delivery);
        Ok(pending.filter(|delivery| delivery.order_key == Some(order_key)).map(|delivery| delivery.id).min())
    }

    async fn count_in_flight(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        lease_ends: Range<Timestamp>,
    ) -> StoreResult<u64> {
        let pending = self.state.pending(tenant, subscription);
        Ok(pending.filter(|(ends, delivery)| delivery.lease.is_some() && lease_ends.contains(ends)).count() as u64)
    }

    async fn bring_deliveries_forward(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        waiting: WaitingFor,
        latest: Timestamp,
    ) -> StoreResult<()> {
        let state = self.state_mut()?;
        let later = state
            .pending(tenant, subscription)
            .filter(|(due_at, delivery)| *due_at > latest && WaitingFor::of(delivery) == Some(waiting));
        let later: Vec<Delivery> = later.map(|(_, delivery)| delivery.clone()).collect();
        for mut delivery in later {
            delivery.next_attempt_at = Some(latest);
            state.put_delivery(&delivery);
        }
        Ok(())
    }

    async fn hold_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let pending = state.pending(tenant, subscription).map(|(_, delivery)| delivery.clone());
        let pending: Vec<Delivery> =
            pending.filter(|delivery| delivery.created_at < before).take(limit as usize).collect();
        for delivery in &pending {
            let held = Delivery { status: DeliveryStatus::Held, next_attempt_at: None, ..delivery.clone() };
            state.put_delivery(&held);
        }
        Ok(pending.len() as u64)
    }

    async fn fail_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        reason: FailureReason,
        limit: u32,
    ) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let unfinished = of_tenant(&state.deliveries, tenant).filter(|delivery| {
            delivery.subscription_id == subscription
                && matches!(delivery.status, DeliveryStatus::Pending | DeliveryStatus::Held)
        });
        let unfinished: Vec<Delivery> = unfinished.take(limit as usize).cloned().collect();
        for delivery in &unfinished {
            let (status, failure_reason) = (DeliveryStatus::Failed, Some(reason));
            state.put_delivery(&Delivery { status, failure_reason, next_attempt_at: None, ..delivery.clone() });
        }
        Ok(unfinished.len() as u64)
    }

    async fn nth_listed(
        &mut self,
        tenant: TenantId,
        filter: &DeliveryFilter,
        n: u32,
    ) -> StoreResult<Option<Timestamp>> {
        let status = filter.indexed_status();
        let all = DeliveryFilter { kind: None, status, limit: 0, ..filter.clone() };
        Ok(self.list_deliveries(tenant, &all).await?.get(n as usize).map(|delivery| delivery.created_at))
    }

    async fn count_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        status: DeliveryStatus,
    ) -> StoreResult<u64> {
        if status == DeliveryStatus::Succeeded {
            return Ok(0);
        }
        let (subscription_id, status, limit) = (Some(subscription), Some(status), MAX_BACKLOG_COUNT);
        let filter = DeliveryFilter { subscription_id, status, limit, ..DeliveryFilter::default() };
        Ok(self.list_deliveries(tenant, &filter).await?.len() as u64)
    }

    async fn backlog(&mut self, status: DeliveryStatus) -> StoreResult<Backlog> {
        let counts = |delivery: &&Delivery| {
            delivery.status == status
                && status != DeliveryStatus::Succeeded
                && (status == DeliveryStatus::Pending || !self.state.is_sandbox(delivery.tenant_id))
        };
        let mut times: Vec<Timestamp> =
            self.state.deliveries.values().filter(counts).map(|delivery| delivery.created_at).collect();
        times.sort_unstable();
        times.truncate(MAX_BACKLOG_COUNT as usize);
        Ok(Backlog { deliveries: times.len() as u64, oldest: times.first().copied() })
    }
}

#[async_trait]
impl ReplayRepository for MemoryTx<'_> {
    async fn insert_replay(&mut self, replay: &Replay) -> StoreResult<()> {
        insert(&mut self.state_mut()?.replays, (replay.tenant_id, replay.id), replay)?;
        self.delivery_wakeup.mark();
        Ok(())
    }

    async fn replay(&mut self, tenant: TenantId, id: ReplayId) -> StoreResult<Option<Replay>> {
        Ok(self.state.replays.get(&(tenant, id)).cloned())
    }

    async fn replays(&mut self, tenant: TenantId, limit: u32) -> StoreResult<Vec<Replay>> {
        Ok(of_tenant(&self.state.replays, tenant).rev().take(limit as usize).cloned().collect())
    }

    async fn unfinished_replay(&mut self, tenant: TenantId) -> StoreResult<Option<Replay>> {
        let unfinished = of_tenant(&self.state.replays, tenant).filter(|replay| replay.finished_at.is_none());
        Ok(unfinished.min_by_key(|replay| (replay.stepped_at, replay.id)).cloned())
    }

    async fn tenants_with_unfinished_replays(&mut self, limit: u32) -> StoreResult<Vec<TenantId>> {
        Ok(self.unfinished_replays(limit).await?.into_iter().map(|replay| replay.tenant_id).collect())
    }

    async fn replaying_tenants_of(&mut self, tenants: &[TenantId]) -> StoreResult<Vec<TenantId>> {
        let mut replaying = self.tenants_with_unfinished_replays(u32::MAX).await?;
        replaying.retain(|tenant| tenants.contains(tenant));
        replaying.sort();
        replaying.dedup();
        Ok(replaying)
    }

    async fn unfinished_replays(&mut self, limit: u32) -> StoreResult<Vec<Replay>> {
        let mut unfinished: Vec<&Replay> =
            self.state.replays.values().filter(|replay| replay.finished_at.is_none()).collect();
        unfinished.sort_by_key(|replay| (replay.stepped_at, replay.id));
        Ok(unfinished.into_iter().take(limit as usize).cloned().collect())
    }

    async fn update_replay(&mut self, replay: &Replay) -> StoreResult<()> {
        self.state_mut()?.replays.put((replay.tenant_id, replay.id), replay.clone());
        Ok(())
    }
}
