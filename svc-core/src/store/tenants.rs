//! Tenants, their clocks and the numbers of their documents.

use async_trait::async_trait;

use crate::accounts::tenants::{NumberKind, Tenant};
use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};

/// Tenants, their clocks and the numbers of their documents.
#[async_trait]
pub trait TenantRepository: Send {
    /// Returns one tenant.
    async fn tenant(&mut self, id: TenantId) -> Result<Option<Tenant>, StoreError>;

    /// Returns the first `limit` tenants after the tenant `after`, or of all, oldest first: in the order of their ids.
    async fn tenants(&mut self, after: Option<TenantId>, limit: u32) -> Result<Vec<Tenant>, StoreError>;

    /// Adds a tenant, whose clock starts at its `created_at`.
    async fn insert_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError>;

    /// Replaces the settings of a tenant.
    async fn update_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError>;

    /// Advances the clock of a tenant to `max(wall clock, last + 1 µs)` and returns it, or `None` if there is no such
    /// tenant.
    ///
    /// It locks the row of the tenant until the transaction ends, so writes of one tenant happen one after the other and
    /// commit in the order of their times.
    async fn advance_clock(&mut self, tenant: TenantId) -> Result<Option<Timestamp>, StoreError>;

    /// Locks the row of a tenant as [`advance_clock`](TenantRepository::advance_clock) does, without advancing its clock.
    /// Returns `false` if there is no such tenant.
    async fn lock_tenant(&mut self, tenant: TenantId) -> Result<bool, StoreError>;

    /// Returns the next number of a kind: 1, 2, 3, … without gaps.
    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> Result<u64, StoreError>;

    /// Makes the numbers of a kind continue after `number`, which is at least 1. Does nothing if they are already past it.
    async fn raise_number(&mut self, tenant: TenantId, kind: NumberKind, number: u64) -> Result<(), StoreError>;
}
