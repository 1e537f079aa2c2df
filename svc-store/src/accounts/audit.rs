//! The log of changes.

use async_trait::async_trait;
use serde_json::value::RawValue;
use svc_core::accounts::audit::Entry;
use svc_core::env;
use svc_core::error::StoreError;
use svc_core::store::AuditStore;
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use crate::sql::{Cells, Column as _, Param, SqlTx};

const INSERT: &str = "INSERT INTO audit_log \
     (tenant_id, id, at, actor, action, object_kind, object_id, before, after) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const LIST: &str = "SELECT id, tenant_id, at, actor, action, object_kind, object_id, before, after FROM audit_log \
     WHERE tenant_id = $1 AND id >= $2 ORDER BY id DESC LIMIT $3";

#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[INSERT, LIST];

pub(crate) fn read(cells: &mut Cells<'_>) -> Result<Entry, StoreError> {
    Ok(Entry {
        id: cells.take()?,
        tenant_id: cells.take()?,
        at: cells.take()?,
        actor: cells.take()?,
        action: cells.take()?,
        object_kind: cells.take()?,
        object_id: cells.take()?,
        before: json(cells, "before")?,
        after: json(cells, "after")?,
    })
}

fn json(cells: &mut Cells<'_>, column: &'static str) -> Result<Option<Box<RawValue>>, StoreError> {
    let text: Option<String> = cells.take()?;
    let corrupt =
        |error: serde_json::Error| StoreError::Corrupt { table: "audit_log", column, reason: error.to_string() };
    text.map(RawValue::from_string).transpose().map_err(corrupt)
}

#[async_trait]
impl AuditStore for SqlTx<'_> {
    async fn insert_audit(&mut self, entry: &Entry) -> Result<(), StoreError> {
        let text = |json: &Option<Box<RawValue>>| json.as_ref().map(|json| json.get().to_owned());
        let (before, after) = (text(&entry.before), text(&entry.after));
        let params: [Param<'_>; 9] = [
            entry.tenant_id.param(),
            entry.id.param(),
            entry.at.param(),
            entry.actor.param(),
            entry.action.param(),
            entry.object_kind.param(),
            entry.object_id.param(),
            before.param(),
            after.param(),
        ];
        self.pipeline(INSERT, &params).await
    }

    async fn audit(&mut self, tenant: TenantId, since: Timestamp, limit: u32) -> Result<Vec<Entry>, StoreError> {
        let first: Uuid = env::first_id_at(since);
        self.fetch(LIST, &[tenant.param(), first.param(), limit.param()], "audit_log", read).await
    }
}
