//! The table of the audit log.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::audit::AuditEntry;
use svc_core::env;
use svc_core::store::{AuditRepository, StoreResult};
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{TableRow, record, select};

record!(AuditEntry, "audit_log", key: [tenant_id, id], {
    inserted: [id, tenant_id, at, actor, action, object_kind, object_id, before, after],
    updated: [],
});

static LIST: LazyLock<String> =
    LazyLock::new(|| select::<AuditEntry>("WHERE tenant_id = $1 AND id >= $2 AND id < $3 ORDER BY id DESC LIMIT $4"));
static OF_OBJECT: LazyLock<String> = LazyLock::new(|| {
    select::<AuditEntry>("WHERE tenant_id = $1 AND object_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4")
});

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&LIST, &OF_OBJECT]
}

#[async_trait]
impl AuditRepository for SqlTx<'_> {
    async fn insert_audit_entry(&mut self, entry: &AuditEntry) -> StoreResult<()> {
        self.insert_record(&[], entry).await
    }

    async fn audit_entries(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<AuditEntry>> {
        let (first, end): (Uuid, Uuid) = (env::first_id_at(since), env::first_id_at(until));
        self.fetch(&LIST, &[tenant.param(), first.param(), end.param(), limit.param()], AuditEntry::read).await
    }

    async fn audit_entries_of(
        &mut self,
        tenant: TenantId,
        object: Uuid,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<AuditEntry>> {
        let end = env::first_id_at(until);
        self.fetch(&OF_OBJECT, &[tenant.param(), object.param(), end.param(), limit.param()], AuditEntry::read).await
    }
}
