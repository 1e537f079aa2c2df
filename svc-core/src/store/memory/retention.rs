//! What has had its day.

use async_trait::async_trait;
use uuid::Uuid;

use super::{MemoryTx, State, of_tenant};
use crate::env::first_id_at;
use crate::error::StoreError;
use crate::store::RetentionStore;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{Delivery, DeliveryStatus};
use crate::webhooks::replays::Replay;
use crate::webhooks::retention::{EventRange, ExpiredKind};

fn is_finished(delivery: &Delivery) -> bool {
    matches!(delivery.status, DeliveryStatus::Succeeded | DeliveryStatus::Failed)
}

fn is_over(replay: &Replay, before: Timestamp) -> bool {
    replay.finished_at.is_some_and(|at| at < before)
}

impl State {
    fn deliveries_of(&self, tenant: TenantId, range: EventRange) -> impl Iterator<Item = &Delivery> {
        let within = move |delivery: &&Delivery| delivery.event_id > range.after && delivery.event_id <= range.until;
        of_tenant(&self.deliveries, tenant).filter(within)
    }

    fn finished(&self, tenant: TenantId, range: EventRange) -> Vec<Uuid> {
        self.deliveries_of(tenant, range).filter(|delivery| is_finished(delivery)).map(|delivery| delivery.id).collect()
    }

    /// The logs of deliveries, by number.
    fn logs(&self, tenant: TenantId, deliveries: &[Uuid]) -> Vec<((TenantId, Uuid), u32)> {
        let logs = deliveries.iter().flat_map(|id| self.attempts.range(((tenant, *id), 0)..=((tenant, *id), u32::MAX)));
        logs.map(|(key, _)| *key).collect()
    }

    /// The events that have no delivery which keeps them.
    fn abandoned(&self, tenant: TenantId, range: EventRange, keeps: impl Fn(&Delivery) -> bool) -> Vec<Uuid> {
        let kept: Vec<Uuid> = self
            .deliveries_of(tenant, range)
            .filter(|delivery| keeps(delivery))
            .map(|delivery| delivery.event_id)
            .collect();
        let events = self.events.range((tenant, range.after)..=(tenant, range.until)).map(|((_, id), _)| *id);
        events.filter(|id| *id > range.after && !kept.contains(id)).collect()
    }
}

#[async_trait]
impl RetentionStore for MemoryTx<'_> {
    async fn expired_until(
        &mut self,
        tenant: TenantId,
        after: Uuid,
        before: Timestamp,
        limit: u32,
    ) -> Result<Option<Uuid>, StoreError> {
        let end = first_id_at(before);
        let events = of_tenant(&self.state.events, tenant).map(|event| event.id);
        Ok(events.filter(|id| *id > after && *id < end).take(limit as usize).last())
    }

    async fn drop_expired(
        &mut self,
        tenant: TenantId,
        remains: ExpiredKind,
        range: EventRange,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let (state, limit) = (self.writable()?, limit as usize);
        let finished = state.finished(tenant, range);
        let dropped = match remains {
            ExpiredKind::Attempts => {
                let mut logs = state.logs(tenant, &finished);
                logs.truncate(limit);
                logs.iter().for_each(|key| state.attempts.take(key));
                logs.len()
            }
            ExpiredKind::Deliveries => {
                let finished = &finished[..limit.min(finished.len())];
                finished.iter().for_each(|id| state.deliveries.take(&(tenant, *id)));
                finished.len()
            }
            ExpiredKind::Event => {
                let mut events = state.abandoned(tenant, range, |_| true);
                events.truncate(limit);
                events.iter().for_each(|id| state.events.take(&(tenant, *id)));
                events.len()
            }
        };
        Ok(dropped as u64)
    }

    async fn count_expired(
        &mut self,
        tenant: TenantId,
        remains: ExpiredKind,
        range: EventRange,
    ) -> Result<u64, StoreError> {
        let finished = self.state.finished(tenant, range);
        let count = match remains {
            ExpiredKind::Attempts => self.state.logs(tenant, &finished).len(),
            ExpiredKind::Deliveries => finished.len(),
            ExpiredKind::Event => self.state.abandoned(tenant, range, |delivery| !is_finished(delivery)).len(),
        };
        Ok(count as u64)
    }

    async fn drop_replays(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let state = self.writable()?;
        let over = of_tenant(&state.replays, tenant).filter(|replay| is_over(replay, before));
        let over: Vec<Uuid> = over.map(|replay| replay.id).take(limit as usize).collect();
        over.iter().for_each(|id| state.replays.take(&(tenant, *id)));
        Ok(over.len() as u64)
    }

    async fn count_replays(&mut self, tenant: TenantId, before: Timestamp) -> Result<u64, StoreError> {
        Ok(of_tenant(&self.state.replays, tenant).filter(|replay| is_over(replay, before)).count() as u64)
    }

    async fn count_prunable(&mut self, recorded_before: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
        let answers = self.state.recorded.values().filter(|recorded| recorded.created_at < recorded_before).count();
        let signatures = self.state.signatures.values().filter(|expires_at| **expires_at < now).count();
        Ok((answers + signatures) as u64)
    }
}
