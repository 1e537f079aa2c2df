//! The idempotency keys of running requests.
//!
//! The database stores the responses of finished requests. This registry knows the running ones of this process, so that
//! a repeat in the meantime is refused at once. Between processes, the transaction claims the key in the database.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use svc_core::error::Error;
use svc_core::sync::lock;
use svc_core::values::TenantId;

type TenantKey = (TenantId, String);

/// The idempotency keys whose first request is still running in this process. Clones share the registry.
#[derive(Clone, Default)]
pub struct InFlightKeys(Arc<Mutex<HashSet<TenantKey>>>);

/// Keeps a key registered until it is dropped.
///
/// The transaction owns it, as that may still run after the client has disconnected.
pub struct InFlightGuard {
    registry: InFlightKeys,
    key: TenantKey,
}

impl InFlightKeys {
    /// Registers the key of a request that starts.
    ///
    /// # Errors
    ///
    /// Returns [`Error::IdempotencyInProgress`] while another request with the key is running.
    pub fn register(&self, tenant: TenantId, key: &str) -> Result<InFlightGuard, Error> {
        let key = (tenant, key.to_owned());
        let is_new = lock(&self.0).insert(key.clone());
        if is_new { Ok(InFlightGuard { registry: self.clone(), key }) } else { Err(Error::IdempotencyInProgress) }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        lock(&self.registry.0).remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_registered_per_tenant_until_the_guard_is_dropped() {
        let registry = InFlightKeys::default();
        let (one, two) = (TenantId(uuid::Uuid::nil()), TenantId(uuid::Uuid::max()));
        let guard = registry.register(one, "k").ok();
        assert_eq!(registry.register(one, "k").err(), Some(Error::IdempotencyInProgress));
        assert!(registry.register(two, "k").is_ok());
        drop(guard);
        assert!(registry.register(one, "k").is_ok());
    }
}
