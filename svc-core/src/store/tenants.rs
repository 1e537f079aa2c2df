//! Tenants, and to which of them a record belongs.

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreResult;
use crate::accounts::tenants::{NumberKind, Tenant};
use crate::values::{TenantId, Timestamp};

/// Tenants, their clocks, the numbers of their documents, and when their invoices are checked.
#[async_trait]
pub trait TenantRepository: Send {
    /// Returns one tenant.
    async fn tenant(&mut self, id: TenantId) -> StoreResult<Option<Tenant>>;

    /// Returns the first `limit` tenants after the tenant `after`, or of all, oldest first: in the order of their ids. Sandboxes
    /// are among them with `sandboxes` only.
    async fn tenants(&mut self, after: Option<TenantId>, limit: u32, sandboxes: bool) -> StoreResult<Vec<Tenant>>;

    /// Adds a tenant, whose clock starts at its `created_at`. Its next check for passed due dates is at that time, too.
    async fn insert_tenant(&mut self, tenant: &Tenant) -> StoreResult<()>;

    /// Replaces the settings of a tenant, and which sandbox it has. The account of a sandbox does not change.
    async fn update_tenant(&mut self, tenant: &Tenant) -> StoreResult<()>;

    /// Advances the clock of a tenant to `max(wall clock, last + 1 µs)` and returns it, or `None` if there is no such
    /// tenant.
    ///
    /// It locks the row of the tenant until the transaction ends, so writes of one tenant happen one after the other and
    /// commit in the order of their times.
    async fn advance_clock(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>>;

    /// Locks the row of a tenant as [`advance_clock`](TenantRepository::advance_clock) does, without advancing its clock.
    /// Returns `false` if there is no such tenant.
    async fn lock_tenant(&mut self, tenant: TenantId) -> StoreResult<bool>;

    /// Returns the clock of a tenant: the time of its last write.
    async fn clock(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>>;

    /// Returns the first `limit` tenants after the tenant `after`, or of all, whose clocks are later than `latest`, in the
    /// order of their ids.
    async fn tenants_ahead(
        &mut self,
        latest: Timestamp,
        after: Option<TenantId>,
        limit: u32,
    ) -> StoreResult<Vec<TenantId>>;

    /// Returns the latest time that the clock of a tenant gave to something that is stored: to a record, an event, a key or
    /// a replay.
    async fn latest_time(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>>;

    /// Sets the clock of a tenant, which may go back. The tenant must be locked, and the time not be before
    /// [`latest_time`](TenantRepository::latest_time).
    ///
    /// Positions that follow the clock go back with it: the time until which the index of searches has all changes, and those
    /// of streams in the tenant. One that stayed ahead would pass over everything that is written until the clock reaches it.
    async fn set_clock(&mut self, tenant: TenantId, at: Timestamp) -> StoreResult<()>;

    /// Returns the first `limit` tenants whose next check for passed due dates is at or before `now`, or after `latest`, the
    /// earliest check first in each case.
    async fn tenants_to_check_overdue(
        &mut self,
        now: Timestamp,
        latest: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<TenantId>>;

    /// Returns when the invoices of a tenant are next checked for passed due dates, or `None` if there is no such tenant.
    async fn overdue_check_at(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>>;

    /// Sets when the invoices of a tenant are next checked for passed due dates.
    async fn set_overdue_check_at(&mut self, tenant: TenantId, at: Timestamp) -> StoreResult<()>;

    /// Returns the next number of a kind: 1, 2, 3, … without gaps.
    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> StoreResult<u64>;

    /// Makes the numbers of a kind continue after `number`, which is at least 1. Does nothing if they are already past it.
    async fn raise_number(&mut self, tenant: TenantId, kind: NumberKind, number: u64) -> StoreResult<()>;
}

/// The types of records whose tenants can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedKind {
    /// An invoice.
    Invoice,
    /// A quote.
    Quote,
    /// A webhook subscription.
    Subscription,
    /// A delivery.
    Delivery,
}

/// Finds the tenants of a record by its id. Every other lookup of a record is within a tenant; the API never uses this one.
#[async_trait]
pub trait OwnerRepository: Send {
    /// Returns the tenants that have a record of this type with this id, deleted or not. There is one, unless the same rows
    /// were imported for several tenants.
    async fn owners(&mut self, kind: OwnedKind, id: Uuid) -> StoreResult<Vec<TenantId>>;
}
