//! Deletion of what is older than its retention period.

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreResult;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::retention::{DroppedHistory, ExpiredKind, IdRange};

/// Deletes what is older than its retention period, in steps of bounded cost.
#[async_trait]
pub trait RetentionRepository: Send {
    /// Makes what [`drop_expired`](Self::drop_expired) needs for a place of what comes after `now`, without a lock that others wait
    /// for. `before` is the end of the retention. A store that has no such places does nothing.
    async fn prepare_partition(&mut self, now: Timestamp, before: Timestamp) -> StoreResult<()>;

    /// Does one step: prepares the place of what comes after `now`, or drops at once some of what a store keeps apart by its time
    /// and what is older than `before`. Events with a pending delivery are moved, with all that belongs to them. A step that would
    /// keep writes waiting for long is not done.
    ///
    /// `before` is the end of the retention, and `sent_before` the time before which every stream has sent all events: only what
    /// is older than both is dropped. A store that has no such places does nothing.
    async fn drop_expired(
        &mut self,
        now: Timestamp,
        before: Timestamp,
        sent_before: Timestamp,
    ) -> StoreResult<DroppedHistory>;

    /// Returns the last of the first `limit` events in a range.
    async fn last_event(&mut self, tenant: TenantId, range: IdRange, limit: u32) -> StoreResult<Option<Uuid>>;

    /// Returns the delivery in a range that has `n` others before it.
    async fn nth_delivery(&mut self, tenant: TenantId, range: IdRange, n: u32) -> StoreResult<Option<Uuid>>;

    /// Deletes at most `limit` rows of one kind in a range, and returns how many. Its cost is bounded by the number of events
    /// and deliveries in the range.
    ///
    /// Pending deliveries stay with their attempts, and so does every event that has a delivery in the range.
    async fn delete_expired(
        &mut self,
        tenant: TenantId,
        kind: ExpiredKind,
        range: IdRange,
        limit: u32,
    ) -> StoreResult<u64>;

    /// Returns how many rows repeated calls of [`delete_expired`](RetentionRepository::delete_expired) would delete.
    async fn count_expired(&mut self, tenant: TenantId, kind: ExpiredKind, range: IdRange) -> StoreResult<u64>;

    /// Deletes at most `limit` bulk replays of a tenant that were finished before `before`, and returns how many.
    async fn delete_finished_replays(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> StoreResult<u64>;

    /// Returns how many bulk replays of a tenant were finished before `before`.
    async fn count_finished_replays(&mut self, tenant: TenantId, before: Timestamp) -> StoreResult<u64>;

    /// Returns the first `limit` tenants after the tenant `after`, in the order of their ids, and of each whether it has an
    /// event or a bulk replay from before `before`.
    async fn tenants_by_history(
        &mut self,
        after: TenantId,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(TenantId, bool)>>;

    /// Deletes at most `limit` stored responses from before `stored_before`, and at most `limit` used signatures that
    /// expired before `now`. Returns how many rows were deleted.
    async fn delete_request_records(
        &mut self,
        stored_before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<u64>;

    /// Returns how many rows repeated calls of [`delete_request_records`](RetentionRepository::delete_request_records)
    /// would delete.
    async fn count_request_records(&mut self, stored_before: Timestamp, now: Timestamp) -> StoreResult<u64>;
}
