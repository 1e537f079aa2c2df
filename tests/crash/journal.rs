//! The journals of the clients and the receiver.

use serde_json::Value;
use svc_core::webhooks::deliveries::DeliveryId;
use svc_core::webhooks::subscriptions::SubscriptionId;
use uuid::Uuid;

/// The collections in which clients create records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Collection {
    Contacts,
    Bookings,
    Quotes,
}

impl Collection {
    pub(crate) const ALL: [Self; 3] = [Self::Contacts, Self::Bookings, Self::Quotes];

    /// The path segment.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Contacts => "contacts",
            Self::Bookings => "bookings",
            Self::Quotes => "quotes",
        }
    }

    /// The first part of the kinds of the collection's events.
    pub(crate) fn noun(self) -> &'static str {
        self.name().trim_end_matches('s')
    }

    /// The field whose value is unique to each record of a tenant.
    pub(crate) fn unique_field(self) -> &'static str {
        match self {
            Self::Contacts => "email",
            Self::Bookings => "notes",
            Self::Quotes => "total",
        }
    }
}

/// What a client asks the server to do.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// Creates a record whose unique field has this value.
    Create { collection: Collection, unique_value: Value, with_idempotency_key: bool },
    /// Changes the city of a contact.
    ChangeCity { contact: String, city: String },
    /// Accepts a quote.
    AcceptQuote { quote: String },
}

/// An operation and its outcome.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// The position of the tenant.
    pub(crate) tenant: usize,
    pub(crate) operation: Operation,
    /// The number of requests sent.
    pub(crate) sent: u32,
    /// The number of responses that said that nothing was done.
    pub(crate) refused: u32,
    /// Whether it was acknowledged while nothing could be written.
    pub(crate) acknowledged_during_outage: bool,
    /// Whether the response was the stored one of an earlier request.
    pub(crate) replayed: bool,
    /// The record in the response. `None` if the operation was refused or its outcome is unknown.
    pub(crate) response: Option<Value>,
}

/// A delivery attempt that arrived at an endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The subscription whose URL was called.
    pub(crate) subscription: SubscriptionId,
    /// `X-SVC-Delivery`, which equals `webhook-id`.
    pub(crate) delivery: DeliveryId,
    /// `X-SVC-Attempt`.
    pub(crate) attempt: u32,
    pub(crate) kind: String,
    pub(crate) data: Value,
    /// Whether the endpoint responded with 2xx.
    pub(crate) accepted: bool,
}

/// An attempt that was in progress when the server was killed: the delivery, and the token of its lease.
pub(crate) type InterruptedAttempt = (DeliveryId, Uuid);
