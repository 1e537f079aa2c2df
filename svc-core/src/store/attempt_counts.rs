//! The repository of the counts of attempts.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::statistics::{AttemptCount, CHART_HOURS};
use crate::webhooks::subscriptions::SubscriptionId;

/// How many attempts there were in each hour, for charts.
#[async_trait]
pub trait AttemptCountRepository: Send {
    /// Adds these counts to those that are stored, in a few statements however many they are. No two of them differ in
    /// `attempts` alone.
    async fn add_attempt_counts(&mut self, counts: &[AttemptCount]) -> Result<(), StoreError>;

    /// Returns the counts of these hours, of one endpoint or of [`ALL_ENDPOINTS`](crate::webhooks::statistics::ALL_ENDPOINTS),
    /// in any order.
    async fn attempt_counts(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        hours: &[Timestamp; CHART_HOURS],
    ) -> Result<Vec<AttemptCount>, StoreError>;

    /// Deletes at most `limit` counts of all tenants of hours before `before`, and returns how many.
    async fn delete_attempt_counts_before(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
