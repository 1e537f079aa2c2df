//! Tenants, their clocks, the numbers of their documents, and when their invoices are checked.

use async_trait::async_trait;

use crate::accounts::tenants::{NumberKind, Tenant};
use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};

/// Tenants, their clocks, the numbers of their documents, and when their invoices are checked.
#[async_trait]
pub trait TenantRepository: Send {
    /// Returns one tenant.
    async fn tenant(&mut self, id: TenantId) -> Result<Option<Tenant>, StoreError>;

    /// Returns the first `limit` tenants after the tenant `after`, or of all, oldest first: in the order of their ids.
    async fn tenants(&mut self, after: Option<TenantId>, limit: u32) -> Result<Vec<Tenant>, StoreError>;

    /// Adds a tenant, whose clock starts at its `created_at`. Its next check for passed due dates is at that time, too.
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

    /// Returns the first `limit` tenants whose next check for passed due dates is at or before `now`, or after `latest`, the
    /// earliest check first in each case.
    async fn tenants_to_check_overdue(
        &mut self,
        now: Timestamp,
        latest: Timestamp,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError>;

    /// Returns when the invoices of a tenant are next checked for passed due dates, or `None` if there is no such tenant.
    async fn overdue_check_at(&mut self, tenant: TenantId) -> Result<Option<Timestamp>, StoreError>;

    /// Sets when the invoices of a tenant are next checked for passed due dates.
    async fn set_overdue_check_at(&mut self, tenant: TenantId, at: Timestamp) -> Result<(), StoreError>;

    /// Returns the next number of a kind: 1, 2, 3, … without gaps.
    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> Result<u64, StoreError>;

    /// Makes the numbers of a kind continue after `number`, which is at least 1. Does nothing if they are already past it.
    async fn raise_number(&mut self, tenant: TenantId, kind: NumberKind, number: u64) -> Result<(), StoreError>;
}
