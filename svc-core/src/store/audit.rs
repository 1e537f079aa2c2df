//! The audit log.

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreResult;
use crate::accounts::audit::AuditEntry;
use crate::values::{TenantId, Timestamp};

/// The audit log. Its entries are never changed, and never deleted but with a [sandbox](super::SandboxRepository).
#[async_trait]
pub trait AuditRepository: Send {
    /// Adds an entry.
    async fn insert_audit_entry(&mut self, entry: &AuditEntry) -> StoreResult<()>;

    /// Returns at most `limit` entries of a tenant at or after `since` and before `until`, newest first.
    async fn audit_entries(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<AuditEntry>>;

    /// Returns at most `limit` entries about an object that are before `until`, newest first. It costs O(limit).
    async fn audit_entries_of(
        &mut self,
        tenant: TenantId,
        object: Uuid,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<AuditEntry>>;
}
