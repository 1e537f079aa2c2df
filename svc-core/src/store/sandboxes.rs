//! Deletion of what a sandbox has.

use async_trait::async_trait;

use super::StoreResult;
use crate::values::TenantId;

/// The rows of a sandbox to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxRows {
    /// Records and their numbers, events, deliveries with their attempts, bulk replays, the index of searches, shared links, uploads, stored responses
    /// (also those to apps, which are stored under their grants) and the request log. Counts of attempts have a method of their own. The tenant stays, and so do its keys, subscriptions, sessions and audit log.
    Data,
    /// Everything, and the tenant itself at last. Sessions that look at it no longer do.
    All,
}

/// Deletes what a sandbox has, in steps of bounded cost.
#[async_trait]
pub trait SandboxRepository: Send {
    /// Deletes at most `limit` rows of a tenant that is a sandbox, which must be locked, and returns how many. If they are fewer
    /// than `limit`, none is left, and with [`SandboxRows::All`] the tenant itself, which is not counted, is gone; otherwise it
    /// is there. References to a row are deleted before it. Of a tenant that is no sandbox, nothing is deleted.
    async fn delete_sandbox_rows(&mut self, sandbox: TenantId, rows: SandboxRows, limit: u32) -> StoreResult<u64>;
}
