//! Streams, their leases, and how far each of them has come in each account.

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreResult;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::streams::{AccountBehind, Stream, StreamKey};

/// The rows of [`streams`](crate::webhooks::streams).
#[async_trait]
pub trait StreamRepository: Send {
    /// Adds a stream, unless there is one with its key.
    async fn insert_stream(&mut self, stream: &Stream) -> StoreResult<()>;

    /// Returns a stream.
    async fn stream(&mut self, key: StreamKey) -> StoreResult<Option<Stream>>;

    /// Deletes a stream with its positions. Does nothing if there is none.
    async fn delete_stream(&mut self, key: StreamKey) -> StoreResult<()>;

    /// Gives the lease of a stream to the holder of `lease` until `ends_at`, if it is free at `now` or that holder has it
    /// already. Returns whether it did. The row stays locked until the transaction ends.
    async fn claim_stream(
        &mut self,
        key: StreamKey,
        lease: Uuid,
        now: Timestamp,
        ends_at: Timestamp,
    ) -> StoreResult<bool>;

    /// Makes the lease of a stream end at `ends_at` if `lease` has it, also if it has ended meanwhile. Returns whether it did.
    /// The row stays locked until the transaction ends.
    async fn renew_stream(&mut self, key: StreamKey, lease: Uuid, ends_at: Timestamp) -> StoreResult<bool>;

    /// Returns at most `limit` accounts that were written to after the position of a stream in them, in the order of their
    /// ids, after the account `after`. Of the stream of a subscription, that is its account or none.
    async fn accounts_behind(
        &mut self,
        stream: &Stream,
        after: Option<TenantId>,
        limit: u32,
    ) -> StoreResult<Vec<AccountBehind>>;

    /// Returns at most `limit` streams of subscriptions whose accounts were written to after their positions, in the order of
    /// their keys, after the stream `after`.
    async fn subscription_streams_behind(
        &mut self,
        after: Option<StreamKey>,
        limit: u32,
    ) -> StoreResult<Vec<StreamKey>>;

    /// Moves the position of a stream in an account forward. It never goes back. It stays where it is if it would be beyond the
    /// clock of the account, which was set back after these messages were read: what is written from then on has earlier times.
    async fn advance_stream(&mut self, key: StreamKey, tenant: TenantId, sent_until: Timestamp) -> StoreResult<()>;

    /// Returns the earliest position of all streams in an account, of those whose lease ended after `used_since`. A stream
    /// without a lease counts as used when it began. `None` if there is none.
    async fn sent_by_all_until(&mut self, tenant: TenantId, used_since: Timestamp) -> StoreResult<Option<Timestamp>>;

    /// Deletes at most `limit` positions in accounts that do not exist, of those with ids after `after` and up to `until`. Returns
    /// how many.
    ///
    /// A position is stored without the lock of its account, so it can be stored while the account is deleted.
    async fn delete_positions_without_account(
        &mut self,
        after: TenantId,
        until: TenantId,
        limit: u32,
    ) -> StoreResult<u64>;
}
