//! Attempts of deliveries.

use async_trait::async_trait;
use uuid::Uuid;

use super::{MemoryTx, conflict};
use crate::error::StoreError;
use crate::store::{AttemptRepository, DeliveryFilter, DeliveryRepository as _};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, AttemptSummary};

#[async_trait]
impl AttemptRepository for MemoryTx<'_> {
    async fn insert_attempt(&mut self, tenant: TenantId, delivery: Uuid, log: &AttemptLog) -> Result<(), StoreError> {
        let attempts = &mut self.state_mut()?.attempts;
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
}
