//! API keys, and the traces they leave.

use async_trait::async_trait;
use uuid::Uuid;

use super::{MemoryTx, conflict};
use crate::accounts::idempotency::StoredResponse;
use crate::accounts::keys::{ApiKey, Credential, Scope};
use crate::error::StoreError;
use crate::store::KeyStore;
use crate::values::{TenantId, Timestamp};

#[async_trait]
impl KeyStore for MemoryTx<'_> {
    async fn credential(&mut self, key_hash: &[u8; 32]) -> Result<Option<Credential>, StoreError> {
        let found = self.state.keys.values().find(|(_, hash)| hash == key_hash).map(|(key, _)| key);
        Ok(found.and_then(|key| {
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
            })
        }))
    }

    async fn key(&mut self, id: Uuid) -> Result<Option<ApiKey>, StoreError> {
        Ok(self.state.keys.get(&id).map(|(key, _)| key.clone()))
    }

    async fn keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>, StoreError> {
        let keys = self.state.keys.values().map(|(key, _)| key);
        let mut keys: Vec<ApiKey> = keys.filter(|key| key.tenant_id == tenant).cloned().collect();
        keys.sort_by_key(|key| key.created_at);
        Ok(keys)
    }

    async fn insert_key(&mut self, key: &ApiKey, key_hash: &[u8; 32]) -> Result<(), StoreError> {
        let keys = &mut self.writable()?.keys;
        if keys.values().any(|(known, hash)| known.id == key.id || hash == key_hash) {
            return Err(conflict("key"));
        }
        keys.put(key.id, (key.clone(), *key_hash));
        Ok(())
    }

    async fn update_key(&mut self, key: &ApiKey) -> Result<(), StoreError> {
        self.writable()?.keys.change(&key.id, |(stored, _)| {
            stored.expires_at = key.expires_at;
            stored.revoked_at = key.revoked_at;
        });
        Ok(())
    }

    async fn touch_keys(&mut self, used: &[(Uuid, Timestamp)]) -> Result<(), StoreError> {
        for (id, at) in used {
            self.writable()?.keys.change(id, |(key, _)| key.last_used_at = key.last_used_at.max(Some(*at)));
        }
        Ok(())
    }

    async fn claim_signature(&mut self, key: Uuid, mac: &[u8; 32], expires_at: Timestamp) -> Result<bool, StoreError> {
        Ok(self.writable()?.signatures.add((key, *mac), expires_at))
    }

    async fn claim_idempotency(&mut self, _tenant: TenantId, _key: &str) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn stored_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        after: Timestamp,
    ) -> Result<Option<StoredResponse>, StoreError> {
        let recorded = self.state.recorded.get(&(tenant, key.to_owned()));
        Ok(recorded.filter(|recorded| recorded.created_at > after).cloned())
    }

    async fn store_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        recorded: &StoredResponse,
    ) -> Result<(), StoreError> {
        self.writable()?.recorded.put((tenant, key.to_owned()), recorded.clone());
        Ok(())
    }

    async fn prune(&mut self, recorded_before: Timestamp, now: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let state = self.writable()?;
        let answers = state.recorded.iter().filter(|(_, recorded)| recorded.created_at < recorded_before);
        let answers: Vec<_> = answers.map(|(key, _)| key.clone()).take(limit as usize).collect();
        let signatures = state.signatures.iter().filter(|(_, expires_at)| **expires_at < now);
        let signatures: Vec<_> = signatures.map(|(key, _)| *key).take(limit as usize).collect();
        answers.iter().for_each(|key| state.recorded.take(key));
        signatures.iter().for_each(|key| state.signatures.take(key));
        Ok((answers.len() + signatures.len()) as u64)
    }
}
