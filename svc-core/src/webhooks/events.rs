//! Events: what happened to the records of a tenant (`docs/contract.md`, "Events").
//!
//! Each event is written in the transaction of the change that caused it, together with one delivery per matching
//! subscription. So there is never a change without its events, nor an event without its change.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::accounts::audit::{AuditAction, AuditEntry};
use crate::accounts::operational::OperationalKind;
use crate::crypto;
use crate::env::Env;
use crate::error::{Error, FieldCode, Issue, StoreError, Violations};
use crate::input::json::{self, Json};
use crate::store::{self, EventFilter, Tx};
use crate::values::{AnyObject, EventKind, Id, KindName, TenantId, Timestamp};
use crate::webhooks::deliveries::{Delivery, DeliveryId, DeliveryStatus, MatchedSubscription};
use crate::webhooks::filters::Filter;
use crate::webhooks::samples;
use crate::webhooks::subscriptions::SubscriptionId;

/// The first words of the kinds of events about records of the service.
pub(crate) const RECORDS: &[&str] = &["contact", "invoice", "quote", "booking", "job", PAYMENT];
/// The first word of the kinds of events about payments.
pub const PAYMENT: &str = "payment";

/// The size of the largest data of an event, in bytes.
pub const MAX_DATA: usize = 1024 * 1024;

/// The highest number of events that one [`search`] reads.
pub const SEARCHED: u32 = 2000;
/// How many of them one statement reads.
const SEARCHED_AT_ONCE: u32 = 200;
/// How many statements one search runs. Large events need more than the others.
const SEARCHES: u32 = 20;

/// The id of an event.
pub type EventId = Id<Event>;

/// Something that happened to a record of a tenant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Event {
    /// The identifier of the event.
    pub id: EventId,
    /// The tenant that the record belongs to.
    pub tenant_id: TenantId,
    /// The kind of the event.
    pub kind: EventKind,
    /// The record as a GET would have returned it at that time: a JSON object, which is passed on as it is.
    pub data: Box<RawValue>,
    /// When it happened. Unique within the tenant, and so the position of the event in the order of its events.
    pub created_at: Timestamp,
    /// The one subscription that the event is meant for, if it is a test of that subscription. `None` for every other
    /// event, which all matching subscriptions receive.
    pub only_for: Option<SubscriptionId>,
}

impl Event {
    /// Returns whether the event is a test: only tests are meant for one subscription.
    pub fn is_test(&self) -> bool {
        self.only_for.is_some()
    }

    /// Returns whether the event is meant for this subscription: for every one, unless it is a test of another, or tells an app
    /// of its disconnection and names the webhook of another. Whatever makes deliveries asks it.
    pub fn is_for(&self, subscription: SubscriptionId) -> bool {
        #[derive(Deserialize)]
        struct Disconnection {
            webhook_id: SubscriptionId,
        }
        if OperationalKind::of(self.kind) == Some(OperationalKind::AppDisconnected) && !self.is_test() {
            return serde_json::from_str(self.data.get())
                .is_ok_and(|Disconnection { webhook_id }| webhook_id == subscription);
        }
        self.only_for.is_none_or(|only| only == subscription)
    }

    /// Returns the record in whose history the event belongs: the one that it tells of, or the invoice of a payment. `None`
    /// for a test, and for records that the service does not store.
    pub fn record_id(&self) -> Option<Uuid> {
        #[derive(Deserialize)]
        struct RecordIds {
            id: Uuid,
            invoice_id: Option<Uuid>,
        }
        let (kind, _) = self.kind.as_str().split_once('.')?;
        if self.is_test() || !self.kind.is_built_in() || !RECORDS.contains(&kind) {
            return None;
        }
        let RecordIds { id, invoice_id } = serde_json::from_str(self.data.get()).ok()?;
        if kind == PAYMENT { invoice_id } else { Some(id) }
    }

    /// Creates the delivery of this event to a subscription: due at the time of the event, or held if the subscription is
    /// paused. `id` is one that [`Env::id`](crate::env::Env::id) made for the time of the event.
    pub fn delivery_to(&self, id: DeliveryId, subscription: SubscriptionId, paused: bool) -> Delivery {
        Delivery {
            id,
            tenant_id: self.tenant_id,
            event_id: self.id,
            kind: self.kind,
            subscription_id: subscription,
            status: if paused { DeliveryStatus::Held } else { DeliveryStatus::Pending },
            attempts: 0,
            failures: 0,
            last_status: None,
            next_attempt_at: (!paused).then_some(self.created_at),
            lease: None,
            failure_reason: None,
            created_at: self.created_at,
            order_key: None,
        }
    }

    /// Returns the key that the events of one record have in common, for subscriptions that order their deliveries: the record in whose
    /// history the event belongs, or for a record that the service does not store, a digest of its type and its `id`.
    pub fn order_key(&self) -> Option<Uuid> {
        #[derive(Deserialize)]
        struct RecordId<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        if self.is_test() {
            return None;
        }
        self.record_id().or_else(|| {
            let RecordId { id } = serde_json::from_str(self.data.get()).ok()?;
            let (of, _) = self.kind.as_str().split_once('.')?;
            let digest = crypto::sha256(format!("{of} {id}").as_bytes());
            Some(Uuid::from_slice(&digest[..16]).unwrap_or_default())
        })
    }

    /// Returns the entry of the audit log for the change that the event tells of. `actor` is that of its transaction.
    pub(crate) fn audit_entry(self, actor: Option<String>) -> AuditEntry {
        #[derive(Deserialize)]
        struct RecordId {
            id: Uuid,
        }
        let (kind, action) = self.kind.as_str().split_once('.').unwrap_or(("event", self.kind.as_str()));
        let (kind, action, object_id) = match self.only_for {
            Some(subscription) => ("webhook", AuditAction::Test.as_str(), subscription.uuid()),
            None => {
                let record = serde_json::from_str(self.data.get()).map_or(self.id.uuid(), |RecordId { id }| id);
                (kind, action, record)
            }
        };
        AuditEntry {
            id: self.id.uuid().into(),
            tenant_id: self.tenant_id,
            at: self.created_at,
            actor: actor.unwrap_or_else(|| "unknown".to_owned()),
            action: action.to_owned(),
            object_kind: kind.to_owned(),
            object_id,
            before: None,
            after: Some(AnyObject(self.data)),
        }
    }
}

/// The events that one transaction wrote. Those of one tenant follow each other in the order of its events, because the
/// transaction locks the tenant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenEvents {
    /// How many there are.
    pub count: u32,
    /// The first of them.
    pub first: Option<EventId>,
    /// The last of them.
    pub last: Option<EventId>,
}

impl WrittenEvents {
    /// Returns the events, which `tx` has written to one tenant.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn of(self, tx: &mut dyn Tx, tenant: TenantId) -> Result<Vec<Event>, Error> {
        let Some(first) = self.first else { return Ok(Vec::new()) };
        let Some(first) = tx.event(tenant, first).await? else { return Ok(Vec::new()) };
        let (mut events, mut after) = (vec![first.clone()], first.created_at);
        let mut left = self.count - 1;
        while left > 0 {
            let next = tx.events_after(tenant, after, left).await?;
            let Some(last) = next.last() else { break };
            after = last.created_at;
            left -= u32::try_from(next.len()).unwrap_or(left);
            events.extend(next);
        }
        Ok(events)
    }

    /// Adds an event that was written after all others.
    pub fn add(&mut self, event: EventId) {
        self.count += 1;
        self.first.get_or_insert(event);
        self.last = Some(event);
    }
}

/// Writes one event per kind, all with the same `data`, and their deliveries.
///
/// `now` is the time of the change and of the first event. Each further event advances the clock of the tenant.
///
/// # Errors
/// [`Error::Store`].
pub async fn emit(
    tx: &mut dyn Tx,
    tenant: TenantId,
    now: Timestamp,
    kinds: &[EventKind],
    data: &impl Serialize,
) -> Result<(), Error> {
    let mut created_at = now;
    for (position, kind) in kinds.iter().enumerate() {
        if position > 0 {
            created_at = tx.advance_clock(tenant).await?.ok_or(Error::NotFound)?;
        }
        write(tx, tenant, created_at, *kind, to_json(data)?).await?;
    }
    Ok(())
}

/// Writes an event of a record that this service does not store: of a stay or a cohort (`docs/contract.md`, "Back
/// office"), or of a kind that is registered in [`Env::event_kinds`]. Returns the event and its deliveries.
///
/// `data` is the record that it happened to: a JSON object that the check of a registered kind accepts, otherwise one with
/// an `id` that is a number or a non-empty string. It has at most [`MAX_DATA`] bytes.
///
/// # Errors
/// [`Error::NotFound`] if there is no such tenant; [`Error::Validation`] for `kind` and `data`.
pub async fn record_external(
    tx: &mut dyn Tx,
    tenant: TenantId,
    kind: EventKind,
    data: &impl Serialize,
) -> Result<(Event, Vec<Delivery>), Error> {
    let data = to_json(data)?;
    let size = data.get().len();
    if size > MAX_DATA {
        let reason =
            format!("must have at most {MAX_DATA} bytes as JSON, and has {size}; send what is large by its URL");
        return Err(Issue::new(FieldCode::TooLong, reason).on("data"));
    }
    let read = || -> Result<Json, Error> {
        let json = json::parse(data.get().as_bytes())?;
        json.check_numbers().map_err(|issue| issue.on("data"))?;
        Ok(json)
    };
    if let EventKind::Custom(name) = kind {
        read()?;
        check_custom(tx.env(), name, &data)?;
    } else if kind.is_external() {
        check_external(&read()?).map_err(|issue| issue.on("data"))?;
    } else {
        let reason = format!(
            "must be one of stays or cohorts, or of the application; {kind} is fired by its own operation alone"
        );
        return Err(Issue::new(FieldCode::InvalidEnum, reason).on("kind"));
    }
    let now = tx.advance_clock(tenant).await?.ok_or(Error::NotFound)?;
    write(tx, tenant, now, kind, data).await
}

/// Writes an event with the sample record of its kind, for receivers that are being developed. Returns the event and its
/// deliveries. It is delivered to every subscription to its kind, as any event is, and changes no record.
///
/// # Errors
/// [`Error::NotFound`] if there is no such tenant; [`Error::Validation`] for a kind that the service does not have. The
/// platform account has the operational kinds as well.
pub async fn record_sample(
    tx: &mut dyn Tx,
    tenant: TenantId,
    kind: EventKind,
) -> Result<(Event, Vec<Delivery>), Error> {
    let data = samples::data_for(tenant, &tx.env().event_kinds, kind).ok_or_else(|| unknown(kind))?;
    let data = to_json(&data)?;
    let now = tx.advance_clock(tenant).await?.ok_or(Error::NotFound)?;
    write(tx, tenant, now, kind, data).await
}

/// Checks the data of an event of a kind that is registered.
fn check_custom(env: &Env, kind: KindName, data: &RawValue) -> Result<(), Error> {
    let data = serde_json::from_str(data.get()).map_err(|error| StoreError::Internal(error.to_string()))?;
    let issues = env.event_kinds.issues(kind, &data).ok_or_else(|| unknown(EventKind::Custom(kind)))?;
    let mut violations = Violations::default();
    issues.into_iter().for_each(|issue| violations.push("data", issue));
    if violations.is_empty() { Ok(()) } else { Err(Error::Validation(violations)) }
}

/// Returns the error for a kind that the service does not have.
fn unknown(kind: EventKind) -> Error {
    let reason = format!(
        "must be an event kind of this service; {kind} is not registered, in Env::event_kinds or the file of --event-kinds"
    );
    Issue::new(FieldCode::InvalidEnum, reason).on("kind")
}

fn check_external(data: &Json) -> Result<(), Issue> {
    let refused = |code, error| Err(Issue::new(code, format!("must be a JSON object with an id: {error}")));
    let Json::Object(members) = data else {
        return refused(FieldCode::InvalidType, "it is JSON, but no object");
    };
    match members.iter().find(|(name, _)| name == "id").map(|(_, id)| id) {
        Some(Json::Number(_)) => Ok(()),
        Some(Json::String(id)) if !id.trim().is_empty() => Ok(()),
        Some(_) => refused(FieldCode::InvalidType, "its id must be a string that is not empty, or a number"),
        None => refused(FieldCode::Required, "it has no id"),
    }
}

/// Returns the first events of a filter that are of a kind, and where the list goes on if there may be more: before that time,
/// or with the oldest first at or after it.
///
/// No index has the kinds, so one call reads [`SEARCHED`] events at most. Of a rare kind it may return fewer than the limit,
/// and even none, although there are more; and it returns fewer when these have
/// [`MAX_EVENT_BYTES`](crate::store::MAX_EVENT_BYTES) of data.
///
/// # Errors
/// [`Error::Store`].
pub async fn search(
    tx: &mut dyn Tx,
    tenant: TenantId,
    filter: &EventFilter,
    kind: Option<EventKind>,
) -> Result<(Vec<Event>, Option<Timestamp>), Error> {
    let limit = filter.limit as usize;
    let step = if kind.is_some() { SEARCHED_AT_ONCE } else { filter.limit + 1 };
    let mut next = EventFilter { limit: step, ..filter.clone() };
    let (mut found, mut read, mut reads): (Vec<Event>, u32, u32) = (Vec::new(), 0, 0);
    loop {
        let rows = tx.list_events(tenant, &next).await?;
        let is_cut = store::is_cut(rows.iter().map(|row| &row.event), step);
        let (count, last) = (rows.len(), rows.last().map(|last| last.event.created_at));
        found.extend(rows.into_iter().map(|row| row.event).filter(|event| kind.is_none_or(|kind| event.kind == kind)));
        let after = |at: Timestamp| if filter.oldest_first { at.next() } else { at };
        if found.len() > limit {
            found.truncate(limit);
            let last = found.last().map(|last| after(last.created_at));
            return Ok((found, last));
        }
        let Some(last) = last.filter(|_| is_cut) else { return Ok((found, None)) };
        (read, reads) = (read + u32::try_from(count).unwrap_or(step), reads + 1);
        // Without a kind, all events that a read returns are found.
        if read >= SEARCHED || reads >= SEARCHES || kind.is_none() || store::is_cut(&found, u32::MAX) {
            return Ok((found, Some(after(last))));
        }
        if filter.oldest_first {
            next.since = last.next();
        } else {
            next.until = last;
        }
    }
}

/// Writes an event and one delivery per matching subscription.
async fn write(
    tx: &mut dyn Tx,
    tenant: TenantId,
    created_at: Timestamp,
    kind: EventKind,
    data: Box<RawValue>,
) -> Result<(Event, Vec<Delivery>), Error> {
    let event = Event { id: tx.env().id(created_at), tenant_id: tenant, kind, data, created_at, only_for: None };
    let deliveries = insert(tx, &event, &event).await?;
    Ok((event, deliveries))
}

/// Writes an event that has a part of a record, for those whose filters the whole record passes.
pub(crate) async fn emit_part(
    tx: &mut dyn Tx,
    tenant: TenantId,
    created_at: Timestamp,
    kind: EventKind,
    whole: &impl Serialize,
    part: &impl Serialize,
) -> Result<(), Error> {
    let (id, data) = (tx.env().id(created_at), to_json(part)?);
    let event = Event { id, tenant_id: tenant, kind, data, created_at, only_for: None };
    let filtered = Event { data: to_json(whole)?, ..event.clone() };
    insert(tx, &event, &filtered).await.map(drop)
}

/// Stores an event, with one delivery for each subscription that it is meant for and whose filter `filtered` passes.
async fn insert(tx: &mut dyn Tx, event: &Event, filtered: &Event) -> Result<Vec<Delivery>, Error> {
    tx.insert_event(event).await?;
    let matching = tx.matching_subscriptions(event.tenant_id, event.kind).await?;
    let deliveries: Vec<Delivery> = {
        let mut passes = passing(filtered);
        let matching = matching.iter().filter(|to| event.is_for(to.subscription_id) && passes(to.filter.as_ref()));
        matching.map(|to| new_delivery(tx.env(), event, to)).collect()
    };
    tx.insert_deliveries(&deliveries).await?;
    Ok(deliveries)
}

/// Writes an event that is meant for one subscription only, and its delivery.
pub(crate) async fn emit_to(
    tx: &mut dyn Tx,
    tenant: TenantId,
    now: Timestamp,
    kind: EventKind,
    data: &impl Serialize,
    to: MatchedSubscription,
) -> Result<Delivery, Error> {
    let only_for = Some(to.subscription_id);
    let event =
        Event { id: tx.env().id(now), tenant_id: tenant, kind, data: to_json(data)?, created_at: now, only_for };
    tx.insert_event(&event).await?;
    let delivery = new_delivery(tx.env(), &event, &to);
    tx.insert_delivery(&delivery).await?;
    Ok(delivery)
}

/// Returns what says whether an event passes the filter of a subscription, if it has one. The event is parsed once, for the first
/// filter.
pub(crate) fn passing(event: &Event) -> impl FnMut(Option<&Filter>) -> bool {
    let mut parsed: Option<serde_json::Value> = None;
    move |filter| match filter {
        None => true,
        Some(filter) => {
            let data = parsed.get_or_insert_with(|| serde_json::from_str(event.data.get()).unwrap_or_default());
            filter.matches(event.kind, data)
        }
    }
}

fn new_delivery(env: &Env, event: &Event, to: &MatchedSubscription) -> Delivery {
    let mut delivery = event.delivery_to(env.id(event.created_at), to.subscription_id, to.paused);
    // The tenant's clock may be ahead of the wall clock, which decides what is due.
    delivery.next_attempt_at = delivery.next_attempt_at.min(Some(env.now()));
    delivery.order_key = to.is_ordered.then(|| event.order_key()).flatten();
    delivery
}

fn to_json(data: &impl Serialize) -> Result<Box<RawValue>, StoreError> {
    serde_json::value::to_raw_value(data).map_err(|error| StoreError::Internal(error.to_string()))
}

/// Returns the body of a message about an event: a JSON object with `event`, `data`, `delivered_at` and `tenant_id`.
///
/// That of a thin one has the `id` of the record alone in `data`, and `event_id`, with which the event is read.
pub(crate) fn body(event: &Event, is_thin: bool, delivered_at: Timestamp) -> Vec<u8> {
    let Event { id, tenant_id, kind, data, .. } = event;
    let body = if is_thin {
        let data = thin(data);
        format!(
            r#"{{"event":"{kind}","event_id":"{id}","data":{data},"delivered_at":"{delivered_at}","tenant_id":"{tenant_id}"}}"#
        )
    } else {
        format!(r#"{{"event":"{kind}","data":{data},"delivered_at":"{delivered_at}","tenant_id":"{tenant_id}"}}"#)
    };
    body.into_bytes()
}

/// Returns a record with its `id` alone.
fn thin(data: &RawValue) -> String {
    #[derive(Deserialize)]
    struct RecordId<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    match serde_json::from_str(data.get()) {
        Ok(RecordId { id: Some(id) }) => format!(r#"{{"id":{id}}}"#),
        _ => "{}".to_owned(),
    }
}
