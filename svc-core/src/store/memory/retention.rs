//! Deletion of what is older than its retention period.

use async_trait::async_trait;
use uuid::Uuid;

use super::{MemoryTx, Tables, of_tenant};
use crate::env::first_id_at;
use crate::store::{RetentionRepository, StoreResult};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{Delivery, DeliveryId, DeliveryStatus};
use crate::webhooks::events::EventId;
use crate::webhooks::replays::Replay;
use crate::webhooks::retention::{DroppedHistory, ExpiredKind, IdRange};

fn has_ended(delivery: &Delivery) -> bool {
    delivery.status != DeliveryStatus::Pending
}

fn is_finished_before(replay: &Replay, before: Timestamp) -> bool {
    replay.finished_at.is_some_and(|at| at < before)
}

impl Tables {
    fn deliveries_of(&self, tenant: TenantId, range: IdRange) -> impl Iterator<Item = &Delivery> {
        of_tenant(&self.deliveries, tenant).filter(move |delivery| range.contains(delivery.id.uuid()))
    }

    fn ended(&self, tenant: TenantId, range: IdRange) -> Vec<DeliveryId> {
        self.deliveries_of(tenant, range).filter(|delivery| has_ended(delivery)).map(|delivery| delivery.id).collect()
    }

    /// Returns the keys of the attempts of deliveries.
    fn attempts_of(&self, tenant: TenantId, deliveries: &[DeliveryId]) -> Vec<((TenantId, DeliveryId), u32)> {
        let attempts =
            deliveries.iter().flat_map(|id| self.attempts.range(((tenant, *id), 0)..=((tenant, *id), u32::MAX)));
        attempts.map(|(key, _)| *key).collect()
    }

    /// Returns the events without a delivery that keeps them.
    fn unused_events(&self, tenant: TenantId, range: IdRange, keeps: impl Fn(&Delivery) -> bool) -> Vec<EventId> {
        let kept: Vec<EventId> = self
            .deliveries_of(tenant, range)
            .filter(|delivery| keeps(delivery))
            .map(|delivery| delivery.event_id)
            .collect();
        let events =
            self.events.range((tenant, range.first.into())..(tenant, range.end.into())).map(|((_, id), _)| *id);
        events.filter(|id| !kept.contains(id)).collect()
    }
}

#[async_trait]
impl RetentionRepository for MemoryTx<'_> {
    async fn prepare_partition(&mut self, _now: Timestamp, _before: Timestamp) -> StoreResult<()> {
        Ok(())
    }

    async fn drop_expired(
        &mut self,
        _now: Timestamp,
        _before: Timestamp,
        _sent_before: Timestamp,
    ) -> StoreResult<DroppedHistory> {
        Ok(DroppedHistory::default())
    }

    async fn last_event(&mut self, tenant: TenantId, range: IdRange, limit: u32) -> StoreResult<Option<Uuid>> {
        let events =
            of_tenant(&self.state.events, tenant).map(|event| event.id.uuid()).filter(|id| range.contains(*id));
        Ok(events.take(limit as usize).last())
    }

    async fn nth_delivery(&mut self, tenant: TenantId, range: IdRange, n: u32) -> StoreResult<Option<Uuid>> {
        Ok(self.state.deliveries_of(tenant, range).nth(n as usize).map(|delivery| delivery.id.uuid()))
    }

    async fn delete_expired(
        &mut self,
        tenant: TenantId,
        kind: ExpiredKind,
        range: IdRange,
        limit: u32,
    ) -> StoreResult<u64> {
        let (state, limit) = (self.state_mut()?, limit as usize);
        let ended = state.ended(tenant, range);
        let deleted = match kind {
            ExpiredKind::Attempts => {
                let mut attempts = state.attempts_of(tenant, &ended);
                attempts.truncate(limit);
                attempts.iter().for_each(|key| state.attempts.take(key));
                attempts.len()
            }
            ExpiredKind::Deliveries => {
                let ended = &ended[..limit.min(ended.len())];
                ended.iter().for_each(|id| state.deliveries.take(&(tenant, *id)));
                ended.len()
            }
            ExpiredKind::Event => {
                let mut events = state.unused_events(tenant, range, |_| true);
                events.truncate(limit);
                events.iter().for_each(|id| state.events.take(&(tenant, *id)));
                events.len()
            }
        };
        Ok(deleted as u64)
    }

    async fn count_expired(&mut self, tenant: TenantId, kind: ExpiredKind, range: IdRange) -> StoreResult<u64> {
        let ended = self.state.ended(tenant, range);
        let count = match kind {
            ExpiredKind::Attempts => self.state.attempts_of(tenant, &ended).len(),
            ExpiredKind::Deliveries => ended.len(),
            ExpiredKind::Event => self.state.unused_events(tenant, range, |delivery| !has_ended(delivery)).len(),
        };
        Ok(count as u64)
    }

    async fn delete_finished_replays(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let replays = &mut self.state_mut()?.replays;
        Ok(replays.take_first(limit, |key, replay| key.0 == tenant && is_finished_before(replay, before)))
    }

    async fn count_finished_replays(&mut self, tenant: TenantId, before: Timestamp) -> StoreResult<u64> {
        Ok(of_tenant(&self.state.replays, tenant).filter(|replay| is_finished_before(replay, before)).count() as u64)
    }

    async fn tenants_by_history(
        &mut self,
        after: TenantId,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(TenantId, bool)>> {
        let (state, end) = (&self.state, first_id_at(before));
        let tenants = state.tenants.keys().filter(|tenant| **tenant > after).take(limit as usize);
        let has_history = |tenant: &TenantId| {
            let first = of_tenant(&state.events, *tenant).next().map(|event| event.id.uuid());
            let replay = of_tenant(&state.replays, *tenant).next().map(|replay| replay.id.uuid());
            (*tenant, first.into_iter().chain(replay).any(|id| id < end))
        };
        Ok(tenants.map(has_history).collect())
    }

    async fn delete_request_records(
        &mut self,
        stored_before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let responses = state.responses.take_first(limit, |_, response| response.created_at < stored_before);
        let signatures = state.used_signatures.iter().filter(|(_, expires_at)| **expires_at < now);
        let signatures: Vec<_> = signatures.map(|(key, until)| (*key, *until)).take(limit as usize).collect();
        for (key, expires_at) in &signatures {
            state.used_signatures.take(key);
            let until = state.signatures_deleted_until.get(&key.0).map_or(*expires_at, |until| *until.max(expires_at));
            state.signatures_deleted_until.put(key.0, until);
        }
        Ok(responses + signatures.len() as u64)
    }

    async fn count_request_records(&mut self, stored_before: Timestamp, now: Timestamp) -> StoreResult<u64> {
        let responses = self.state.responses.values().filter(|response| response.created_at < stored_before).count();
        let signatures = self.state.used_signatures.values().filter(|expires_at| **expires_at < now).count();
        Ok((responses + signatures) as u64)
    }
}
