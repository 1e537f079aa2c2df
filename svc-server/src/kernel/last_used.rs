//! When keys were last used, until it is stored.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use svc_core::accounts::grants::{GrantId, GrantUse};
use svc_core::accounts::keys::{Caller, CallerId, KeyId};
use svc_core::accounts::platform_keys::PlatformKeyId;
use svc_core::error::Error;
use svc_core::store::{KeyUse, Store};
use svc_core::sync::lock;
use svc_core::values::{TenantId, Timestamp};

/// When keys were last used. It is stored every ten seconds or so, as a write with every request would cost more than the
/// request itself.
#[derive(Default)]
pub(crate) struct LastUsed {
    keys: Mutex<HashMap<KeyId, Timestamp>>,
    /// With the number of requests.
    grants: Mutex<HashMap<(TenantId, GrantId), (Timestamp, u64)>>,
    platform_keys: Mutex<HashMap<PlatformKeyId, Timestamp>>,
}

impl LastUsed {
    /// Records a request of a key, or of an app.
    pub(crate) fn record(&self, caller: &Caller, now: Timestamp) {
        match caller.id {
            CallerId::Key(key) => {
                lock(&self.keys).insert(key, now);
            }
            CallerId::App { grant, .. } => {
                let mut grants = lock(&self.grants);
                let (used_at, requests) = grants.entry((caller.tenant_id, grant)).or_insert((now, 0));
                (*used_at, *requests) = (now, *requests + 1);
            }
        }
    }

    /// Records the use of a platform key.
    pub(crate) fn record_platform_key(&self, key: PlatformKeyId, now: Timestamp) {
        lock(&self.platform_keys).insert(key, now);
    }

    /// Stores the uses that were recorded since the last call.
    ///
    /// # Errors
    ///
    /// Returns [`Error::Store`]; the uses are kept for the next call.
    pub(crate) async fn flush(&self, store: &dyn Store) -> Result<(), Error> {
        let keys = std::mem::take(&mut *lock(&self.keys));
        let platform_keys = std::mem::take(&mut *lock(&self.platform_keys));
        let grants = std::mem::take(&mut *lock(&self.grants));
        if keys.is_empty() && platform_keys.is_empty() && grants.is_empty() {
            return Ok(());
        }
        let uses: Vec<KeyUse> = keys.iter().map(|(&key_id, &used_at)| KeyUse { key_id, used_at }).collect();
        let platform_uses: Vec<KeyUse<PlatformKeyId>> =
            platform_keys.iter().map(|(&key_id, &used_at)| KeyUse { key_id, used_at }).collect();
        let grant_uses: Vec<GrantUse> = grants
            .iter()
            .map(|(&(tenant_id, grant_id), &(used_at, requests))| GrantUse { tenant_id, grant_id, used_at, requests })
            .collect();
        let uses = Arc::new((uses, platform_uses, grant_uses));
        let write = store.write("keys.record_uses", uses, async |tx, uses| {
            tx.record_key_uses(&uses.0).await?;
            tx.record_grant_uses(&uses.2).await?;
            Ok(tx.record_platform_key_uses(&uses.1).await?)
        });
        let result = write.await;
        if result.is_err() {
            put_back(&self.keys, keys);
            put_back(&self.platform_keys, platform_keys);
            let mut recorded = lock(&self.grants);
            for (grant, (used_at, requests)) in grants {
                recorded.entry(grant).or_insert((used_at, 0)).1 += requests;
            }
        }
        result
    }
}

/// Keeps uses that could not be stored for the next time, unless there are later ones.
fn put_back<K: Eq + Hash>(recorded: &Mutex<HashMap<K, Timestamp>>, uses: HashMap<K, Timestamp>) {
    let mut recorded = lock(recorded);
    for (key, used_at) in uses {
        recorded.entry(key).or_insert(used_at);
    }
}
