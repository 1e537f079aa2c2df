//! The table of API keys.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::keys::{ApiKey, Credential, KeyId};
use svc_core::store::{ApiKeyRepository, KeyUse, StoreResult, TenantRepository as _};
use svc_core::values::{TenantId, Timestamp};

use super::tenants::{CredentialStatements, TenantAccess};
use crate::column::{CellError, Column, Param};
use crate::sql::{Cells, SqlTx};
use crate::table::{record, select};

record!(ApiKey, "api_keys", key: [id], {
    extra: [key_hash: [u8; 32], signatures_deleted_until: Option<Timestamp>, expiry_reported: bool],
    inserted: [id, tenant_id, name, scopes as can_write, prefix, signing_secret, created_at, lifetime, last_used_at],
    updated: [expires_at, revoked_at],
});

const CREDENTIAL: CredentialStatements = CredentialStatements {
    joined: "SELECT k.id, k.tenant_id, k.can_write, k.expires_at, k.revoked_at, k.signing_secret, t.developer_access, t.limits, \
         t.sandbox_of FROM api_keys k JOIN tenants t ON t.id = k.tenant_id WHERE k.key_hash = $1",
    alone: "SELECT id, tenant_id, can_write, expires_at, revoked_at, signing_secret FROM api_keys WHERE key_hash = $1",
};
static LIST: LazyLock<String> = LazyLock::new(|| select::<ApiKey>("WHERE tenant_id = $1 ORDER BY created_at"));
const RECORD_USE: &str = "UPDATE api_keys SET last_used_at = $1 \
     WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $1)";

const EXPIRING: &str = "SELECT id FROM api_keys WHERE expires_at > $1 AND expires_at <= $2 \
     AND revoked_at IS NULL AND expiry_reported = FALSE ORDER BY expires_at, id LIMIT $3";
const MARK_REPORTED: &str = "UPDATE api_keys SET expiry_reported = TRUE WHERE id = $1 AND expiry_reported = FALSE";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![CREDENTIAL.joined, CREDENTIAL.alone, &LIST, RECORD_USE, EXPIRING, MARK_REPORTED]
}

/// Reads a key, and returns its tenant and what makes a credential of both.
fn read_key(cells: &mut Cells<'_>) -> Result<(TenantId, impl FnOnce(TenantAccess) -> Credential + use<>), CellError> {
    let (key_id, tenant_id) = (cells.take("api_keys", "id")?, cells.take("api_keys", "tenant_id")?);
    let (writes, expires_at) = (cells.take("api_keys", "can_write")?, cells.take("api_keys", "expires_at")?);
    let revoked = cells.take::<Option<Timestamp>>("api_keys", "revoked_at")?.is_some();
    let signing_secret = cells.take("api_keys", "signing_secret")?;
    let credential = move |TenantAccess { developer_access, limits, is_sandbox }| Credential {
        key_id,
        tenant_id,
        writes,
        expires_at,
        revoked,
        signing_secret,
        developer_access,
        limits,
        is_sandbox,
    };
    Ok((tenant_id, credential))
}

#[async_trait]
impl ApiKeyRepository for SqlTx<'_> {
    async fn credential(&mut self, key_hash: &[u8; 32]) -> StoreResult<Option<Credential>> {
        self.credential_with(&CREDENTIAL, key_hash, read_key).await
    }

    async fn lock_credential(&mut self, tenant: TenantId, key_hash: &[u8; 32]) -> StoreResult<Option<Credential>> {
        self.lock_tenant(tenant).await?;
        if let Some(known) = self.locked(tenant).and_then(|locked| locked.credentials.get(key_hash)) {
            return Ok(Some(known.clone()));
        }
        let found = self.credential(key_hash).await?;
        if let Some(found) = &found
            && let Some(locked) = self.locked(found.tenant_id)
        {
            locked.credentials.insert(*key_hash, found.clone());
        }
        Ok(found)
    }

    async fn api_key(&mut self, id: KeyId) -> StoreResult<Option<ApiKey>> {
        self.get_record(&[id.param()]).await
    }

    async fn api_keys(&mut self, tenant: TenantId) -> StoreResult<Vec<ApiKey>> {
        self.fetch(&LIST, &[tenant.param()], crate::table::TableRow::read).await
    }

    async fn insert_api_key(&mut self, key: &ApiKey, key_hash: &[u8; 32]) -> StoreResult<()> {
        self.insert_record(&[key_hash.param(), Param::Null, Param::Bool(false)], key).await
    }

    async fn update_api_key(&mut self, key: &ApiKey) -> StoreResult<()> {
        self.forget(key.tenant_id);
        self.update_record(key, &[key.id.param()]).await
    }

    async fn expiring_keys(&mut self, now: Timestamp, until: Timestamp, limit: u32) -> StoreResult<Vec<KeyId>> {
        let params = [now.param(), until.param(), limit.param()];
        self.fetch(EXPIRING, &params, |cells| cells.take("api_keys", "id")).await
    }

    async fn mark_key_expiry_reported(&mut self, id: KeyId) -> StoreResult<bool> {
        Ok(self.execute(MARK_REPORTED, &[id.param()]).await? == 1)
    }

    async fn record_key_uses(&mut self, uses: &[KeyUse]) -> StoreResult<()> {
        self.record_uses(RECORD_USE, uses).await
    }
}

impl SqlTx<'_> {
    pub(super) async fn record_uses<K: Column + Copy + Ord + Send + Sync>(
        &mut self,
        sql: &str,
        uses: &[KeyUse<K>],
    ) -> StoreResult<()> {
        // Always in the same order, so that two nodes never deadlock.
        let mut uses = uses.to_vec();
        uses.sort_unstable();
        for KeyUse { key_id, used_at } in &uses {
            self.pipeline(sql, &[used_at.param(), key_id.param()]).await?;
        }
        Ok(())
    }
}
