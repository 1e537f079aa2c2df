//! The API keys that were valid a moment ago.
//!
//! The transaction of a write looks its key up, with the account locked. So a key that was valid a moment ago need not be
//! looked up before that as well. Its client gets nothing for it: no change is made and no error returned until the key has
//! been looked up.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use svc_core::accounts::keys::{Caller, KeyHash};
use svc_core::sync::lock;
use svc_core::values::Timestamp;

/// How long a key is known.
const KNOWN_FOR: Duration = Duration::from_secs(5);
/// The highest number of known keys. All are forgotten when there are more.
const MAX_KEYS: usize = 10_000;

/// The API keys that were valid when they were last looked up, and when that was.
#[derive(Default)]
pub(super) struct KnownKeys(Mutex<HashMap<KeyHash, (Caller, Timestamp)>>);

impl KnownKeys {
    /// Returns the client that a key belongs to, if it was looked up a moment ago.
    pub(super) fn get(&self, hash: KeyHash, now: Timestamp) -> Option<Caller> {
        let keys = lock(&self.0);
        let (caller, looked_up_at) = keys.get(&hash)?;
        (now.since(*looked_up_at) < KNOWN_FOR).then(|| caller.clone())
    }

    /// Keeps a key that was looked up. Keys that sign their writes are not kept, as a signature is checked, and marked as
    /// used, before the transaction.
    pub(super) fn add(&self, hash: KeyHash, caller: &Caller, now: Timestamp) {
        if caller.signing_secret.is_some() {
            return;
        }
        let mut keys = lock(&self.0);
        if keys.len() >= MAX_KEYS {
            keys.clear();
        }
        keys.insert(hash, (caller.clone(), now));
    }

    /// Forgets a key that is no longer valid.
    pub(super) fn remove(&self, hash: KeyHash) {
        lock(&self.0).remove(&hash);
    }
}

#[cfg(test)]
mod tests;
