//! The repository of platform keys.

use async_trait::async_trait;

use crate::accounts::platform_keys::{PlatformKey, PlatformKeyId};
use crate::error::StoreError;
use crate::values::Timestamp;

/// A use of a platform key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlatformKeyUse {
    /// The key that authenticated a request.
    pub key_id: PlatformKeyId,
    /// When it authenticated the request.
    pub used_at: Timestamp,
}

/// The keys of the platform API, which belong to no tenant.
#[async_trait]
pub trait PlatformKeyRepository: Send {
    /// Returns the key whose text has this SHA-256 digest, also if it is revoked or expired.
    async fn platform_key_by_hash(&mut self, key_hash: &[u8; 32]) -> Result<Option<PlatformKey>, StoreError>;

    /// Returns one key.
    async fn platform_key(&mut self, id: PlatformKeyId) -> Result<Option<PlatformKey>, StoreError>;

    /// Returns all keys, oldest first.
    async fn platform_keys(&mut self) -> Result<Vec<PlatformKey>, StoreError>;

    /// Adds a key with the SHA-256 digest of its text.
    async fn insert_platform_key(&mut self, key: &PlatformKey, key_hash: &[u8; 32]) -> Result<(), StoreError>;

    /// Stores the revocation of a key.
    async fn update_platform_key(&mut self, key: &PlatformKey) -> Result<(), StoreError>;

    /// Stores when keys were last used. An earlier time than the stored one is ignored.
    async fn record_platform_key_uses(&mut self, uses: &[PlatformKeyUse]) -> Result<(), StoreError>;
}
