//! Attempts of deliveries, and how many there were in each hour.

use async_trait::async_trait;

use super::{MemoryTx, Tables, conflict, of_tenant};
use crate::store::{
    AttemptCountRepository, AttemptRepository, DeletedResponses, DeliveryFilter, DeliveryRepository as _, StoreResult,
};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, AttemptSummary, DeliveryId};
use crate::webhooks::events::EventId;
use crate::webhooks::statistics::{AttemptCount, CHART_HOURS};
use crate::webhooks::subscriptions::SubscriptionId;

impl Tables {
    /// Deletes the response bodies of the attempts of a delivery, and returns how many there were.
    fn take_responses(&mut self, tenant: TenantId, delivery: DeliveryId) -> u32 {
        let of_delivery = ((tenant, delivery), 0)..=((tenant, delivery), u32::MAX);
        let keys: Vec<_> = self.attempts.range(of_delivery).map(|(key, _)| *key).collect();
        let mut responses = 0;
        for key in keys {
            self.attempts.change(&key, |log| {
                if log.response_body.take().is_some() {
                    log.response_truncated = true;
                    responses += 1;
                }
            });
        }
        responses
    }
}

#[async_trait]
impl AttemptRepository for MemoryTx<'_> {
    async fn insert_attempt(&mut self, tenant: TenantId, delivery: DeliveryId, log: &AttemptLog) -> StoreResult<()> {
        let attempts = &mut self.state_mut()?.attempts;
        if attempts.add(((tenant, delivery), log.attempt), log.clone()) { Ok(()) } else { Err(conflict("attempt")) }
    }

    async fn attempts(
        &mut self,
        tenant: TenantId,
        delivery: DeliveryId,
        before: u32,
        limit: u32,
    ) -> StoreResult<Vec<AttemptLog>> {
        let of_delivery = ((tenant, delivery), 0)..((tenant, delivery), before);
        let attempts = self.state.attempts.range(of_delivery).rev();
        Ok(attempts.take(limit as usize).map(|(_, log)| log.clone()).collect())
    }

    async fn delete_responses(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        after: DeliveryId,
        limit: u32,
    ) -> StoreResult<DeletedResponses> {
        let state = self.state_mut()?;
        let next = of_tenant(&state.deliveries, tenant)
            .filter(|delivery| delivery.subscription_id == subscription && delivery.id > after);
        let next: Vec<DeliveryId> = next.map(|delivery| delivery.id).take(limit as usize).collect();
        let responses = next.iter().map(|id| state.take_responses(tenant, *id)).sum();
        Ok(DeletedResponses { responses, last: next.last().copied() })
    }

    async fn delete_responses_to(&mut self, tenant: TenantId, event: EventId) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let deliveries = of_tenant(&state.deliveries, tenant).filter(|delivery| delivery.event_id == event);
        let deliveries: Vec<DeliveryId> = deliveries.map(|delivery| delivery.id).collect();
        Ok(deliveries.into_iter().map(|id| u64::from(state.take_responses(tenant, id))).sum())
    }

    async fn attempt_summaries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        since: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<AttemptSummary>> {
        let filter = DeliveryFilter {
            subscription_id: Some(subscription),
            since: Some(since),
            until: Some(until),
            ..DeliveryFilter::default()
        };
        let mut summaries = Vec::new();
        for delivery in self.list_deliveries(tenant, &filter).await? {
            let attempts = self.attempts(tenant, delivery.id, u32::MAX, u32::MAX).await?;
            summaries.extend(attempts.iter().map(AttemptLog::summary));
        }
        Ok(summaries)
    }
}

#[async_trait]
impl AttemptCountRepository for MemoryTx<'_> {
    async fn add_attempt_counts(&mut self, counts: &[AttemptCount]) -> StoreResult<()> {
        let table = &mut self.state_mut()?.attempt_counts;
        for count in counts {
            let AttemptCount { hour, tenant_id, subscription_id, outcome, duration_ms, attempts } = *count;
            let key = (hour, tenant_id, subscription_id, outcome, duration_ms);
            let stored = table.get(&key).copied().unwrap_or_default();
            table.put(key, stored + attempts);
        }
        Ok(())
    }

    async fn attempt_counts(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        hours: &[Timestamp; CHART_HOURS],
    ) -> StoreResult<Vec<AttemptCount>> {
        let all = self.state.attempt_counts.iter().map(|(key, attempts)| AttemptCount::new(*key, *attempts));
        let wanted = |count: &AttemptCount| {
            count.tenant_id == tenant && count.subscription_id == subscription && hours.contains(&count.hour)
        };
        Ok(all.filter(wanted).collect())
    }

    async fn delete_attempt_counts(&mut self, tenant: TenantId, hours: &[Timestamp; CHART_HOURS]) -> StoreResult<()> {
        let counts = &mut self.state_mut()?.attempt_counts;
        counts.take_first(u32::MAX, |(hour, of, ..), _| *of == tenant && hours.contains(hour));
        Ok(())
    }

    async fn delete_attempt_counts_before(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        Ok(self.state_mut()?.attempt_counts.take_first(limit, |(hour, ..), _| *hour < before))
    }
}
