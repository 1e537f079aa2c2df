//! Deletion of what a sandbox has, over all tables that have rows of tenants.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::grants::MAX_LISTED;
use svc_core::store::{GrantRepository as _, SandboxRepository, SandboxRows, StoreResult, TenantRepository as _};
use svc_core::values::TenantId;

use crate::column::Column as _;
use crate::sql::SqlTx;

/// The tables with what lets apps in, which goes with the keys.
const APPS: &[(&str, &str)] = &[("oauth_tokens", "token_hash"), ("oauth_codes", "code_hash"), ("oauth_grants", "id")];
/// The tables with data, each with the columns that name a row within its tenant. A table comes before those that its rows refer
/// to.
const DATA: &[(&str, &str)] = &[
    ("delivery_attempts", "delivery_id, attempt"),
    ("deliveries", "id"),
    ("endpoint_schedule", "subscription_id"),
    ("replays", "id"),
    ("events", "id"),
    ("jobs", "id"),
    ("payments", "id"),
    ("invoices", "id"),
    ("quotes", "id"),
    ("bookings", "id"),
    ("contacts", "id"),
    ("numbers", "kind"),
    ("idempotency", "key"),
    ("request_log", "id"),
    ("search_texts", "kind, id"),
    ("search_progress", "tenant_id"),
    ("stream_positions", "stream_id"),
    ("shared_links", "id"),
    ("uploads", "id"),
];
/// The tables with what is left of an account then.
const ACCOUNT: &[(&str, &str)] = &[
    ("subscription_kinds", "kind, subscription_id"),
    ("subscriptions", "id"),
    ("streams", "id"),
    ("members", "id"),
    ("dashboard_links", "token_hash"),
    ("dashboard_sessions", "id"),
    ("audit_log", "id"),
];

/// A signature is that of a key, which names its tenant.
const DELETE_SIGNATURES: &str = "DELETE FROM used_signatures WHERE (key_id, mac) IN \
     (SELECT s.key_id, s.mac FROM api_keys k JOIN used_signatures s ON s.key_id = k.id WHERE k.tenant_id = $1 LIMIT $2)";
const DELETE_KEYS: &str = "DELETE FROM api_keys WHERE tenant_id = $1 AND id IN \
     (SELECT id FROM api_keys WHERE tenant_id = $1 LIMIT $2)";
static DELETE_RESPONSES: LazyLock<String> = LazyLock::new(|| delete(&("idempotency", "key")));
static DELETE_APPS: LazyLock<Vec<String>> = LazyLock::new(|| APPS.iter().map(delete).collect());
static DELETE_DATA: LazyLock<Vec<String>> = LazyLock::new(|| DATA.iter().map(delete).collect());
static DELETE_ACCOUNT: LazyLock<Vec<String>> = LazyLock::new(|| ACCOUNT.iter().map(delete).collect());
const END_VIEWS: &str = "UPDATE dashboard_sessions SET viewed_tenant_id = NULL WHERE viewed_tenant_id = $1";
const DELETE_TENANT: &str = "DELETE FROM tenants WHERE id = $1 AND sandbox_of IS NOT NULL";

fn delete((table, row): &(&str, &str)) -> String {
    format!(
        "DELETE FROM {table} WHERE tenant_id = $1 AND ({row}) IN (SELECT {row} FROM {table} WHERE tenant_id = $1 LIMIT $2)"
    )
}

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let mut all = vec![DELETE_SIGNATURES, DELETE_KEYS, END_VIEWS, DELETE_TENANT];
    all.extend(DELETE_APPS.iter().chain(DELETE_DATA.iter()).chain(DELETE_ACCOUNT.iter()).map(String::as_str));
    all
}

impl SqlTx<'_> {
    /// Deletes at most so many stored responses to the apps that work on a tenant, which are stored under their grants. Returns how
    /// many rows may still be deleted.
    async fn delete_responses_to_apps(&mut self, tenant: TenantId, limit: u32) -> StoreResult<u32> {
        let mut left = limit;
        for grant in self.grants(tenant, MAX_LISTED).await? {
            left = self.delete_by(TenantId(grant.id.uuid()), std::iter::once(&**DELETE_RESPONSES), left).await?;
        }
        Ok(left)
    }

    /// Runs statements that delete at most so many rows of a tenant, one after the other. Returns how many may still be deleted.
    async fn delete_by(
        &mut self,
        tenant: TenantId,
        statements: impl Iterator<Item = &str> + Send,
        limit: u32,
    ) -> StoreResult<u32> {
        let mut left = limit;
        for sql in statements {
            if left == 0 {
                break;
            }
            let deleted = self.execute(sql, &[tenant.param(), left.param()]).await?;
            left = left.saturating_sub(u32::try_from(deleted).unwrap_or(u32::MAX));
        }
        Ok(left)
    }
}

#[async_trait]
impl SandboxRepository for SqlTx<'_> {
    async fn delete_sandbox_rows(&mut self, sandbox: TenantId, rows: SandboxRows, limit: u32) -> StoreResult<u64> {
        if !self.tenant(sandbox).await?.is_some_and(|tenant| tenant.is_sandbox()) {
            return Ok(0);
        }
        self.forget(sandbox);
        let data = DELETE_DATA.iter().map(String::as_str);
        let left = match rows {
            SandboxRows::Data => {
                let left = self.delete_responses_to_apps(sandbox, limit).await?;
                self.delete_by(sandbox, data, left).await?
            }
            SandboxRows::All => {
                let account = DELETE_ACCOUNT.iter().map(String::as_str);
                let apps = DELETE_APPS.iter().map(String::as_str);
                let all = [DELETE_SIGNATURES, DELETE_KEYS].into_iter().chain(apps).chain(data).chain(account);
                let left = self.delete_by(sandbox, all, limit).await?;
                if left > 0 {
                    self.execute(END_VIEWS, &[sandbox.param()]).await?;
                    self.execute(DELETE_TENANT, &[sandbox.param()]).await?;
                }
                left
            }
        };
        Ok(u64::from(limit - left))
    }
}
