//! Idempotency keys that are in flight. What was answered is kept in the database; what is being answered is
//! known here, so that a repeat that comes meanwhile is told to wait.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use svc_core::error::Error;
use svc_core::sync::lock;
use svc_core::values::TenantId;

type Slot = (TenantId, String);

/// The keys whose first request is still running in this process.
#[derive(Clone, Default)]
pub struct InFlightKeys(Arc<Mutex<HashSet<Slot>>>);

/// Holds a key until the job that uses it is done, which may be after the client has gone.
pub struct Guard {
    registry: InFlightKeys,
    slot: Slot,
}

impl InFlightKeys {
    /// Takes a key.
    ///
    /// # Errors
    /// [`Error::IdempotencyInProgress`] while another request holds it.
    pub fn begin(&self, tenant: TenantId, key: &str) -> Result<Guard, Error> {
        let slot = (tenant, key.to_owned());
        let fresh = lock(&self.0).insert(slot.clone());
        if fresh { Ok(Guard { registry: self.clone(), slot }) } else { Err(Error::IdempotencyInProgress) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        lock(&self.registry.0).remove(&self.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_held_per_tenant_until_the_guard_goes() {
        let registry = InFlightKeys::default();
        let (one, two) = (TenantId(uuid::Uuid::nil()), TenantId(uuid::Uuid::max()));
        let guard = registry.begin(one, "k").ok();
        assert_eq!(registry.begin(one, "k").err(), Some(Error::IdempotencyInProgress));
        assert!(registry.begin(two, "k").is_ok());
        drop(guard);
        assert!(registry.begin(one, "k").is_ok());
    }
}
