//! API keys, used request signatures, and answers kept under Idempotency-Keys.

use async_trait::async_trait;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::accounts::keys::{ApiKey, Credential, Scope};
use svc_core::crypto::sha256;
use svc_core::error::StoreError;
use svc_core::store::KeyStore;
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use crate::sql::{Cells, Column as _, Param, Sealed, SqlTx};

const TABLE: &str = "api_keys";

const CREDENTIAL: &str = "SELECT k.id, k.tenant_id, k.can_write, k.expires_at, k.revoked_at, k.signing_secret, \
     t.developer_access, t.limits FROM api_keys k JOIN tenants t ON t.id = k.tenant_id WHERE k.key_hash = $1";
const GET: &str = "SELECT id, tenant_id, name, can_write, prefix, signing_secret, created_at, expires_at, revoked_at, \
     last_used_at FROM api_keys WHERE id = $1";
const LIST: &str = "SELECT id, tenant_id, name, can_write, prefix, signing_secret, created_at, expires_at, \
     revoked_at, last_used_at FROM api_keys WHERE tenant_id = $1 ORDER BY created_at";
const INSERT: &str = "INSERT INTO api_keys (key_hash, id, tenant_id, name, can_write, prefix, signing_secret, \
     created_at, expires_at, revoked_at, last_used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
const UPDATE: &str = "UPDATE api_keys SET expires_at = $1, revoked_at = $2 WHERE id = $3";
const TOUCH: &str = "UPDATE api_keys SET last_used_at = $1 \
     WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $1)";

const CLAIM: &str = "INSERT INTO used_signatures (key_id, mac, expires_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
const PRUNE_SIGNATURES: &str = "DELETE FROM used_signatures WHERE (key_id, mac) IN \
     (SELECT key_id, mac FROM used_signatures WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)";

const RECORDED: &str = "SELECT fingerprint, status, location, etag, body, created_at FROM idempotency \
     WHERE tenant_id = $1 AND key = $2 AND created_at > $3";
const RECORD: &str = "INSERT INTO idempotency (tenant_id, key, fingerprint, status, location, etag, body, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant_id, key) DO UPDATE SET \
     fingerprint = excluded.fingerprint, status = excluded.status, location = excluded.location, \
     etag = excluded.etag, body = excluded.body, created_at = excluded.created_at";
const PRUNE_RECORDED: &str = "DELETE FROM idempotency WHERE (tenant_id, key) IN \
     (SELECT tenant_id, key FROM idempotency WHERE created_at < $1 ORDER BY created_at LIMIT $2)";

#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] =
    &[CREDENTIAL, GET, LIST, INSERT, UPDATE, TOUCH, CLAIM, PRUNE_SIGNATURES, RECORDED, RECORD, PRUNE_RECORDED];

pub(crate) fn read(cells: &mut Cells<'_>) -> Result<ApiKey, StoreError> {
    Ok(ApiKey {
        id: cells.take()?,
        tenant_id: cells.take()?,
        name: cells.take()?,
        scopes: if cells.take()? { vec![Scope::Read, Scope::Write] } else { vec![Scope::Read] },
        prefix: cells.take()?,
        signing_secret: cells.take()?,
        created_at: cells.take()?,
        expires_at: cells.take()?,
        revoked_at: cells.take()?,
        last_used_at: cells.take()?,
    })
}

fn read_credential(cells: &mut Cells<'_>) -> Result<Credential, StoreError> {
    Ok(Credential {
        key_id: cells.take()?,
        tenant_id: cells.take()?,
        writes: cells.take()?,
        expires_at: cells.take()?,
        revoked: cells.take::<Option<Timestamp>>()?.is_some(),
        signing_secret: cells.take()?,
        developer_access: cells.take()?,
        limits: cells.take()?,
    })
}

pub(crate) fn read_recorded(cells: &mut Cells<'_>) -> Result<StoredResponse, StoreError> {
    Ok(StoredResponse {
        fingerprint: cells.take()?,
        status: cells.take()?,
        location: cells.take()?,
        etag: cells.take()?,
        body: cells.take::<Sealed>()?.0,
        created_at: cells.take()?,
    })
}

#[async_trait]
impl KeyStore for SqlTx<'_> {
    async fn credential(&mut self, key_hash: &[u8; 32]) -> Result<Option<Credential>, StoreError> {
        self.fetch_one(CREDENTIAL, &[key_hash.param()], TABLE, read_credential).await
    }

    async fn key(&mut self, id: Uuid) -> Result<Option<ApiKey>, StoreError> {
        self.fetch_one(GET, &[id.param()], TABLE, read).await
    }

    async fn keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>, StoreError> {
        self.fetch(LIST, &[tenant.param()], TABLE, read).await
    }

    async fn insert_key(&mut self, key: &ApiKey, key_hash: &[u8; 32]) -> Result<(), StoreError> {
        let params = [
            key_hash.param(),
            key.id.param(),
            key.tenant_id.param(),
            key.name.param(),
            Param::Bool(key.scopes.contains(&Scope::Write)),
            key.prefix.param(),
            key.signing_secret.param(),
            key.created_at.param(),
            key.expires_at.param(),
            key.revoked_at.param(),
            key.last_used_at.param(),
        ];
        self.pipeline(INSERT, &params).await
    }

    async fn update_key(&mut self, key: &ApiKey) -> Result<(), StoreError> {
        self.pipeline(UPDATE, &[key.expires_at.param(), key.revoked_at.param(), key.id.param()]).await
    }

    async fn touch_keys(&mut self, used: &[(Uuid, Timestamp)]) -> Result<(), StoreError> {
        // Always in the same order, so that two nodes never wait for each other.
        let mut used = used.to_vec();
        used.sort_unstable();
        for (id, at) in used {
            self.pipeline(TOUCH, &[at.param(), id.param()]).await?;
        }
        Ok(())
    }

    async fn claim_signature(&mut self, key: Uuid, mac: &[u8; 32], expires_at: Timestamp) -> Result<bool, StoreError> {
        Ok(self.execute(CLAIM, &[key.param(), mac.param(), expires_at.param()]).await? == 1)
    }

    async fn claim_idempotency(&mut self, tenant: TenantId, key: &str) -> Result<bool, StoreError> {
        let Some(claim) = self.dialect.claim() else { return Ok(true) };
        // Two keys share a number once in 2^64; then one of them is told to wait though it need not.
        let digest = sha256(&[tenant.0.as_bytes(), key.as_bytes()].concat());
        let number = digest.first_chunk().copied().map_or(0, i64::from_be_bytes);
        let claimed = self.fetch_one(claim, &[Param::Int(number)], "idempotency", |cells| cells.take()).await?;
        Ok(claimed.unwrap_or(false))
    }

    async fn stored_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        after: Timestamp,
    ) -> Result<Option<StoredResponse>, StoreError> {
        let params = [tenant.param(), Param::Text(key.into()), after.param()];
        self.fetch_one(RECORDED, &params, "idempotency", read_recorded).await
    }

    async fn store_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        recorded: &StoredResponse,
    ) -> Result<(), StoreError> {
        let params = [
            tenant.param(),
            Param::Text(key.into()),
            recorded.fingerprint.param(),
            recorded.status.param(),
            recorded.location.param(),
            recorded.etag.param(),
            // It may hold the secret of a new subscription.
            Param::Secret(&recorded.body),
            recorded.created_at.param(),
        ];
        self.pipeline(RECORD, &params).await
    }

    async fn prune(&mut self, recorded_before: Timestamp, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let recorded = self.execute(PRUNE_RECORDED, &[recorded_before.param(), limit.param()]).await?;
        let signatures = self.execute(PRUNE_SIGNATURES, &[now.param(), limit.param()]).await?;
        Ok(recorded + signatures)
    }
}
