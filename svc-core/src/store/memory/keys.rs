//! API keys, platform keys, and the signatures that were made with them.

use async_trait::async_trait;

use super::{MemoryTx, by_hash, insert_hashed};
use crate::accounts::keys::{ApiKey, Credential, KeyId, Scope};
use crate::accounts::platform_keys::{PlatformKey, PlatformKeyId};
use crate::store::{ApiKeyRepository, KeyUse, PlatformKeyRepository, StoreResult, UsedSignatureRepository};
use crate::values::{TenantId, Timestamp};

#[async_trait]
impl ApiKeyRepository for MemoryTx<'_> {
    async fn credential(&mut self, key_hash: &[u8; 32]) -> StoreResult<Option<Credential>> {
        Ok(by_hash(&self.state.api_keys, key_hash).and_then(|key| {
            let tenant = self.state.tenants.get(&key.tenant_id)?;
            Some(Credential {
                key_id: key.id,
                tenant_id: key.tenant_id,
                writes: key.scopes.contains(&Scope::Write),
                expires_at: key.expires_at,
                revoked: key.revoked_at.is_some(),
                signing_secret: key.signing_secret.clone(),
                developer_access: tenant.developer_access,
                limits: tenant.limits,
                is_sandbox: tenant.is_sandbox(),
            })
        }))
    }

    async fn lock_credential(&mut self, _tenant: TenantId, key_hash: &[u8; 32]) -> StoreResult<Option<Credential>> {
        self.credential(key_hash).await
    }

    async fn api_key(&mut self, id: KeyId) -> StoreResult<Option<ApiKey>> {
        Ok(self.state.api_keys.get(&id).map(|(key, _)| key.clone()))
    }

    async fn api_keys(&mut self, tenant: TenantId) -> StoreResult<Vec<ApiKey>> {
        let keys = self.state.api_keys.values().map(|(key, _)| key);
        let mut keys: Vec<ApiKey> = keys.filter(|key| key.tenant_id == tenant).cloned().collect();
        keys.sort_by_key(|key| key.created_at);
        Ok(keys)
    }

    async fn insert_api_key(&mut self, key: &ApiKey, key_hash: &[u8; 32]) -> StoreResult<()> {
        insert_hashed(&mut self.state_mut()?.api_keys, key.id, key, key_hash)
    }

    async fn update_api_key(&mut self, key: &ApiKey) -> StoreResult<()> {
        self.state_mut()?.api_keys.change(&key.id, |(stored, _)| {
            stored.expires_at = key.expires_at;
            stored.revoked_at = key.revoked_at;
        });
        Ok(())
    }

    async fn expiring_keys(&mut self, now: Timestamp, until: Timestamp, limit: u32) -> StoreResult<Vec<KeyId>> {
        let keys = self.state.api_keys.values().map(|(key, _)| key);
        let mut expiring: Vec<_> = keys
            .filter(|key| key.revoked_at.is_none() && !self.state.reported_keys.contains_key(&key.id))
            .filter_map(|key| Some((key.expires_at.filter(|at| now < *at && *at <= until)?, key.id)))
            .collect();
        expiring.sort_unstable();
        Ok(expiring.into_iter().take(limit as usize).map(|(_, id)| id).collect())
    }

    async fn mark_key_expiry_reported(&mut self, id: KeyId) -> StoreResult<bool> {
        let state = self.state_mut()?;
        Ok(state.api_keys.contains_key(&id) && state.reported_keys.add(id, ()))
    }

    async fn record_key_uses(&mut self, uses: &[KeyUse]) -> StoreResult<()> {
        for KeyUse { key_id, used_at } in uses {
            let keys = &mut self.state_mut()?.api_keys;
            keys.change(key_id, |(key, _)| key.last_used_at = key.last_used_at.max(Some(*used_at)));
        }
        Ok(())
    }
}

#[async_trait]
impl PlatformKeyRepository for MemoryTx<'_> {
    async fn platform_key_by_hash(&mut self, key_hash: &[u8; 32]) -> StoreResult<Option<PlatformKey>> {
        Ok(by_hash(&self.state.platform_keys, key_hash).cloned())
    }

    async fn platform_key(&mut self, id: PlatformKeyId) -> StoreResult<Option<PlatformKey>> {
        Ok(self.state.platform_keys.get(&id).map(|(key, _)| key.clone()))
    }

    async fn lock_platform_key(&mut self, id: PlatformKeyId) -> StoreResult<Option<PlatformKey>> {
        self.platform_key(id).await
    }

    async fn platform_keys(&mut self) -> StoreResult<Vec<PlatformKey>> {
        Ok(self.state.platform_keys.values().map(|(key, _)| key.clone()).collect())
    }

    async fn insert_platform_key(&mut self, key: &PlatformKey, key_hash: &[u8; 32]) -> StoreResult<()> {
        insert_hashed(&mut self.state_mut()?.platform_keys, key.id, key, key_hash)
    }

    async fn update_platform_key(&mut self, key: &PlatformKey) -> StoreResult<()> {
        self.state_mut()?.platform_keys.change(&key.id, |(stored, _)| {
            stored.revoked_at = key.revoked_at;
            stored.revoked_by.clone_from(&key.revoked_by);
        });
        Ok(())
    }

    async fn record_platform_key_uses(&mut self, uses: &[KeyUse<PlatformKeyId>]) -> StoreResult<()> {
        for KeyUse { key_id, used_at } in uses {
            let keys = &mut self.state_mut()?.platform_keys;
            keys.change(key_id, |(key, _)| key.last_used_at = key.last_used_at.max(Some(*used_at)));
        }
        Ok(())
    }
}

#[async_trait]
impl UsedSignatureRepository for MemoryTx<'_> {
    async fn claim_signature(&mut self, key_id: KeyId, mac: &[u8; 32], expires_at: Timestamp) -> StoreResult<bool> {
        let state = self.state_mut()?;
        let is_new = state.used_signatures.add((key_id, *mac), expires_at);
        let deleted_until = state.signatures_deleted_until.get(&key_id);
        Ok(is_new && deleted_until.is_none_or(|until| *until < expires_at))
    }
}
