//! The generic operations that all resources share: get, list, create, update, delete.
//!
//! The traits of [`resources`](crate::resources) contain what differs between resources: the rules, and the events of a
//! change. The functions here do the rest in the same order for all: advance the tenant's clock, apply the rules, write the
//! row, record the change in the audit log if the resource is audited, and write the events with their deliveries.

use std::ops::Range;

use crate::accounts::actor::Actor;
use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::clocks::{WriteTime, advance_clock};
use crate::accounts::limits::MAX_WEBHOOKS;
use crate::error::Error;
use crate::pages::{CursorScope, ListParams, Order, Page};
use crate::resources::{Create, Delete, NewRecord, Resource, Update};
use crate::store::Tx;
use crate::values::{Id, TenantId, Timestamp};
use crate::webhooks::events;

/// Returns the record with this id.
///
/// # Errors
/// [`Error::NotFound`] if the tenant has no such record, or it is deleted.
pub async fn get<R: Resource>(tx: &mut dyn Tx, tenant: TenantId, id: Id<R>) -> Result<R, Error> {
    let row = R::repository(tx).get(tenant, id).await?;
    row.filter(|row| row.deleted_at().is_none() && is_visible(tx.actor(), row)).ok_or(Error::NotFound)
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
    list_created(tx, tenant, params, filter, Timestamp::from_micros(i64::MIN)..Timestamp::MAX).await
}

/// Returns one page of a list, of the records that were created in a range of times. A list by change has the whole range.
///
/// # Errors
/// [`Error::InvalidCursor`] if the cursor was not returned for this list with these filters.
pub async fn list_created<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    params: &ListParams,
    filter: &R::Filter,
    created: Range<Timestamp>,
) -> Result<Page<R>, Error> {
    let key = tx.cursor_key().clone();
    let scope = CursorScope::new(tenant, R::COLLECTION, params.updated_since, filter);
    let mut query = params.query(&key, &scope, filter)?;
    if let Order::NewestFirst { before } = &mut query.order
        && created.end < Timestamp::MAX
    {
        *before = Some(before.unwrap_or(Timestamp::MAX).min(created.end));
    }
    let limit = query.limit;
    if R::OWN_ONLY && tx.actor().grant().is_some() {
        // An app sees few of them, and there are not many in all.
        query.limit = MAX_WEBHOOKS;
    }
    let mut rows = R::repository(tx).list(tenant, &query).await?;
    rows.retain(|row| row.created_at() >= created.start && is_visible(tx.actor(), row));
    rows.truncate(limit as usize);
    Ok(params.page(&key, &scope, rows, R::created_at, R::updated_at))
}

/// Returns whether an actor sees a record: an app does not see those of others where it sees only its own.
pub(crate) fn is_visible<R: Resource>(actor: &Actor, record: &R) -> bool {
    !R::OWN_ONLY || actor.grant().is_none_or(|grant| record.grant_id() == Some(grant))
}

/// Creates a record, with its events and their deliveries.
///
/// # Errors
/// The refusals of the rules of the resource.
pub async fn create<R: Create>(tx: &mut dyn Tx, tenant: TenantId, input: R::Input) -> Result<R, Error> {
    let now = advance_clock(tx, tenant).await?;
    let new = NewRecord { tenant_id: tenant, id: tx.env().id(now), now };
    let record = R::build(tx, new, input).await?;
    insert(tx, tenant, now, &record).await?;
    Ok(record)
}

/// Writes a new record, with its events and their deliveries.
pub(crate) async fn insert<R: Create>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    now: Timestamp,
    record: &R,
) -> Result<(), Error> {
    R::repository(tx).insert(tenant, record).await?;
    audit_change(tx, tenant, AuditAction::Create, None, Some(record)).await?;
    events::emit(tx, tenant, now, &record.created_events(), record).await
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
    store_change(tx, tenant, now, &before, after).await
}

/// Writes a record that was changed, with its events and their deliveries.
pub(crate) async fn store_change<R: Update>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    now: Timestamp,
    before: &R,
    mut after: R,
) -> Result<R, Error> {
    after.set_updated_at(now);
    R::repository(tx).update(tenant, &after).await?;
    audit_change(tx, tenant, AuditAction::Update, Some(before), Some(&after)).await?;
    events::emit(tx, tenant, now, &after.changed_events(before), &after).await?;
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
    audit_change(tx, tenant, AuditAction::Delete, Some(&before), None).await?;
    events::emit(tx, tenant, now, &record.deleted_events(), &record).await
}

/// Records a change in the audit log, if the resource is audited.
pub(crate) async fn audit_change<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    action: AuditAction,
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
