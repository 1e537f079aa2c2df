//! Events (decisions §7): each is written in the transaction of the change that caused it, together with
//! one delivery per matching subscription, so there is never a change without its event.

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::error::{Error, FieldCode, Issue, StoreError};
use crate::input::json::{self, Json};
use crate::resources::crud::advance_clock;
use crate::store::Tx;
use crate::values::{EventKind, TenantId, Timestamp};
use crate::webhooks::deliveries::Delivery;
use crate::webhooks::subscriptions::MatchedSubscription;

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// Identifies it on every delivery.
    pub id: Uuid,
    /// Whose it is.
    pub tenant_id: TenantId,
    /// What happened.
    pub kind: EventKind,
    /// The record as a GET would have returned it then: a JSON object, never read again.
    pub data: Box<RawValue>,
    /// Its place among the tenant's events, unique.
    pub created_at: Timestamp,
    /// The one subscription it is meant for, as a test of it is; `None` for all that want its kind.
    pub only_for: Option<Uuid>,
}

impl Event {
    /// Whether this subscription may get it, as far as the event is concerned.
    pub fn is_for(&self, subscription: Uuid) -> bool {
        self.only_for.is_none_or(|only| only == subscription)
    }
}

/// Writes one event per kind, all with `data`, and their deliveries. `now` is the time of the change; the
/// second and later events take the next ticks of the tenant's clock.
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
            created_at = advance_clock(tx, tenant).await?;
        }
        write(tx, tenant, created_at, *kind, to_json(data)?).await?;
    }
    Ok(())
}

/// Records an event of the back office (decisions §6), whose records this service does not keep: of a stay or a
/// cohort. `data` is the record that it happened to: a JSON object with an `id`, a number or a text that is not
/// empty. Returns the event and its deliveries.
///
/// # Errors
/// [`Error::NotFound`] without such a tenant; [`Error::Validation`] of `kind` and `data`.
pub async fn record_external(
    tx: &mut dyn Tx,
    tenant: TenantId,
    kind: EventKind,
    data: &impl Serialize,
) -> Result<(Event, Vec<Delivery>), Error> {
    if !kind.is_external() {
        let reason = format!("must be one of stays or cohorts; {kind} is fired by its own operation alone");
        return Err(Issue::new(FieldCode::InvalidEnum, reason).on("kind"));
    }
    let data = to_json(data)?;
    check_external(&json::parse(data.get().as_bytes())?).map_err(|issue| issue.on("data"))?;
    let now = advance_clock(tx, tenant).await?;
    write(tx, tenant, now, kind, data).await
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

/// Writes an event and its deliveries.
async fn write(
    tx: &mut dyn Tx,
    tenant: TenantId,
    created_at: Timestamp,
    kind: EventKind,
    data: Box<RawValue>,
) -> Result<(Event, Vec<Delivery>), Error> {
    let event = Event { id: tx.env().id(created_at), tenant_id: tenant, kind, data, created_at, only_for: None };
    tx.insert_event(&event).await?;
    let mut deliveries = Vec::new();
    for matched in tx.matching_subscriptions(tenant, kind).await? {
        deliveries.push(deliver(tx, &event, matched).await?);
    }
    Ok((event, deliveries))
}

/// Writes an event that is meant for one subscription alone, and its delivery.
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
    deliver(tx, &event, to).await
}

async fn deliver(tx: &mut dyn Tx, event: &Event, to: MatchedSubscription) -> Result<Delivery, Error> {
    let id = tx.env().id(event.created_at);
    let mut delivery = Delivery::new(id, event, to.subscription_id, to.paused);
    // The tenant's clock may be ahead of the time, by which the sender goes.
    delivery.next_attempt_at = delivery.next_attempt_at.min(Some(tx.env().now()));
    tx.insert_delivery(&delivery).await?;
    Ok(delivery)
}

fn to_json(data: &impl Serialize) -> Result<Box<RawValue>, StoreError> {
    serde_json::value::to_raw_value(data).map_err(|error| StoreError::Internal(error.to_string()))
}
