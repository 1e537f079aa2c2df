//! Attempts of deliveries.

use async_trait::async_trait;

use super::{MemoryTx, conflict, of_tenant};
use crate::error::StoreError;
use crate::store::{AttemptRepository, DeletedResponses, DeliveryFilter, DeliveryRepository as _};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, AttemptSummary, DeliveryId};
use crate::webhooks::subscriptions::SubscriptionId;

#[async_trait]
impl AttemptRepository for MemoryTx<'_> {
    async fn insert_attempt(
        &mut self,
        tenant: TenantId,
        delivery: DeliveryId,
        log: &AttemptLog,
    ) -> Result<(), StoreError> {
        let attempts = &mut self.state_mut()?.attempts;
        if attempts.add(((tenant, delivery), log.attempt), log.clone()) { Ok(()) } else { Err(conflict("attempt")) }
    }

    async fn attempts(&mut self, tenant: TenantId, delivery: DeliveryId) -> Result<Vec<AttemptLog>, StoreError> {
        let of_delivery = ((tenant, delivery), 0)..=((tenant, delivery), u32::MAX);
        Ok(self.state.attempts.range(of_delivery).map(|(_, log)| log.clone()).collect())
    }

    async fn delete_responses(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        after: DeliveryId,
        limit: u32,
    ) -> Result<DeletedResponses, StoreError> {
        let state = self.state_mut()?;
        let next = of_tenant(&state.deliveries, tenant)
            .filter(|delivery| delivery.subscription_id == subscription && delivery.id > after);
        let next: Vec<DeliveryId> = next.map(|delivery| delivery.id).take(limit as usize).collect();
        let mut responses = 0;
        for id in &next {
            let of_delivery = ((tenant, *id), 0)..=((tenant, *id), u32::MAX);
            let keys: Vec<_> = state.attempts.range(of_delivery).map(|(key, _)| *key).collect();
            for key in keys {
                state.attempts.change(&key, |log| {
                    if log.response_body.take().is_some() {
                        log.response_truncated = true;
                        responses += 1;
                    }
                });
            }
        }
        Ok(DeletedResponses { responses, last: next.last().copied() })
    }

    async fn attempt_summaries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
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
}
