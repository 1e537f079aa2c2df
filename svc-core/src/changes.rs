//! The audit log for people: which fields a change set, from what to what.
//!
//! Entries of their own have the object before and after the change. Those of records are derived from events, which have the
//! record after it; the record before it is that of the event before, as long as that is kept. [`list`] looks it up, and makes
//! one change of the events that one operation fired: `invoice.paid`, `invoice.updated` and `payment.succeeded`.

use serde::Deserialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::accounts::actor::split_tool;
use crate::accounts::audit::{self, AuditAction, AuditEntry};
use crate::error::Error;
use crate::resources::invoices::Payment;
use crate::store::{EventFilter, EventWithActor, MAX_EVENT_BYTES, Tx};
use crate::values::{Amount, AnyObject, TenantId, Timestamp};
use crate::webhooks::events::{EventId, PAYMENT, RECORDS};

/// The number of entries that one list reads at most to find those that a filter selects.
pub const MAX_SEARCHED: u32 = 2_000;

/// The number of entries that one operation makes at most: `invoice.paid`, `invoice.updated` and `payment.succeeded`.
const MAX_ENTRIES: u32 = 3;

/// The action of a refund on an invoice.
const REFUNDED: &str = "refunded";

/// Selects changes. Every condition that is set must hold.
#[derive(Clone, Debug, Default)]
pub struct ChangeFilter {
    /// Changes by this actor, as an [`AuditEntry`] names it. Those of a client include those by tools that it has called.
    pub actor: Option<String>,
    /// Changes of this kind of object, such as `invoice`.
    pub object_kind: Option<String>,
    /// Changes of this object. The payments of an invoice are among its changes.
    pub object_id: Option<Uuid>,
    /// Changes at or after this time.
    pub since: Option<Timestamp>,
    /// Changes before this time.
    pub until: Option<Timestamp>,
}

impl ChangeFilter {
    /// Returns the filter of the history of an object.
    pub fn of(object: Uuid) -> Self {
        Self { object_id: Some(object), ..Self::default() }
    }

    fn matches(&self, entry: &AuditEntry) -> bool {
        let is_actor = |actor: &String| entry.actor == *actor || split_tool(&entry.actor).0 == actor;
        let is_kind = |kind: &String| entry.object_kind == *kind;
        self.actor.as_ref().is_none_or(is_actor) && self.object_kind.as_ref().is_none_or(is_kind)
    }
}

/// A change, with what is known of the object before it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Change {
    /// The entry. That of a record has the record before the change, if it is known.
    pub entry: AuditEntry,
    /// The actions, the most particular first: `paid` before `updated`.
    pub actions: Vec<String>,
    /// The events that the change fired, with their kinds, oldest first, if it is that of a record or a test of a webhook.
    pub events: Vec<(EventId, String)>,
    /// Whether there was a record before the change that is not known any more: its event is older than events are kept, or
    /// it was imported.
    pub is_before_lost: bool,
    /// The payment that was received.
    pub payment: Option<Payment>,
    /// The amount that was refunded, in the currency of the invoice.
    pub refunded: Option<Amount>,
    /// The sums paid of the invoice before and after the change. It is set where [`trace_paid`] was called.
    pub paid: Option<(Amount, Amount)>,
}

/// A field that a change set.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldChange {
    /// The name of the field.
    pub name: String,
    /// The value before the change.
    pub before: Value,
    /// The value after it.
    pub after: Value,
}

/// A page of changes, newest first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Changes {
    /// The changes.
    pub data: Vec<Change>,
    /// The time before which the next page begins: its `until`. `None` on the last page.
    pub next: Option<Timestamp>,
    /// Whether the page ended after [`MAX_SEARCHED`] entries, so that it may have fewer changes than there are.
    pub is_cut: bool,
}

impl Change {
    fn new(entry: AuditEntry) -> Self {
        let kind = || format!("{}.{}", entry.object_kind, entry.action);
        let event = is_of_event(&entry).then(|| (EventId::new(entry.id.uuid()), kind()));
        let data = entry.after.as_ref().filter(|_| event.is_some());
        let is_payment = entry.object_kind == PAYMENT;
        Self {
            actions: vec![entry.action.clone()],
            events: event.into_iter().collect(),
            is_before_lost: false,
            payment: data.filter(|_| is_payment).and_then(|data| serde_json::from_str(data.as_str()).ok()),
            refunded: data.filter(|_| entry.action == REFUNDED).and_then(|data| refunded_amount(data.as_str())),
            paid: None,
            entry,
        }
    }

    /// Returns the object after the change, or before it where it was deleted.
    pub fn object(&self) -> Map<String, Value> {
        let json = self.entry.after.as_ref().or(self.entry.before.as_ref());
        json.and_then(|json| serde_json::from_str(json.as_str()).ok()).unwrap_or_default()
    }

    /// Returns the fields that the change set, in the order of the record. Empty where the object before or after the change
    /// is not known, or there was none.
    pub fn fields(&self) -> Vec<FieldChange> {
        let read = |json: &AnyObject| serde_json::from_str::<Map<String, Value>>(json.as_str()).ok();
        let (Some(before), Some(after)) = (&self.entry.before, &self.entry.after) else { return Vec::new() };
        let (Some(before), Some(after)) = (read(before), read(after)) else { return Vec::new() };
        let changed = after.into_iter().filter_map(|(name, after)| {
            let before = before.get(&name)?.clone();
            (before != after && name != "updated_at").then_some(FieldChange { name, before, after })
        });
        changed.collect()
    }

    /// Adds the next older change of the log, if one operation made both.
    fn merge(&mut self, older: &mut Self) -> bool {
        let same_record = |newer: &Self, older: &Self| {
            newer.entry.object_id == older.entry.object_id
                && newer.changed_at().is_some_and(|at| older.changed_at() == Some(at))
        };
        // Nothing comes between a payment and the event of its invoice. Once merged, the change is that of the invoice.
        let of_payment = self.entry.object_kind == PAYMENT
            && self.payment.as_ref().is_some_and(|payment| payment.invoice_id.uuid() == older.entry.object_id);
        let fired_together = !self.events.is_empty()
            && !older.events.is_empty()
            && self.entry.actor == older.entry.actor
            && self.actions != ["resent"]
            && older.actions != ["resent"]
            && (of_payment || same_record(self, older));
        if !fired_together {
            return false;
        }
        if of_payment {
            // The invoice tells more than its payment.
            self.entry = older.entry.clone();
            self.actions.clear();
        }
        self.actions.insert(0, older.entry.action.clone());
        self.refunded = self.refunded.or(older.refunded);
        self.events.insert(0, older.events.remove(0));
        true
    }

    /// Returns the time of the change that a record itself names, which all events of one operation share.
    fn changed_at(&self) -> Option<Timestamp> {
        #[derive(Deserialize)]
        struct Changed {
            updated_at: String,
        }
        let data = self.entry.after.as_ref().filter(|_| RECORDS.contains(&self.entry.object_kind.as_str()))?;
        let Changed { updated_at } = serde_json::from_str(data.as_str()).ok()?;
        Timestamp::parse(&updated_at).ok()
    }

    /// Looks up the record before the change.
    async fn find_before(&mut self, tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
        let is_new = self.actions.iter().any(|action| action == "created");
        let Some(at) = self.changed_at().filter(|_| !is_new && self.entry.before.is_none()) else { return Ok(()) };
        if self.actions == ["resent"] {
            self.entry.before.clone_from(&self.entry.after);
            return Ok(());
        }
        // The event before may be that of a payment, which no other follows without one of its invoice.
        let events = tx.list_events(tenant, &EventFilter::of_record(self.entry.object_id, at, 2)).await?;
        let before = events.into_iter().map(|EventWithActor { event, .. }| event);
        let before = before.into_iter().find(|event| !event.kind.as_str().starts_with(PAYMENT));
        self.is_before_lost = before.is_none();
        self.entry.before = before.map(|event| AnyObject(event.data));
        Ok(())
    }
}

/// Returns the refund in the data of an event of it.
fn refunded_amount(data: &str) -> Option<Amount> {
    #[derive(Deserialize)]
    struct Refund {
        refunded_amount: Amount,
    }
    serde_json::from_str(data).ok().map(|Refund { refunded_amount }| refunded_amount)
}

/// Returns whether an entry is derived from an event. The entries that the log has of its own are named by their actions, which no
/// built-in kind of event has as its second word.
fn is_of_event(entry: &AuditEntry) -> bool {
    match AuditAction::from_text(&entry.action) {
        None => true,
        Some(action) => action == AuditAction::Test,
    }
}

/// Returns the newest `limit` changes that a filter selects, one for each operation. It reads at most [`MAX_SEARCHED`] entries, and
/// returns the changes that it found until then.
///
/// # Errors
/// [`Error::Store`].
pub async fn list(tx: &mut dyn Tx, tenant: TenantId, filter: &ChangeFilter, limit: u32) -> Result<Changes, Error> {
    let is_selective = filter.actor.is_some() || filter.object_kind.is_some();
    let batch = if is_selective { limit.max(250) } else { limit + MAX_ENTRIES };
    let (mut found, mut next, mut searched) = (Vec::new(), filter.until, 0);
    let last_read = loop {
        let until = next.unwrap_or(Timestamp::MAX);
        let (mut entries, has_more) = entries(tx, tenant, filter, until, batch + 1).await?;
        let last = entries.last().filter(|_| has_more).map(|last| last.at);
        next = cut(&mut entries, batch as usize).or(last);
        searched += u32::try_from(entries.len()).unwrap_or(batch);
        let last_read = entries.last().map(|last| last.id);
        found.extend(entries.into_iter().filter(|entry| filter.matches(entry)));
        let size = |entry: &AuditEntry| entry.after.as_ref().map_or(0, |after| after.as_str().len());
        let is_full = found.len() >= limit as usize || found.iter().map(size).sum::<usize>() >= MAX_EVENT_BYTES;
        if next.is_none() || is_full || searched >= MAX_SEARCHED {
            break last_read;
        }
    };
    let is_cut = found.len() < limit as usize && next.is_some() && searched >= MAX_SEARCHED;
    // Where the entries end, the operation of the last ones may go on.
    let is_last_partial = next.is_some() && found.last().map(|last| last.id) == last_read;
    let mut data: Vec<(Change, Timestamp)> = Vec::with_capacity(found.len());
    for entry in found {
        let at = entry.at;
        let mut change = Change::new(entry);
        if let Some((newer, begin)) = data.last_mut()
            && newer.merge(&mut change)
        {
            *begin = at;
        } else {
            data.push((change, at));
        }
    }
    let whole = if is_last_partial { data.len().saturating_sub(1).max(1) } else { data.len() };
    let shown = whole.min(limit as usize);
    if shown < data.len() {
        data.truncate(shown);
        next = data.last().map(|(_, begin)| *begin);
    }
    let mut data: Vec<Change> = data.into_iter().map(|(change, _)| change).collect();
    for change in &mut data {
        change.find_before(tx, tenant).await?;
    }
    Ok(Changes { data, next, is_cut })
}

async fn entries(
    tx: &mut dyn Tx,
    tenant: TenantId,
    filter: &ChangeFilter,
    until: Timestamp,
    limit: u32,
) -> Result<(Vec<AuditEntry>, bool), Error> {
    let since = filter.since.unwrap_or(Timestamp::from_micros(0));
    let Some(object) = filter.object_id else {
        return audit::list_range(tx, tenant, since..until, limit).await;
    };
    let entries = tx.audit_entries_of(tenant, object, until, limit).await?;
    let events = tx.list_events(tenant, &EventFilter::of_record(object, until, limit)).await?;
    let (mut entries, has_more) = audit::merge(entries, events, limit);
    entries.retain(|entry| entry.at >= since);
    Ok((entries, has_more))
}

/// Leaves a page of the entries, and returns the time before which the next page begins, if there is one. Entries of the same
/// time stay on one page.
fn cut(entries: &mut Vec<AuditEntry>, limit: usize) -> Option<Timestamp> {
    let next = entries.get(limit)?.at;
    entries.truncate(limit);
    while entries.len() > 1 && entries.last().is_some_and(|last| last.at == next) {
        entries.pop();
    }
    entries.last().map(|last| last.at)
}

/// Sets what was paid before and after each change of an invoice. `changes` are its newest ones, newest first, and `paid` is
/// what is paid now.
pub fn trace_paid(changes: &mut [Change], paid: Amount) {
    let scale = paid.scale();
    let minor = |amount: Amount| amount.with_scale(scale).map_or(0, Amount::minor);
    let mut after = paid.minor();
    for change in changes {
        let by = match (&change.payment, change.refunded) {
            (Some(payment), _) => minor(payment.amount),
            (None, Some(refunded)) => -minor(refunded),
            (None, None) => continue,
        };
        let before = after - by;
        change.paid = Some((Amount::from_minor(before, scale), Amount::from_minor(after, scale)));
        after = before;
    }
}
