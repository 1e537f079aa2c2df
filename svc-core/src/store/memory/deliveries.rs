//! Deliveries, their attempts, and the turns of endpoints.

use async_trait::async_trait;
use uuid::Uuid;

use super::{Key, MemoryTx, State, conflict, insert, of_tenant};
use crate::error::StoreError;
use crate::store::{DeliveryFilter, DeliveryStore};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, AttemptSummary, BACKLOG_COUNTED, Backlog, Delivery, DeliveryStatus};
use crate::webhooks::events::Event;
use crate::webhooks::replays::Replay;
use crate::webhooks::subscriptions::WebhookSubscription;

/// Its place among what is due, while it is pending.
fn due(delivery: &Delivery) -> Option<(Key, Timestamp, Uuid)> {
    let at = delivery.next_attempt_at.filter(|_| delivery.status == DeliveryStatus::Pending)?;
    Some(((delivery.tenant_id, delivery.subscription_id), at, delivery.id))
}

impl State {
    /// The pending deliveries of an endpoint, longest due first.
    fn pending(&self, endpoint: Key) -> impl Iterator<Item = (Timestamp, &Delivery)> {
        let (first, last) = (Timestamp::from_micros(i64::MIN), Timestamp::from_micros(i64::MAX));
        let due = self.due.range((endpoint, first, Uuid::nil())..=(endpoint, last, Uuid::max()));
        due.filter_map(move |((_, at, id), ())| Some((*at, self.deliveries.get(&(endpoint.0, *id))?)))
    }

    /// Replaces a delivery and its place among what is due.
    fn put_delivery(&mut self, delivery: &Delivery) {
        let key = (delivery.tenant_id, delivery.id);
        if let Some(place) = self.deliveries.get(&key).and_then(due) {
            self.due.take(&place);
        }
        if let Some(place) = due(delivery) {
            self.due.put(place, ());
        }
        self.deliveries.put(key, delivery.clone());
    }

    fn put_turn(&mut self, endpoint: Key, at: Option<Timestamp>) {
        if let Some(before) = self.turns.get(&endpoint).copied() {
            self.turns_by_time.take(&(before, endpoint));
            self.turns.take(&endpoint);
        }
        if let Some(at) = at {
            self.turns_by_time.put((at, endpoint), ());
            self.turns.put(endpoint, at);
        }
    }
}

#[async_trait]
impl DeliveryStore for MemoryTx<'_> {
    async fn insert_delivery(&mut self, delivery: &Delivery) -> Result<(), StoreError> {
        let state = self.writable()?;
        insert(&mut state.deliveries, (delivery.tenant_id, delivery.id), delivery)?;
        state.put_delivery(delivery);
        match delivery.next_attempt_at {
            Some(due) => self.schedule_endpoint_by(delivery.tenant_id, delivery.subscription_id, due).await,
            None => Ok(()),
        }
    }

    async fn delivery(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Delivery>, StoreError> {
        Ok(self.state.deliveries.get(&(tenant, id)).cloned())
    }

    async fn deliveries(&mut self, tenant: TenantId, ids: &[Uuid]) -> Result<Vec<Delivery>, StoreError> {
        Ok(ids.iter().filter_map(|id| self.state.deliveries.get(&(tenant, *id))).cloned().collect())
    }

    async fn update_delivery(&mut self, delivery: &Delivery, lease: Option<Uuid>) -> Result<(), StoreError> {
        let state = self.writable()?;
        let stored = state.deliveries.get(&(delivery.tenant_id, delivery.id));
        if stored.is_some_and(|stored| stored.lease == lease) {
            state.put_delivery(delivery);
        }
        Ok(())
    }

    async fn list_deliveries(
        &mut self,
        tenant: TenantId,
        filter: &DeliveryFilter,
    ) -> Result<Vec<Delivery>, StoreError> {
        let wanted = |delivery: &&Delivery| {
            filter.subscription_id.is_none_or(|wanted| delivery.subscription_id == wanted)
                && filter.event_id.is_none_or(|wanted| delivery.event_id == wanted)
                && filter.status.is_none_or(|wanted| delivery.status == wanted)
                && filter.kind.is_none_or(|wanted| delivery.kind == wanted)
                && filter.since.is_none_or(|since| delivery.created_at >= since)
                && filter.until.is_none_or(|until| delivery.created_at < until)
        };
        let limit = if filter.limit == 0 { usize::MAX } else { filter.limit as usize };
        let rows = of_tenant(&self.state.deliveries, tenant).filter(wanted);
        Ok(if filter.oldest_first {
            rows.take(limit).cloned().collect()
        } else {
            rows.rev().take(limit).cloned().collect()
        })
    }

    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<(Delivery, Event)>, StoreError> {
        let due = self.state.pending((tenant, subscription)).take_while(|(at, _)| *at <= now);
        let with_event = due.filter_map(|(_, delivery)| {
            Some((delivery.clone(), self.state.events.get(&(tenant, delivery.event_id))?.clone()))
        });
        Ok(with_event.take(limit as usize).collect())
    }

    async fn next_due(&mut self, tenant: TenantId, subscription: Uuid) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state.pending((tenant, subscription)).next().map(|(at, _)| at))
    }

    async fn hold_deliveries(&mut self, tenant: TenantId, subscription: Uuid) -> Result<(), StoreError> {
        let state = self.writable()?;
        let pending: Vec<Delivery> =
            state.pending((tenant, subscription)).map(|(_, delivery)| delivery.clone()).collect();
        for mut delivery in pending {
            delivery.status = DeliveryStatus::Held;
            delivery.next_attempt_at = None;
            state.put_delivery(&delivery);
        }
        Ok(())
    }

    async fn due_endpoints(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, Uuid)>, StoreError> {
        let turns = self.state.turns_by_time.keys().take_while(|(at, _)| *at <= now);
        Ok(turns.take(limit as usize).map(|(_, endpoint)| *endpoint).collect())
    }

    async fn next_endpoint_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.state.turns_by_time.keys().next().map(|(at, _)| *at))
    }

    async fn schedule_endpoint(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        self.writable()?.put_turn((tenant, subscription), at);
        Ok(())
    }

    async fn schedule_endpoint_by(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let (state, endpoint) = (self.writable()?, (tenant, subscription));
        if state.turns.get(&endpoint).is_none_or(|turn| at < *turn) {
            state.put_turn(endpoint, Some(at));
        }
        self.delivery_wakeup.mark();
        Ok(())
    }

    async fn insert_attempt(&mut self, tenant: TenantId, delivery: Uuid, log: &AttemptLog) -> Result<(), StoreError> {
        let attempts = &mut self.writable()?.attempts;
        if attempts.add(((tenant, delivery), log.attempt), log.clone()) { Ok(()) } else { Err(conflict("attempt")) }
    }

    async fn attempts(&mut self, tenant: TenantId, delivery: Uuid) -> Result<Vec<AttemptLog>, StoreError> {
        let of_delivery = ((tenant, delivery), 0)..=((tenant, delivery), u32::MAX);
        Ok(self.state.attempts.range(of_delivery).map(|(_, log)| log.clone()).collect())
    }

    async fn attempt_summaries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<AttemptSummary>, StoreError> {
        let filter = DeliveryFilter {
            subscription_id: Some(subscription),
            since: Some(since),
            until: Some(until),
            ..DeliveryFilter::default()
        };
        let mut summaries = Vec::new();
        for delivery in self.list_deliveries(tenant, &filter).await? {
            summaries.extend(self.attempts(tenant, delivery.id).await?.iter().map(AttemptLog::summary));
        }
        Ok(summaries)
    }

    async fn count_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        state: DeliveryStatus,
    ) -> Result<u64, StoreError> {
        let filter =
            DeliveryFilter { subscription_id: Some(subscription), status: Some(state), ..DeliveryFilter::default() };
        Ok(self.list_deliveries(tenant, &filter).await?.len() as u64)
    }

    async fn backlog(&mut self, wanted: DeliveryStatus) -> Result<Backlog, StoreError> {
        let waits = |delivery: &&Delivery| delivery.status == wanted && wanted != DeliveryStatus::Succeeded;
        let mut times: Vec<Timestamp> =
            self.state.deliveries.values().filter(waits).map(|delivery| delivery.created_at).collect();
        times.sort_unstable();
        times.truncate(BACKLOG_COUNTED as usize);
        Ok(Backlog { deliveries: times.len() as u64, oldest: times.first().copied() })
    }

    async fn insert_replay(&mut self, replay: &Replay) -> Result<(), StoreError> {
        insert(&mut self.writable()?.replays, (replay.tenant_id, replay.id), replay)?;
        self.delivery_wakeup.mark();
        Ok(())
    }

    async fn replay(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Replay>, StoreError> {
        Ok(self.state.replays.get(&(tenant, id)).cloned())
    }

    async fn replays(&mut self, tenant: TenantId, limit: u32) -> Result<Vec<Replay>, StoreError> {
        Ok(of_tenant(&self.state.replays, tenant).rev().take(limit as usize).cloned().collect())
    }

    async fn unfinished_replay(&mut self, tenant: TenantId) -> Result<Option<Replay>, StoreError> {
        let unfinished = of_tenant(&self.state.replays, tenant).filter(|replay| replay.finished_at.is_none());
        Ok(unfinished.min_by_key(|replay| (replay.stepped_at, replay.id)).cloned())
    }

    async fn tenants_with_replays(&mut self, limit: u32) -> Result<Vec<TenantId>, StoreError> {
        let mut unfinished: Vec<&Replay> =
            self.state.replays.values().filter(|replay| replay.finished_at.is_none()).collect();
        unfinished.sort_by_key(|replay| (replay.stepped_at, replay.id));
        Ok(unfinished.into_iter().take(limit as usize).map(|replay| replay.tenant_id).collect())
    }

    async fn update_replay(&mut self, replay: &Replay) -> Result<(), StoreError> {
        self.writable()?.replays.put((replay.tenant_id, replay.id), replay.clone());
        Ok(())
    }

    async fn update_delivery_state(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> Result<(), StoreError> {
        self.writable()?.subscriptions.change(&(tenant, subscription.id), |stored| {
            stored.last_delivery_at = subscription.last_delivery_at;
            stored.last_delivery_status = subscription.last_delivery_status;
            stored.consecutive_failures = subscription.consecutive_failures;
        });
        Ok(())
    }
}
