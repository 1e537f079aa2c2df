//! The repository of the request log.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::requests::LoggedRequest;
use crate::values::{TenantId, Timestamp};

/// The request log. Its entries are never changed.
#[async_trait]
pub trait RequestLogRepository: Send {
    /// Adds requests, in a few statements however many they are.
    async fn insert_requests(&mut self, requests: &[LoggedRequest]) -> Result<(), StoreError>;

    /// Returns at most `limit` requests of a tenant at or after `since`, newest first.
    async fn logged_requests(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        limit: u32,
    ) -> Result<Vec<LoggedRequest>, StoreError>;

    /// Deletes all requests of a tenant but its newest `keep`, and returns how many.
    async fn delete_surplus_requests(&mut self, tenant: TenantId, keep: u32) -> Result<u64, StoreError>;

    /// Deletes at most `limit` requests of all tenants before `before`, the oldest first, and returns how many.
    async fn delete_requests_before(&mut self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
