//! The repository of attempt logs.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, AttemptSummary, DeliveryId};
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
