//! What clients and receivers note down.

use serde_json::Value;
use uuid::Uuid;

/// What clients create.
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

    /// The first half of the kinds of its events.
    pub(crate) fn noun(self) -> &'static str {
        self.name().trim_end_matches('s')
    }

    /// The field by which a record is told from all others of its tenant.
    pub(crate) fn unique_field(self) -> &'static str {
        match self {
            Self::Contacts => "email",
            Self::Bookings => "notes",
            Self::Quotes => "total",
        }
    }
}

/// What a client wanted.
#[derive(Clone, Debug)]
pub(crate) enum Operation {
    /// A record with this value in the field that marks it.
    Create { collection: Collection, unique_value: Value, with_idempotency_key: bool },
    /// Another city for a contact.
    ChangeCity { contact: String, city: String },
    /// A quote that is accepted.
    AcceptQuote { quote: String },
}

/// A request and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Position of the tenant.
    pub(crate) tenant: usize,
    pub(crate) operation: Operation,
    /// How often it was sent.
    pub(crate) sent: u32,
    /// How often it was refused with the word that nothing was done.
    pub(crate) refused: u32,
    /// Whether it was acknowledged when nothing could be written.
    pub(crate) acknowledged_during_outage: bool,
    /// Whether the answer was that to an earlier sending, which a kill had swallowed.
    pub(crate) replayed: bool,
    /// The record as it was answered; `None` when it was refused, or the outcome stayed unknown.
    pub(crate) response: Option<Value>,
}

/// A delivery as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The subscription whose URL was called.
    pub(crate) subscription: Uuid,
    /// `X-SVC-Delivery`, which is also the `webhook-id`.
    pub(crate) delivery: Uuid,
    /// `X-SVC-Attempt`.
    pub(crate) attempt: u32,
    pub(crate) kind: String,
    pub(crate) data: Value,
    /// Whether it was answered with 2xx.
    pub(crate) accepted: bool,
}

/// An attempt that was under way when the server was killed: the delivery, and the token of its lease.
pub(crate) type InterruptedAttempt = (Uuid, Uuid);
