//! The generic operations that all resources share: get, list, create, update, delete.
//!
//! A resource implements [`Resource`], and [`Create`], [`Update`] and [`Delete`] as far as clients may do that. These
//! traits contain what differs between resources: the rules, and the events of a change. The functions do the rest in the
//! same order for all: advance the tenant's clock, apply the rules, write the row, record the change in the audit log if
//! the resource is audited, and write the events with their deliveries.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::SerializeMap;
pub use svc_derive::Resource;
use uuid::Uuid;

use crate::accounts::audit::{self, Object};
use crate::accounts::clocks::MAX_AHEAD;
use crate::error::Error;
use crate::input::{Fields, Input, ToBody};
use crate::resources::pages::{CursorScope, ListParams, Page};
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{Id, TenantId, Timestamp};
use crate::webhooks::events;

/// A record with a collection of its own. `#[derive(Resource)]` implements it.
pub trait Resource: Serialize + JsonSchema + Clone + PartialEq + Send + Sync + 'static {
    /// The segment in the path, such as `contacts`.
    const COLLECTION: &'static str;

    /// The query parameters of its list, besides those that every list has.
    type Filter: Filter<Self>;

    /// The kind of object in the audit log. `None` if changes are not recorded there, as their events tell of them.
    const AUDITED: Option<&'static str> = None;

    /// Returns the id.
    fn id(&self) -> Id<Self>;
    /// Returns when the record was created: its position in lists, unique within the tenant.
    fn created_at(&self) -> Timestamp;
    /// Returns when the record last changed: its position in lists with `updated_since`, unique within the tenant.
    fn updated_at(&self) -> Timestamp;
    /// Returns when the record was deleted. Always `None` for a resource without soft deletion.
    fn deleted_at(&self) -> Option<Timestamp> {
        None
    }

    /// Returns the repository of this resource in a transaction.
    fn repository(tx: &mut dyn Tx) -> &mut dyn Repository<Self>;
}

/// The filters of a list.
pub trait Filter<R>: Input + Clone + Serialize {
    /// Returns the filter of a list without parameters: every record that is not deleted.
    fn none() -> Self;

    /// Returns whether a row passes. Stores with a query language express the same condition in it.
    fn matches(&self, row: &R) -> bool;
}

/// The filter of a list without query parameters of its own. Records that are not deleted pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct NoFilter {}

impl Input for NoFilter {
    fn take(_fields: &mut Fields) -> Option<Self> {
        Some(Self {})
    }
}

impl ToBody for NoFilter {
    fn write_fields<M: SerializeMap>(&self, _object: &mut M) -> Result<(), M::Error> {
        Ok(())
    }
}

impl<R: Resource> Filter<R> for NoFilter {
    fn none() -> Self {
        Self {}
    }
    fn matches(&self, row: &R) -> bool {
        row.deleted_at().is_none()
    }
}

/// The tenant, the id and the time of a new record.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord {
    /// The tenant that the record belongs to.
    pub tenant_id: TenantId,
    /// The id of the record.
    pub id: Uuid,
    /// The `created_at` and `updated_at` of the record.
    pub now: Timestamp,
}

/// When a write happens.
#[derive(Clone, Copy, Debug)]
pub struct WriteTime {
    /// The time that [`advance_clock`] returned, which orders the writes of the tenant: the `updated_at` of what changes.
    pub now: Timestamp,
    /// The time at which it happens in the world, from which dates and expiries follow. It is the wall clock's if the
    /// tenant's clock is more than [`MAX_AHEAD`] ahead of it, and otherwise `now`.
    pub wall_clock: Timestamp,
}

impl WriteTime {
    /// Returns the times of the write for which [`advance_clock`] returned `now`.
    pub fn new(tx: &dyn Tx, now: Timestamp) -> Self {
        let wall_clock = tx.env().now();
        Self { now, wall_clock: if now.since(wall_clock) > MAX_AHEAD { wall_clock } else { now } }
    }
}

/// A resource that clients can create.
#[async_trait]
pub trait Create: Resource {
    /// The body of the request.
    type Input: Input;

    /// Builds the record from the body.
    ///
    /// # Errors
    /// What the rules of the resource refuse.
    async fn build(tx: &mut dyn Tx, new: NewRecord, input: Self::Input) -> Result<Self, Error>;

    /// Returns the events of the creation, in order.
    fn created_events(&self) -> Vec<EventKind>;
}

/// A resource that clients can change.
#[async_trait]
pub trait Update: Resource {
    /// The body of the request.
    type Input: Input + Clone;

    /// Applies a change to the record and checks the rules that need no other record.
    ///
    /// # Errors
    /// The rules that the changed record breaks.
    fn apply(&mut self, change: Self::Input, at: WriteTime) -> Result<(), Error>;

    /// Sets the time of the change.
    fn set_updated_at(&mut self, now: Timestamp);

    /// Checks the rules that need other records, and changes those that depend on this one. It may change the record as well.
    ///
    /// # Errors
    /// The rules that the changed record breaks.
    async fn check(&mut self, _tx: &mut dyn Tx, _tenant: TenantId, _before: &Self) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the events of a change, in order: the more particular kind before the general one.
    fn changed_events(&self, before: &Self) -> Vec<EventKind>;
}

/// A resource that clients can delete. Its row stays, for the records that refer to it.
#[async_trait]
pub trait Delete: Resource {
    /// Marks the record as deleted.
    fn mark_deleted(&mut self, now: Timestamp);

    /// Ends what depends on the record, such as its pending deliveries. It may change the record as well.
    async fn on_delete(&mut self, _tx: &mut dyn Tx, _tenant: TenantId) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the events of the deletion, in order.
    fn deleted_events(&self) -> Vec<EventKind>;
}

/// Returns the record with this id.
///
/// # Errors
/// [`Error::NotFound`] if the tenant has no such record, or it is deleted.
pub async fn get<R: Resource>(tx: &mut dyn Tx, tenant: TenantId, id: Id<R>) -> Result<R, Error> {
    let row = R::repository(tx).get(tenant, id).await?;
    row.filter(|row| row.deleted_at().is_none()).ok_or(Error::NotFound)
}

/// Returns one page of a list.
///
/// # Errors
/// [`Error::InvalidCursor`] if the cursor was not returned for this list with these filters.
pub async fn list<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    params: &ListParams,
    filter: &R::Filter,
) -> Result<Page<R>, Error> {
    let key = tx.cursor_key().clone();
    let scope = CursorScope::new(tenant, R::COLLECTION, params.updated_since, filter);
    let query = params.query(&key, &scope, filter)?;
    let rows = R::repository(tx).list(tenant, &query).await?;
    Ok(params.page(&key, &scope, rows, R::created_at, R::updated_at))
}

/// Creates a record, with its events and their deliveries.
///
/// # Errors
/// What the rules of the resource refuse.
pub async fn create<R: Create>(tx: &mut dyn Tx, tenant: TenantId, input: R::Input) -> Result<R, Error> {
    let now = advance_clock(tx, tenant).await?;
    let new = NewRecord { tenant_id: tenant, id: tx.env().id(now), now };
    let record = R::build(tx, new, input).await?;
    R::repository(tx).insert(tenant, &record).await?;
    audit_change(tx, tenant, "create", None, Some(&record)).await?;
    events::emit(tx, tenant, now, &record.created_events(), &record).await?;
    Ok(record)
}

/// Changes a record, with its events and their deliveries. A change without effect writes nothing and fires no event.
///
/// # Errors
/// [`Error::NotFound`], and what the rules of the resource refuse.
pub async fn update<R: Update>(tx: &mut dyn Tx, tenant: TenantId, id: Id<R>, change: R::Input) -> Result<R, Error> {
    let now = advance_clock(tx, tenant).await?;
    let before: R = get(tx, tenant, id).await?;
    let mut after = before.clone();
    after.apply(change, WriteTime::new(tx, now))?;
    if after == before {
        return Ok(before);
    }
    after.check(tx, tenant, &before).await?;
    after.set_updated_at(now);
    R::repository(tx).update(tenant, &after).await?;
    audit_change(tx, tenant, "update", Some(&before), Some(&after)).await?;
    events::emit(tx, tenant, now, &after.changed_events(&before), &after).await?;
    Ok(after)
}

/// Deletes a record, with its events and their deliveries.
///
/// # Errors
/// [`Error::NotFound`], also if the record is deleted already.
pub async fn delete<R: Delete>(tx: &mut dyn Tx, tenant: TenantId, id: Id<R>) -> Result<(), Error> {
    let now = advance_clock(tx, tenant).await?;
    let before: R = get(tx, tenant, id).await?;
    let mut record = before.clone();
    record.mark_deleted(now);
    record.on_delete(tx, tenant).await?;
    R::repository(tx).update(tenant, &record).await?;
    audit_change(tx, tenant, "delete", Some(&before), None).await?;
    events::emit(tx, tenant, now, &record.deleted_events(), &record).await
}

/// Records a change in the audit log, if the resource is audited.
pub(crate) async fn audit_change<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    action: &'static str,
    before: Option<&R>,
    after: Option<&R>,
) -> Result<(), Error> {
    match (R::AUDITED, before.or(after)) {
        (Some(kind), Some(record)) => {
            audit::record(tx, tenant, action, Object { kind, id: record.id().uuid() }, before, after).await
        }
        _ => Ok(()),
    }
}

/// Locks the tenant and returns the time of this write, which is after every earlier write of the tenant.
///
/// # Errors
/// [`Error::NotFound`] if there is no such tenant.
pub async fn advance_clock(tx: &mut dyn Tx, tenant: TenantId) -> Result<Timestamp, Error> {
    tx.advance_clock(tenant).await?.ok_or(Error::NotFound)
}
