//! The knowledge of a write transaction about the tenants that it has locked.
//!
//! No other transaction changes anything of a locked tenant. So the units of work of one transaction need not ask the
//! database for what an earlier one has learned, and store the clock of a tenant once, at the commit.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use svc_core::accounts::keys::Credential;
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::deliveries::MatchedSubscription;
use svc_core::webhooks::subscriptions::SubscriptionId;

/// The tenants that a write transaction has locked.
#[derive(Default)]
pub(crate) struct LockedTenants {
    tenants: HashMap<TenantId, LockedTenant>,
    /// The tenants that the running unit of work was the first to lock.
    locked_by_unit: Vec<TenantId>,
}

/// The knowledge about a locked tenant.
#[derive(Default)]
pub(crate) struct LockedTenant {
    pub(crate) clock: Timestamp,
    /// Whether the clock was advanced since it was stored.
    is_advanced: bool,
    /// The subscriptions that an event of a kind is for.
    pub(crate) matching: HashMap<EventKind, Vec<MatchedSubscription>>,
    /// API keys by their hashes.
    pub(crate) credentials: HashMap<[u8; 32], Credential>,
    /// The times at which endpoints are due, or before.
    pub(crate) schedule: HashMap<SubscriptionId, Timestamp>,
}

impl LockedTenant {
    /// Advances the clock to `wall`, or by a microsecond if it is not before that.
    pub(crate) fn advance_clock(&mut self, wall: Timestamp) -> Timestamp {
        (self.clock, self.is_advanced) = (wall.max(self.clock.next()), true);
        self.clock
    }

    /// Takes over a clock that was stored.
    pub(crate) fn set_clock(&mut self, clock: Timestamp) {
        (self.clock, self.is_advanced) = (clock, false);
    }

    /// Forgets all but the clock, as the tenant, one of its keys or of its subscriptions changes.
    pub(crate) fn forget(&mut self) {
        *self = Self { clock: self.clock, is_advanced: self.is_advanced, ..Self::default() };
    }
}

impl LockedTenants {
    /// Adds a tenant whose row was locked, with the clock that the row has.
    pub(crate) fn add(&mut self, tenant: TenantId, clock: Timestamp) {
        if let Entry::Vacant(new) = self.tenants.entry(tenant) {
            new.insert(LockedTenant { clock, ..LockedTenant::default() });
            self.locked_by_unit.push(tenant);
        }
    }

    pub(crate) fn get(&mut self, tenant: TenantId) -> Option<&mut LockedTenant> {
        self.tenants.get_mut(&tenant)
    }

    /// Returns the clocks that were advanced since they were stored, each once.
    pub(crate) fn take_advanced_clocks(&mut self) -> impl Iterator<Item = (TenantId, Timestamp)> {
        let advanced = |(id, tenant): (&TenantId, &mut LockedTenant)| {
            std::mem::take(&mut tenant.is_advanced).then_some((*id, tenant.clock))
        };
        self.tenants.iter_mut().filter_map(advanced)
    }

    /// Is called before a unit of work that may be rolled back alone.
    pub(crate) fn begin_unit(&mut self) {
        self.locked_by_unit.clear();
    }

    /// Forgets what depends on changes of the last unit of work, which was rolled back alone.
    pub(crate) fn roll_back_unit(&mut self) {
        for tenant in self.locked_by_unit.drain(..) {
            self.tenants.remove(&tenant);
        }
        for locked in self.tenants.values_mut() {
            locked.forget();
            locked.is_advanced = true;
        }
    }
}
