//! API keys, platform keys, and the signatures that were made with them.

use async_trait::async_trait;

use super::StoreResult;
use crate::accounts::keys::{ApiKey, Credential, KeyId};
use crate::accounts::platform_keys::{PlatformKey, PlatformKeyId};
use crate::values::{TenantId, Timestamp};

/// A use of an API key, or of a platform key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyUse<K = KeyId> {
    /// The key that authenticated a request.
    pub key_id: K,
    /// When it authenticated the request.
    pub used_at: Timestamp,
}

/// The stored API keys.
#[async_trait]
pub trait ApiKeyRepository: Send {
    /// Returns what is needed to authenticate the bearer of the key with this SHA-256 digest.
    async fn credential(&mut self, key_hash: &[u8; 32]) -> StoreResult<Option<Credential>>;

    /// Locks the row of a tenant as [`lock_tenant`](super::TenantRepository::lock_tenant) does, and then returns what
    /// [`credential`](ApiKeyRepository::credential) does for a key of that tenant. Until the transaction ends, no other one
    /// revokes the key or changes the tenant.
    async fn lock_credential(&mut self, tenant: TenantId, key_hash: &[u8; 32]) -> StoreResult<Option<Credential>>;

    /// Returns one key.
    async fn api_key(&mut self, id: KeyId) -> StoreResult<Option<ApiKey>>;

    /// Returns the keys of a tenant, oldest first.
    async fn api_keys(&mut self, tenant: TenantId) -> StoreResult<Vec<ApiKey>>;

    /// Adds a key with the SHA-256 digest of its text.
    async fn insert_api_key(&mut self, key: &ApiKey, key_hash: &[u8; 32]) -> StoreResult<()>;

    /// Stores the expiry and the revocation of a key.
    async fn update_api_key(&mut self, key: &ApiKey) -> StoreResult<()>;

    /// Returns the first `limit` keys of all tenants that expire after `now`, and at `until` or before, and are neither
    /// revoked nor [marked](ApiKeyRepository::mark_key_expiry_reported), the earliest first.
    async fn expiring_keys(&mut self, now: Timestamp, until: Timestamp, limit: u32) -> StoreResult<Vec<KeyId>>;

    /// Marks that it was reported that a key expires. Returns `false` if it is marked already, or there is no such key.
    async fn mark_key_expiry_reported(&mut self, id: KeyId) -> StoreResult<bool>;

    /// Stores when keys were last used. An earlier time than the stored one is ignored.
    async fn record_key_uses(&mut self, uses: &[KeyUse]) -> StoreResult<()>;
}

/// The keys of the platform API, which belong to no tenant.
#[async_trait]
pub trait PlatformKeyRepository: Send {
    /// Returns the key whose text has this SHA-256 digest, also if it is revoked or expired.
    async fn platform_key_by_hash(&mut self, key_hash: &[u8; 32]) -> StoreResult<Option<PlatformKey>>;

    /// Returns one key.
    async fn platform_key(&mut self, id: PlatformKeyId) -> StoreResult<Option<PlatformKey>>;

    /// Locks a key until the transaction ends, and returns it. No other transaction revokes it until then.
    async fn lock_platform_key(&mut self, id: PlatformKeyId) -> StoreResult<Option<PlatformKey>>;

    /// Returns all keys, oldest first.
    async fn platform_keys(&mut self) -> StoreResult<Vec<PlatformKey>>;

    /// Adds a key with the SHA-256 digest of its text.
    async fn insert_platform_key(&mut self, key: &PlatformKey, key_hash: &[u8; 32]) -> StoreResult<()>;

    /// Stores the revocation of a key.
    async fn update_platform_key(&mut self, key: &PlatformKey) -> StoreResult<()>;

    /// Stores when keys were last used. An earlier time than the stored one is ignored.
    async fn record_platform_key_uses(&mut self, uses: &[KeyUse<PlatformKeyId>]) -> StoreResult<()>;
}

/// The request signatures that were accepted. Each is accepted only once.
#[async_trait]
pub trait UsedSignatureRepository: Send {
    /// Marks a request signature of a key as used until `expires_at`. Returns `false` if it was used before, or may have
    /// been: if a used signature of the key that expired then or later has been deleted. That happens only after the clock
    /// was set back, because signatures are deleted when they have expired.
    async fn claim_signature(&mut self, key_id: KeyId, mac: &[u8; 32], expires_at: Timestamp) -> StoreResult<bool>;
}
