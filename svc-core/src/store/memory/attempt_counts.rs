//! The counts of attempts.

use async_trait::async_trait;

use super::MemoryTx;
use crate::error::StoreError;
use crate::store::AttemptCountRepository;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::statistics::{AttemptCount, CHART_HOURS};
use crate::webhooks::subscriptions::SubscriptionId;

#[async_trait]
impl AttemptCountRepository for MemoryTx<'_> {
    async fn add_attempt_counts(&mut self, counts: &[AttemptCount]) -> Result<(), StoreError> {
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
    ) -> Result<Vec<AttemptCount>, StoreError> {
        let all = self.state.attempt_counts.iter().map(|(key, attempts)| AttemptCount::new(*key, *attempts));
        let wanted = |count: &AttemptCount| {
            count.tenant_id == tenant && count.subscription_id == subscription && hours.contains(&count.hour)
        };
        Ok(all.filter(wanted).collect())
    }

    async fn delete_attempt_counts_before(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let table = &mut self.state_mut()?.attempt_counts;
        let expired: Vec<_> = table.keys().filter(|(hour, ..)| *hour < before).take(limit as usize).copied().collect();
        expired.iter().for_each(|key| table.take(key));
        Ok(expired.len() as u64)
    }
}
