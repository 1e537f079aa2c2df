//! Attempts of deliveries, and how many there were in each hour.

use async_trait::async_trait;

use super::StoreResult;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, AttemptSummary, DeliveryId};
use crate::webhooks::events::EventId;
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
    async fn insert_attempt(&mut self, tenant: TenantId, delivery: DeliveryId, log: &AttemptLog) -> StoreResult<()>;

    /// Returns the newest `limit` attempts at a delivery whose numbers are below `before`, newest first.
    async fn attempts(
        &mut self,
        tenant: TenantId,
        delivery: DeliveryId,
        before: u32,
        limit: u32,
    ) -> StoreResult<Vec<AttemptLog>>;

    /// Deletes the response bodies of the attempts of an endpoint's next `limit` deliveries whose ids follow `after`.
    async fn delete_responses(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        after: DeliveryId,
        limit: u32,
    ) -> StoreResult<DeletedResponses>;

    /// Deletes the response bodies of all attempts to deliver an event, and returns how many there were.
    async fn delete_responses_to(&mut self, tenant: TenantId, event: EventId) -> StoreResult<u64>;

    /// Returns the attempts of an endpoint's deliveries of events at or after `since` and before `until`, in any order.
    async fn attempt_summaries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        since: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<AttemptSummary>>;
}

/// How many attempts there were in each hour, for charts.
#[async_trait]
pub trait AttemptCountRepository: Send {
    /// Adds these counts to those that are stored, in a few statements however many they are. No two of them differ in
    /// `attempts` alone.
    async fn add_attempt_counts(&mut self, counts: &[AttemptCount]) -> StoreResult<()>;

    /// Returns the counts of these hours, of one endpoint or of [`ALL_ENDPOINTS`](crate::webhooks::statistics::ALL_ENDPOINTS),
    /// in any order.
    async fn attempt_counts(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        hours: &[Timestamp; CHART_HOURS],
    ) -> StoreResult<Vec<AttemptCount>>;

    /// Deletes the counts of these hours of a tenant and of all its endpoints.
    async fn delete_attempt_counts(&mut self, tenant: TenantId, hours: &[Timestamp; CHART_HOURS]) -> StoreResult<()>;

    /// Deletes at most `limit` counts of all tenants of hours before `before`, and returns how many.
    async fn delete_attempt_counts_before(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
