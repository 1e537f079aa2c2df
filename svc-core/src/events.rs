//! Events (decisions §7): each is written in the transaction of the change that caused it, together with
//! one delivery per matching subscription, so there is never a change without its event.

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::deliveries::Delivery;
use crate::error::Error;
use crate::resource::tick;
use crate::store::{StoreError, Tx};
use crate::types::{TenantId, Timestamp, text_enum};
use crate::webhooks::Match;

text_enum! {
    /// The kinds of events (contract, "Event kinds").
    pub enum EventKind {
        InvoiceCreated = "invoice.created",
        InvoiceSent = "invoice.sent",
        InvoicePaid = "invoice.paid",
        InvoiceVoided = "invoice.voided",
        InvoiceRefunded = "invoice.refunded",
        InvoiceUpdated = "invoice.updated",
        InvoiceResent = "invoice.resent",
        QuoteCreated = "quote.created",
        QuoteAccepted = "quote.accepted",
        QuoteDeclined = "quote.declined",
        QuoteUpdated = "quote.updated",
        BookingCreated = "booking.created",
        BookingCancelled = "booking.cancelled",
        BookingUpdated = "booking.updated",
        JobCreated = "job.created",
        JobScheduled = "job.scheduled",
        JobCompleted = "job.completed",
        JobUpdated = "job.updated",
        ContactCreated = "contact.created",
        ContactUpdated = "contact.updated",
        ContactDeleted = "contact.deleted",
        PaymentSucceeded = "payment.succeeded",
        StayCreated = "stay.created",
        StayConfirmed = "stay.confirmed",
        StayCheckedIn = "stay.checked_in",
        StayCheckedOut = "stay.checked_out",
        StayCancelled = "stay.cancelled",
        StayNoShow = "stay.no_show",
        CohortSessionsGenerated = "cohort.sessions_generated",
    }
}

/// Something that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// Identifies it on every delivery.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: TenantId,
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
            created_at = tick(tx, tenant).await?;
        }
        let id = tx.env().id(created_at);
        let event = Event { id, tenant, kind: *kind, data: json(data)?, created_at, only_for: None };
        tx.insert_event(&event).await?;
        for matched in tx.matches(tenant, *kind).await? {
            deliver(tx, &event, matched).await?;
        }
    }
    Ok(())
}

/// Writes an event that is meant for one subscription alone, and its delivery.
pub(crate) async fn emit_to(
    tx: &mut dyn Tx,
    tenant: TenantId,
    now: Timestamp,
    kind: EventKind,
    data: &impl Serialize,
    to: Match,
) -> Result<Delivery, Error> {
    let only_for = Some(to.subscription);
    let event = Event { id: tx.env().id(now), tenant, kind, data: json(data)?, created_at: now, only_for };
    tx.insert_event(&event).await?;
    deliver(tx, &event, to).await
}

async fn deliver(tx: &mut dyn Tx, event: &Event, to: Match) -> Result<Delivery, Error> {
    let id = tx.env().id(event.created_at);
    let mut delivery = Delivery::new(id, event, to.subscription, to.paused);
    // The tenant's clock may be ahead of the time, by which the sender goes.
    delivery.next_attempt_at = delivery.next_attempt_at.min(Some(tx.env().now()));
    tx.insert_delivery(&delivery).await?;
    Ok(delivery)
}

fn json(data: &impl Serialize) -> Result<Box<RawValue>, StoreError> {
    serde_json::value::to_raw_value(data).map_err(|why| StoreError::Fault(why.to_string()))
}
