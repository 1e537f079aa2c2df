//! The audit log.

use async_trait::async_trait;
use uuid::Uuid;

use super::{MemoryTx, insert, of_tenant};
use crate::accounts::audit::AuditEntry;
use crate::store::{AuditRepository, StoreResult};
use crate::values::{TenantId, Timestamp};

#[async_trait]
impl AuditRepository for MemoryTx<'_> {
    async fn insert_audit_entry(&mut self, entry: &AuditEntry) -> StoreResult<()> {
        insert(&mut self.state_mut()?.audit_log, (entry.tenant_id, entry.id), entry)
    }

    async fn audit_entries(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<AuditEntry>> {
        let in_range = |entry: &&AuditEntry| (since..until).contains(&entry.at);
        let entries = of_tenant(&self.state.audit_log, tenant).rev().filter(in_range);
        Ok(entries.take(limit as usize).cloned().collect())
    }

    async fn audit_entries_of(
        &mut self,
        tenant: TenantId,
        object: Uuid,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<AuditEntry>> {
        let is_wanted = |entry: &&AuditEntry| entry.object_id == object && entry.at < until;
        let entries = of_tenant(&self.state.audit_log, tenant).rev().filter(is_wanted);
        Ok(entries.take(limit as usize).cloned().collect())
    }
}
