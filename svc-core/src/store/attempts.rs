//! Attempts of deliveries, and how many there were in each hour.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, AttemptSummary, DeliveryId};
use crate::webhooks::statistics::{AttemptCount, CHART_HOURS};
use crate::webhooks::subscriptions::SubscriptionId;

/// The result of [`AttemptRepository::delete_responses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeletedResponses {
    /// The number of response bodies that were deleted.
    pub responses: u32,
    /// The last delivery whose response bodies were deleted. `None` if there is none left.
    pub last: Option<DeliveryId>,
}

/// The logs of delivery attempts.
#[async_trait]
pub trait AttemptRepository: Send {
    /// Adds an attempt to the log of a delivery.
    async fn insert_attempt(
        &mut self,
        tenant: TenantId,
        delivery: DeliveryId,
        log: &AttemptLog,
    ) -> Result<(), StoreError>;

    /// Returns the log of a delivery, first attempt first.
    async fn attempts(&mut self, tenant: TenantId, delivery: DeliveryId) -> Result<Vec<AttemptLog>, StoreError>;

    /// Deletes the response bodies of the attempts of an endpoint's next `limit` deliveries whose ids follow `after`.
    async fn delete_responses(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        after: DeliveryId,
        limit: u32,
    ) -> Result<DeletedResponses, StoreError>;

    /// Returns the attempts of an endpoint's deliveries of events at or after `since` and before `until`, in any order.
    async fn attempt_summaries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<AttemptSummary>, StoreError>;
}

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
