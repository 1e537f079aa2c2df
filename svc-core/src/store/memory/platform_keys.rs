//! Platform keys.

use async_trait::async_trait;

use super::{MemoryTx, conflict};
use crate::accounts::platform_keys::{PlatformKey, PlatformKeyId};
use crate::error::StoreError;
use crate::store::{PlatformKeyRepository, PlatformKeyUse};

#[async_trait]
impl PlatformKeyRepository for MemoryTx<'_> {
    async fn platform_key_by_hash(&mut self, key_hash: &[u8; 32]) -> Result<Option<PlatformKey>, StoreError> {
        let found = self.state.platform_keys.values().find(|(_, hash)| hash == key_hash);
        Ok(found.map(|(key, _)| key.clone()))
    }

    async fn platform_key(&mut self, id: PlatformKeyId) -> Result<Option<PlatformKey>, StoreError> {
        Ok(self.state.platform_keys.get(&id).map(|(key, _)| key.clone()))
    }

    async fn platform_keys(&mut self) -> Result<Vec<PlatformKey>, StoreError> {
        Ok(self.state.platform_keys.values().map(|(key, _)| key.clone()).collect())
    }

    async fn insert_platform_key(&mut self, key: &PlatformKey, key_hash: &[u8; 32]) -> Result<(), StoreError> {
        let keys = &mut self.state_mut()?.platform_keys;
        if keys.values().any(|(known, hash)| known.id == key.id || hash == key_hash) {
            return Err(conflict("platform_key"));
        }
        keys.put(key.id, (key.clone(), *key_hash));
        Ok(())
    }

    async fn update_platform_key(&mut self, key: &PlatformKey) -> Result<(), StoreError> {
        self.state_mut()?.platform_keys.change(&key.id, |(stored, _)| {
            stored.revoked_at = key.revoked_at;
            stored.revoked_by.clone_from(&key.revoked_by);
        });
        Ok(())
    }

    async fn record_platform_key_uses(&mut self, uses: &[PlatformKeyUse]) -> Result<(), StoreError> {
        for PlatformKeyUse { key_id, used_at } in uses {
            let keys = &mut self.state_mut()?.platform_keys;
            keys.change(key_id, |(key, _)| key.last_used_at = key.last_used_at.max(Some(*used_at)));
        }
        Ok(())
    }
}
