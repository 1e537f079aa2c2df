//! The form that serves every resource: get, list, create, update, delete. A resource's own room holds
//! what differs: its fields, its rules, its events.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Serialize;
pub use svc_derive::Resource;
use uuid::Uuid;

use crate::accounts::audit::{self, Object};
use crate::error::Error;
use crate::input::{Fields, Input};
use crate::resources::pages::{ListParams, Page, Scope};
use crate::store::{Repository, Tx};
use crate::values::EventKind;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::events;

/// A record that the API serves.
pub trait Resource: Serialize + JsonSchema + Clone + PartialEq + Send + Sync + 'static {
    /// The path segment: `contacts`.
    const COLLECTION: &'static str;

    /// The filters of its list, besides those that every list has.
    type Filter: Filter<Self>;

    /// What the audit log calls it, for those whose changes are noted there.
    const AUDITED: Option<&'static str> = None;

    /// Its id.
    fn id(&self) -> Uuid;
    /// When it was created: its place in lists, unique within the tenant.
    fn created_at(&self) -> Timestamp;
    /// When it was last changed: its place in `updated_since` walks, unique within the tenant.
    fn updated_at(&self) -> Timestamp;
    /// When it was deleted, for resources that can be.
    fn deleted_at(&self) -> Option<Timestamp> {
        None
    }

    /// The rows of this resource in a transaction.
    fn repository(tx: &mut dyn Tx) -> &mut dyn Repository<Self>;
}

/// The filters of a list.
pub trait Filter<R>: Input + Clone + Serialize {
    /// Lets every row through that the API shows by default.
    fn none() -> Self;

    /// Whether a row passes. Stores with a query language say the same in it.
    fn matches(&self, row: &R) -> bool;
}

/// The filter of a list that has none of its own: everything that is not deleted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NoFilter {}

impl Input for NoFilter {
    fn take(_fields: &mut Fields) -> Option<Self> {
        Some(Self {})
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

/// What every new record begins with.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord {
    /// Whose it is.
    pub tenant_id: TenantId,
    /// Its id.
    pub id: Uuid,
    /// Its `created_at` and `updated_at`.
    pub now: Timestamp,
}

/// A resource that clients can create.
#[async_trait]
pub trait Create: Resource {
    /// The body.
    type Input: Input;

    /// Builds the record by its rules.
    async fn build(tx: &mut dyn Tx, new: NewRecord, input: Self::Input) -> Result<Self, Error>;

    /// The events of its creation, in order.
    fn created_events(&self) -> Vec<EventKind>;
}

/// A resource that clients can change.
#[async_trait]
pub trait Update: Resource {
    /// The body.
    type Input: Input + Clone;

    /// Applies the change to the merged record and checks its rules.
    ///
    /// # Errors
    /// What the merged record violates.
    fn apply(&mut self, change: Self::Input, now: Timestamp) -> Result<(), Error>;

    /// Stamps the time of a change.
    fn set_updated_at(&mut self, now: Timestamp);

    /// Checks the changed record against other rows.
    async fn check(&self, _tx: &mut dyn Tx, _tenant: TenantId, _before: &Self) -> Result<(), Error> {
        Ok(())
    }

    /// The events of a change, in order; the particular before the general.
    fn changed_events(&self, before: &Self) -> Vec<EventKind>;
}

/// A resource that clients can delete. Its row stays, for those that refer to it.
#[async_trait]
pub trait Delete: Resource {
    /// Marks it.
    fn mark_deleted(&mut self, now: Timestamp);

    /// Ends what goes on for it.
    async fn on_delete(&self, _tx: &mut dyn Tx, _tenant: TenantId) -> Result<(), Error> {
        Ok(())
    }

    /// The events of its deletion.
    fn deleted_events(&self) -> Vec<EventKind>;
}

/// The live record with this id.
///
/// # Errors
/// [`Error::NotFound`]: unknown, deleted, or another tenant's.
pub async fn get<R: Resource>(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<R, Error> {
    let row = R::repository(tx).get(tenant, id).await?;
    row.filter(|row| row.deleted_at().is_none()).ok_or(Error::NotFound)
}

/// One page of a list.
///
/// # Errors
/// [`Error::InvalidCursor`].
pub async fn list<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    params: &ListParams,
    filter: &R::Filter,
) -> Result<Page<R>, Error> {
    let key = tx.cursor_key().clone();
    let scope = Scope::new(tenant, R::COLLECTION, params.updated_since, filter);
    let listing = params.listing(&key, &scope, filter)?;
    let rows = R::repository(tx).list(tenant, &listing).await?;
    Ok(params.page(&key, &scope, rows, R::created_at, R::updated_at))
}

/// Creates a record, with its events and their deliveries.
///
/// # Errors
/// What its rules refuse.
pub async fn create<R: Create>(tx: &mut dyn Tx, tenant: TenantId, input: R::Input) -> Result<R, Error> {
    let now = advance_clock(tx, tenant).await?;
    let new = NewRecord { tenant_id: tenant, id: tx.env().id(now), now };
    let record = R::build(tx, new, input).await?;
    R::repository(tx).insert(tenant, &record).await?;
    audit_change(tx, tenant, "create", None, Some(&record)).await?;
    events::emit(tx, tenant, now, &record.created_events(), &record).await?;
    Ok(record)
}

/// Changes a record, with its events and their deliveries. A change without effect leaves everything as it is.
///
/// # Errors
/// [`Error::NotFound`], or what the rules refuse.
pub async fn update<R: Update>(tx: &mut dyn Tx, tenant: TenantId, id: Uuid, change: R::Input) -> Result<R, Error> {
    let now = advance_clock(tx, tenant).await?;
    let before: R = get(tx, tenant, id).await?;
    let mut after = before.clone();
    after.apply(change, now)?;
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
/// [`Error::NotFound`], also the second time.
pub async fn delete<R: Delete>(tx: &mut dyn Tx, tenant: TenantId, id: Uuid) -> Result<(), Error> {
    let now = advance_clock(tx, tenant).await?;
    let before: R = get(tx, tenant, id).await?;
    let mut record = before.clone();
    record.mark_deleted(now);
    record.on_delete(tx, tenant).await?;
    R::repository(tx).update(tenant, &record).await?;
    audit_change(tx, tenant, "delete", Some(&before), None).await?;
    events::emit(tx, tenant, now, &record.deleted_events(), &record).await
}

/// Notes a change in the audit log, if those of this resource are.
pub(crate) async fn audit_change<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    action: &'static str,
    before: Option<&R>,
    after: Option<&R>,
) -> Result<(), Error> {
    match (R::AUDITED, before.or(after)) {
        (Some(kind), Some(record)) => {
            audit::record(tx, tenant, action, Object { kind, id: record.id() }, before, after).await
        }
        _ => Ok(()),
    }
}

/// The time of a write: strictly after every other write of the tenant.
///
/// # Errors
/// [`Error::NotFound`] when there is no such tenant.
pub async fn advance_clock(tx: &mut dyn Tx, tenant: TenantId) -> Result<Timestamp, Error> {
    tx.advance_clock(tenant).await?.ok_or(Error::NotFound)
}
