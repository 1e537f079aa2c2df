//! The table of platform keys.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::platform_keys::{PlatformKey, PlatformKeyId};
use svc_core::store::{KeyUse, PlatformKeyRepository, StoreResult};

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{TableRow, record, select};

record!(PlatformKey, "platform_keys", key: [id], {
    extra: [key_hash: [u8; 32]],
    inserted: [id, name, scopes, prefix, created_at, created_by, expires_at, last_used_at],
    updated: [revoked_at, revoked_by],
});

static BY_HASH: LazyLock<String> = LazyLock::new(|| select::<PlatformKey>("WHERE key_hash = $1"));
static LIST: LazyLock<String> = LazyLock::new(|| select::<PlatformKey>("ORDER BY id"));
const RECORD_USE: &str = "UPDATE platform_keys SET last_used_at = $1 \
     WHERE id = $2 AND (last_used_at IS NULL OR last_used_at < $1)";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&BY_HASH, &LIST, RECORD_USE]
}

#[async_trait]
impl PlatformKeyRepository for SqlTx<'_> {
    async fn platform_key_by_hash(&mut self, key_hash: &[u8; 32]) -> StoreResult<Option<PlatformKey>> {
        self.fetch_one(&BY_HASH, &[key_hash.param()], PlatformKey::read).await
    }

    async fn platform_key(&mut self, id: PlatformKeyId) -> StoreResult<Option<PlatformKey>> {
        self.get_record(&[id.param()]).await
    }

    async fn lock_platform_key(&mut self, id: PlatformKeyId) -> StoreResult<Option<PlatformKey>> {
        self.lock_record(id.uuid()).await
    }

    async fn platform_keys(&mut self) -> StoreResult<Vec<PlatformKey>> {
        self.fetch(&LIST, &[], PlatformKey::read).await
    }

    async fn insert_platform_key(&mut self, key: &PlatformKey, key_hash: &[u8; 32]) -> StoreResult<()> {
        self.insert_record(&[key_hash.param()], key).await
    }

    async fn update_platform_key(&mut self, key: &PlatformKey) -> StoreResult<()> {
        self.update_record(key, &[key.id.param()]).await
    }

    async fn record_platform_key_uses(&mut self, uses: &[KeyUse<PlatformKeyId>]) -> StoreResult<()> {
        self.record_uses(RECORD_USE, uses).await
    }
}
