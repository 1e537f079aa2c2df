//! What a write transaction knows of the tenants that it has locked.
//!
//! No other transaction changes anything of a locked tenant. So the units of work of one transaction need not ask the
//! database for what an earlier one has learned, and store the clock of a tenant once, at the commit.

use std::collections::hash_map::{Entry, HashMap};

use svc_core::accounts::keys::Credential;
use svc_core::error::StoreError;
use svc_core::store::Endpoint;
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::deliveries::MatchedSubscription;
use svc_core::webhooks::subscriptions::SubscriptionId;

use crate::sql::Sql;

/// What a write transaction knows of the tenants that it has locked.
#[derive(Default)]
pub(crate) struct LockedTenants {
    tenants: HashMap<TenantId, LockedTenant>,
    /// The tenants that the running unit of work was the first to lock.
    locked_by_unit: Vec<TenantId>,
}

#[derive(Default)]
struct LockedTenant {
    clock: Timestamp,
    /// Whether the clock was advanced since it was stored.
    is_advanced: bool,
    /// The subscriptions that an event of a kind is for.
    matching: HashMap<EventKind, Vec<MatchedSubscription>>,
    /// API keys by their hashes.
    credentials: HashMap<[u8; 32], Credential>,
    /// The times at which endpoints are due, or before.
    schedule: HashMap<SubscriptionId, Timestamp>,
}

impl LockedTenants {
    /// Adds a tenant whose row was locked, with the clock that the row has.
    pub(crate) fn add(&mut self, tenant: TenantId, clock: Timestamp) {
        if let Entry::Vacant(new) = self.tenants.entry(tenant) {
            new.insert(LockedTenant { clock, ..LockedTenant::default() });
            self.locked_by_unit.push(tenant);
        }
    }

    pub(crate) fn contains(&self, tenant: TenantId) -> bool {
        self.tenants.contains_key(&tenant)
    }

    /// Keeps a clock that was stored, if its tenant is locked.
    pub(crate) fn keep_clock(&mut self, tenant: TenantId, clock: Timestamp) {
        if let Some(locked) = self.tenants.get_mut(&tenant) {
            (locked.clock, locked.is_advanced) = (clock, false);
        }
    }

    /// Returns the clock of a tenant, if it is locked.
    pub(crate) fn clock(&self, tenant: TenantId) -> Option<Timestamp> {
        Some(self.tenants.get(&tenant)?.clock)
    }

    /// Advances the clock of a tenant, if it is locked: to `wall`, or by a microsecond if it is not before that.
    pub(crate) fn advance_clock(&mut self, tenant: TenantId, wall: Timestamp) -> Option<Timestamp> {
        let locked = self.tenants.get_mut(&tenant)?;
        (locked.clock, locked.is_advanced) = (wall.max(locked.clock.next()), true);
        Some(locked.clock)
    }

    /// Returns the subscriptions that an event is for, if they are known.
    pub(crate) fn matching(&self, tenant: TenantId, kind: EventKind) -> Option<&[MatchedSubscription]> {
        self.tenants.get(&tenant)?.matching.get(&kind).map(Vec::as_slice)
    }

    /// Keeps the subscriptions that an event is for, if the tenant is locked.
    pub(crate) fn keep_matching(&mut self, tenant: TenantId, kind: EventKind, matching: &[MatchedSubscription]) {
        if let Some(locked) = self.tenants.get_mut(&tenant) {
            locked.matching.insert(kind, matching.to_vec());
        }
    }

    /// Forgets what the subscriptions of a tenant are for, as one of them changes.
    pub(crate) fn forget_matching(&mut self, tenant: TenantId) {
        if let Some(locked) = self.tenants.get_mut(&tenant) {
            locked.matching.clear();
        }
    }

    /// Returns the API key with a hash, if it is known.
    pub(crate) fn credential(&self, tenant: TenantId, key_hash: &[u8; 32]) -> Option<&Credential> {
        self.tenants.get(&tenant)?.credentials.get(key_hash)
    }

    /// Keeps an API key, if its tenant is locked.
    pub(crate) fn keep_credential(&mut self, key_hash: &[u8; 32], credential: &Credential) {
        if let Some(locked) = self.tenants.get_mut(&credential.tenant_id) {
            locked.credentials.insert(*key_hash, credential.clone());
        }
    }

    /// Forgets the API keys of a tenant, as one of them changes, or the tenant.
    pub(crate) fn forget_credentials(&mut self, tenant: TenantId) {
        if let Some(locked) = self.tenants.get_mut(&tenant) {
            locked.credentials.clear();
        }
    }

    /// Returns `false` if an endpoint is known to be scheduled by a time. Otherwise the caller schedules it, which is kept if
    /// its tenant is locked.
    pub(crate) fn schedule_by(&mut self, endpoint: Endpoint, due_at: Timestamp) -> bool {
        let Some(locked) = self.tenants.get_mut(&endpoint.tenant_id) else { return true };
        match locked.schedule.entry(endpoint.subscription_id) {
            Entry::Occupied(known) if *known.get() <= due_at => false,
            entry => {
                entry.insert_entry(due_at);
                true
            }
        }
    }

    /// Forgets when the endpoints of a tenant are due, as one of them gets another time.
    pub(crate) fn forget_schedule(&mut self, tenant: TenantId) {
        if let Some(locked) = self.tenants.get_mut(&tenant) {
            locked.schedule.clear();
        }
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
            locked.is_advanced = true;
            locked.matching.clear();
            locked.credentials.clear();
            locked.schedule.clear();
        }
    }
}

/// Stores the clocks that were advanced. Every transaction does so before it commits.
pub(crate) async fn store_clocks(sql: &mut dyn Sql) -> Result<(), StoreError> {
    let Some(locked) = sql.locked_tenants() else { return Ok(()) };
    let mut advanced = Vec::new();
    for (id, tenant) in &mut locked.tenants {
        if std::mem::take(&mut tenant.is_advanced) {
            advanced.push((*id, tenant.clock));
        }
    }
    if advanced.is_empty() { Ok(()) } else { sql.set_clocks(&advanced).await }
}
