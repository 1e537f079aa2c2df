//! The repository of API keys.

use async_trait::async_trait;

use crate::accounts::keys::{ApiKey, Credential, KeyId};
use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};

/// A use of an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyUse {
    /// The key that authenticated a request.
    pub key_id: KeyId,
    /// When it authenticated the request.
    pub used_at: Timestamp,
}

/// The stored API keys.
#[async_trait]
pub trait ApiKeyRepository: Send {
    /// Returns what is needed to authenticate the bearer of the key with this SHA-256 digest.
    async fn credential(&mut self, key_hash: &[u8; 32]) -> Result<Option<Credential>, StoreError>;

    /// Locks the row of a tenant as [`lock_tenant`](super::TenantRepository::lock_tenant) does, and then returns what
    /// [`credential`](ApiKeyRepository::credential) does for a key of that tenant. Until the transaction ends, no other one
    /// revokes the key or changes the tenant.
    async fn lock_credential(
        &mut self,
        tenant: TenantId,
        key_hash: &[u8; 32],
    ) -> Result<Option<Credential>, StoreError>;

    /// Returns one key.
    async fn api_key(&mut self, id: KeyId) -> Result<Option<ApiKey>, StoreError>;

    /// Returns the keys of a tenant, oldest first.
    async fn api_keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>, StoreError>;

    /// Adds a key with the SHA-256 digest of its text.
    async fn insert_api_key(&mut self, key: &ApiKey, key_hash: &[u8; 32]) -> Result<(), StoreError>;

    /// Stores the expiry and the revocation of a key.
    async fn update_api_key(&mut self, key: &ApiKey) -> Result<(), StoreError>;

    /// Returns the first `limit` keys of all tenants that expire after `now`, and at `until` or before, and are neither
    /// revoked nor [marked](ApiKeyRepository::mark_key_expiry_reported), the earliest first.
    async fn expiring_keys(&mut self, now: Timestamp, until: Timestamp, limit: u32) -> Result<Vec<KeyId>, StoreError>;

    /// Marks that it was reported that a key expires. Returns `false` if it is marked already, or there is no such key.
    async fn mark_key_expiry_reported(&mut self, id: KeyId) -> Result<bool, StoreError>;

    /// Stores when keys were last used. An earlier time than the stored one is ignored.
    async fn record_key_uses(&mut self, uses: &[KeyUse]) -> Result<(), StoreError>;
}
