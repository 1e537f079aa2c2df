//! When endpoints are due.

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};

/// An endpoint: a subscription of a tenant, which deliveries are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The subscription.
    pub subscription_id: Uuid,
}

/// The schedule of endpoints: each endpoint with pending deliveries has a time from which on it is due.
///
/// Senders poll the schedule rather than the deliveries, so an endpoint with a large backlog delays no other.
#[async_trait]
pub trait EndpointSchedule: Send {
    /// Returns at most `limit` endpoints that are due at `now`, longest due first.
    async fn due_endpoints(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Endpoint>, StoreError>;

    /// Returns when the first endpoint is due.
    async fn next_endpoint_due(&mut self) -> Result<Option<Timestamp>, StoreError>;

    /// Sets when an endpoint is due. `None` removes it from the schedule, as it has nothing to send.
    async fn schedule_endpoint(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        due_at: Option<Timestamp>,
    ) -> Result<(), StoreError>;

    /// Makes an endpoint due at `due_at` unless it is due earlier, and wakes the sender after the commit.
    async fn schedule_endpoint_by(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        due_at: Timestamp,
    ) -> Result<(), StoreError>;
}
