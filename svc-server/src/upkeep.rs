//! What is done beside requests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::types::Timestamp;
use uuid::Uuid;

/// Rows that one step of pruning drops at most, so that no write waits long behind it.
const PRUNE_STEP: u32 = 500;

/// When keys were last used, until it is written down: a write per request would cost more than the request.
#[derive(Default)]
pub(crate) struct LastUsed(Mutex<HashMap<Uuid, Timestamp>>);

impl LastUsed {
    pub(crate) fn note(&self, key: Uuid, now: Timestamp) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, now);
    }

    pub(crate) async fn flush(&self, store: &dyn Store) -> Result<(), Error> {
        let noted = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        if noted.is_empty() {
            return Ok(());
        }
        let used: Arc<[(Uuid, Timestamp)]> = noted.into_iter().collect();
        let written = Arc::clone(&used);
        let write = store.write("keys.touch", move |tx| {
            let used = Arc::clone(&written);
            Box::pin(async move { Ok(tx.touch_keys(&used).await?) })
        });
        let result = write.await;
        if result.is_err() {
            let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            for (key, at) in used.iter() {
                noted.entry(*key).or_insert(*at);
            }
        }
        result
    }
}

/// Drops expired answers and signatures in small steps.
pub(crate) async fn prune(store: &dyn Store, idempotency_ttl: Duration) -> Result<(), Error> {
    loop {
        let dropped = store.write("prune", move |tx| {
            Box::pin(async move {
                let now = tx.env().now();
                Ok(tx.prune(now.minus(idempotency_ttl), now, PRUNE_STEP).await?)
            })
        });
        if dropped.await? < u64::from(PRUNE_STEP) {
            return Ok(());
        }
    }
}
