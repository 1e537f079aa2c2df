//! The rows about requests.

use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreResult;
use crate::accounts::idempotency::StoredResponse;
use crate::requests::ApiRequest;
use crate::values::{TenantId, Timestamp};

/// Idempotency keys and the responses that are stored under them.
#[async_trait]
pub trait IdempotencyRepository: Send {
    /// Claims an idempotency key until the transaction ends. Returns `false` if another transaction holds the claim.
    ///
    /// A store that runs one write transaction after the other always returns `true`.
    async fn claim_idempotency(&mut self, tenant: TenantId, key: &str) -> StoreResult<bool>;

    /// Returns the response that was stored under an idempotency key after `after`.
    async fn stored_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        after: Timestamp,
    ) -> StoreResult<Option<StoredResponse>>;

    /// Stores a response under an idempotency key, in place of an older one.
    async fn store_response(&mut self, tenant: TenantId, key: &str, response: &StoredResponse) -> StoreResult<()>;
}

/// The request log. Its entries are never changed.
#[async_trait]
pub trait RequestLogRepository: Send {
    /// Adds requests, in a few statements however many they are.
    async fn insert_requests(&mut self, requests: &[ApiRequest]) -> StoreResult<()>;

    /// Returns at most `limit` requests of a tenant at or after `since`, newest first.
    async fn logged_requests(&mut self, tenant: TenantId, since: Timestamp, limit: u32)
    -> StoreResult<Vec<ApiRequest>>;

    /// Deletes all requests of a tenant but its newest `keep`, and returns how many.
    async fn delete_surplus_requests(&mut self, tenant: TenantId, keep: u32) -> StoreResult<u64>;

    /// Deletes at most `limit` requests of all tenants before `before`, the oldest first, and returns how many.
    async fn delete_requests_before(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}

/// Counts requests for all processes on a database together, outside of transactions.
#[async_trait]
pub trait RequestCounts: Send + Sync {
    /// Applies changes to counts in one step, and returns each count after its change, in the same order.
    ///
    /// A count covers a window of length `window`; a change after its end starts a new window. A count is never below 0.
    ///
    /// # Errors
    /// [`StoreError`](crate::error::StoreError) when the database cannot count now; the caller then counts in its own process.
    async fn add(&self, changes: &[CountChange], window: Duration) -> StoreResult<Vec<RequestWindow>>;
}

/// A change of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountChange {
    /// The client whose requests are counted: the id of an API key, or an address as 128 bits.
    pub subject: Uuid,
    /// The name of the rate limit, which must be the same in all processes.
    pub bucket: &'static str,
    /// The time of the change, at which a new window starts if there is none.
    pub at: Timestamp,
    /// The number of requests to add; negative to take back.
    pub by: i32,
}

/// The count of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestWindow {
    /// When the window started.
    pub started: Timestamp,
    /// The number of requests since then.
    pub used: u32,
}
