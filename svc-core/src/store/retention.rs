//! Deletion of what is older than its retention period.

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::retention::{EventRange, ExpiredKind};

/// Deletes what is older than its retention period, in steps of bounded cost.
#[async_trait]
pub trait RetentionRepository: Send {
    /// Returns the id of the last of at most `limit` events that follow the event `after` and are older than `before`, or
    /// `None` if there is no such event.
    async fn last_expired_event(
        &mut self,
        tenant: TenantId,
        after: Uuid,
        before: Timestamp,
        limit: u32,
    ) -> Result<Option<Uuid>, StoreError>;

    /// Deletes at most `limit` rows of one kind that belong to these events, and returns how many. Its cost is
    /// bounded by the number of deliveries of the events.
    ///
    /// Pending and held deliveries stay with their attempts, and so does every event that has a delivery.
    async fn delete_expired(
        &mut self,
        tenant: TenantId,
        kind: ExpiredKind,
        range: EventRange,
        limit: u32,
    ) -> Result<u64, StoreError>;

    /// Returns how many rows repeated calls of [`delete_expired`](RetentionRepository::delete_expired) would delete.
    async fn count_expired(
        &mut self,
        tenant: TenantId,
        kind: ExpiredKind,
        range: EventRange,
    ) -> Result<u64, StoreError>;

    /// Deletes at most `limit` bulk replays of a tenant that were finished before `before`, and returns how many.
    async fn delete_finished_replays(
        &mut self,
        tenant: TenantId,
        before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError>;

    /// Returns how many bulk replays of a tenant were finished before `before`.
    async fn count_finished_replays(&mut self, tenant: TenantId, before: Timestamp) -> Result<u64, StoreError>;

    /// Returns the first `limit` tenants after the tenant `after`, in the order of their ids, and of each whether it has an
    /// event or a bulk replay from before `before`.
    async fn tenants_by_history(
        &mut self,
        after: TenantId,
        before: Timestamp,
        limit: u32,
    ) -> Result<Vec<(TenantId, bool)>, StoreError>;

    /// Deletes at most `limit` stored responses from before `stored_before`, and at most `limit` used signatures that
    /// expired before `now`. Returns how many rows were deleted.
    async fn delete_request_records(
        &mut self,
        stored_before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError>;

    /// Returns how many rows repeated calls of [`delete_request_records`](RetentionRepository::delete_request_records)
    /// would delete.
    async fn count_request_records(&mut self, stored_before: Timestamp, now: Timestamp) -> Result<u64, StoreError>;
}
