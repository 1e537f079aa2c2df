//! The audit log: who changed what, and when.
//!
//! Changes of tenants, keys and subscriptions, replays, imports without events, and erasures of contacts have an entry of
//! their own, which is written in the transaction of the change and kept forever. Changes of records have no entry: the log derives one from
//! their event, for as long as events are kept ([`retention`](crate::webhooks::retention)). [`list`] returns both.
//!
//! Both name the [actor](crate::accounts::actor) of the transaction. Entries hold the object before and after the change as
//! JSON, without secrets.

mod action;

use std::cmp::Reverse;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;
use uuid::Uuid;

pub use self::action::{AuditAction, object_word, summary};
pub(crate) use self::action::{SHARED_LINK, TENANT};
use crate::error::{Error, StoreError};
use crate::input::Record;
use crate::store::{self, EventFilter, EventWithActor, Tx};
use crate::values::{AnyObject, Id, TenantId, Timestamp};

/// The id of an entry of the audit log.
pub type AuditEntryId = Id<AuditEntry>;

/// One change in an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct AuditEntry {
    /// The unique identifier of the entry.
    pub id: AuditEntryId,
    /// The `id` of the account.
    pub tenant_id: TenantId,
    /// When the change was made.
    pub at: Timestamp,
    /// The author of the change, such as `key:<id>` or `platform_key:<id>`. A slash and the name of a tool follow if an assistant did,
    /// as in `key:<id>/create_contact`.
    pub actor: String,
    /// The action, such as `create` or `update`.
    pub action: String,
    /// The kind of the changed object, such as `webhook` or `invoice`.
    pub object_kind: String,
    /// The id of the changed object.
    pub object_id: Uuid,
    /// The object before the change, without secrets. Null for a new object and for records.
    pub before: Option<AnyObject>,
    /// The object after the change, without secrets. Null for a deleted object.
    pub after: Option<AnyObject>,
}

/// Returns the newest `limit` changes of a tenant at or after `since`, newest first; fewer where [`list_range`] returns fewer.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn list(tx: &mut dyn Tx, tenant: TenantId, since: Timestamp, limit: u32) -> Result<Vec<AuditEntry>, Error> {
    Ok(list_range(tx, tenant, since..Timestamp::MAX, limit).await?.0)
}

/// Returns the newest `limit` changes of a tenant in a range of times, newest first, and whether there may be more. There are
/// fewer, and may be more, when their events have [`MAX_EVENT_BYTES`](crate::store::MAX_EVENT_BYTES) of data.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn list_range(
    tx: &mut dyn Tx,
    tenant: TenantId,
    range: Range<Timestamp>,
    limit: u32,
) -> Result<(Vec<AuditEntry>, bool), Error> {
    let entries = tx.audit_entries(tenant, range.start, range.end, limit).await?;
    let events = tx.list_events(tenant, &EventFilter::newest(range, limit)).await?;
    Ok(merge(entries, events, limit))
}

/// Returns the newest `limit` of entries and of changes that events tell of, and whether there may be more. Each of the two has
/// the newest of its kind up to the limit; of the events those may be missing that a read leaves out.
pub(crate) fn merge(mut entries: Vec<AuditEntry>, events: Vec<EventWithActor>, limit: u32) -> (Vec<AuditEntry>, bool) {
    let is_cut = store::is_cut(events.iter().map(|found| &found.event), limit);
    if let Some(oldest) = events.last().filter(|_| is_cut) {
        // Before what is older, an event may be missing.
        entries.retain(|entry| entry.at >= oldest.event.created_at);
    }
    entries.extend(events.into_iter().map(|EventWithActor { event, actor }| event.audit_entry(actor)));
    entries.sort_unstable_by_key(|entry| Reverse((entry.at, entry.id)));
    let has_more = is_cut || entries.len() >= limit as usize;
    entries.truncate(limit as usize);
    (entries, has_more)
}

/// The kind and id of a changed object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Object {
    pub(crate) kind: &'static str,
    pub(crate) id: Uuid,
}

/// Adds an entry to the audit log in the transaction of the change.
pub(crate) async fn record<T: Serialize + Sync>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    action: AuditAction,
    object: Object,
    before: Option<&T>,
    after: Option<&T>,
) -> Result<(), Error> {
    let at = tx.env().now();
    let entry = AuditEntry {
        id: tx.env().id(at),
        tenant_id: tenant,
        at,
        actor: tx.actor().to_string(),
        action: action.as_str().to_owned(),
        object_kind: object.kind.to_owned(),
        object_id: object.id,
        before: before.map(json).transpose()?,
        after: after.map(json).transpose()?,
    };
    Ok(tx.insert_audit_entry(&entry).await?)
}

fn json(value: &impl Serialize) -> Result<AnyObject, StoreError> {
    to_raw_value(value).map(AnyObject).map_err(|error| StoreError::Internal(error.to_string()))
}
