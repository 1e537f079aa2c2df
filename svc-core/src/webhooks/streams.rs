//! Streams: the events of accounts, sent to a broker that a company has already, such as NATS, RabbitMQ or Kafka.
//!
//! A stream is a cursor over the events that are stored anyway. Nothing is written for it when an event is: its
//! [`position`](StreamPosition) in an account is the time until which the events of that account were sent. Times of events
//! of an account are those of its clock, which is advanced under the lock of the account. So events become visible in the
//! order of their times, and a snapshot that has the clock of an account has all of its events until then.
//!
//! # Which streams there are
//!
//! The stream of the server (`--stream`) sends the events of all accounts, from the time on when a server first ran with it.
//! The stream of a subscription sends those events of its account that are of its kinds and pass its filter, from its
//! creation on.
//!
//! # One sender at a time
//!
//! The events of an account are sent in their order, so one process sends a stream at a time. It has a lease: a token with an
//! end, which it renews. Positions move under the token alone, and a lease is renewed with them. A process that was
//! suspended for longer than its lease publishes at most the one message that was under way; the next holder has
//! published it before any that follow.
//!
//! # At least once, in order
//!
//! A [`step`](Sender::step) reads the next events of some accounts, publishes them without a transaction, and moves the
//! positions over those that the broker has confirmed. The messages of an account are published one after the other, each
//! once the one before it is confirmed, and those of several accounts at the same time. If they were not, a message that
//! the broker refuses would come after its successors. A process that ends between the confirmation and the position leaves
//! messages that are published again, with the same id and the same bytes.
//!
//! # While the broker is away
//!
//! Events wait where they are. [`retention`](crate::webhooks::retention) deletes none that a stream has still to send, until
//! no process has held its lease for the whole retention period: the stream was turned off then, and goes on with what is
//! there once it is turned on again.

mod batch;
mod lag;
mod message;
mod sender;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::values::{TenantId, Timestamp};
use crate::webhooks::subscriptions::SubscriptionId;

pub use self::batch::{ACCOUNTS, EVENTS};
pub use self::lag::{LAG_ACCOUNTS, Lag, lag};
pub use self::message::Message;
pub use self::sender::{Broker, Failure, LEASE, MESSAGE_TIMEOUT, Next, PublishError, Sender, StepReport};

/// The identity of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamKey {
    /// The tenant of the subscription. Nil for the stream of the server.
    pub tenant_id: TenantId,
    /// The subscription. Nil for the stream of the server.
    pub id: SubscriptionId,
}

impl StreamKey {
    /// The stream of the server, with the events of all accounts.
    pub const SERVER: Self = Self { tenant_id: TenantId(Uuid::nil()), id: SubscriptionId::nil() };
}

/// A stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// The tenant of the subscription. Nil for the stream of the server.
    pub tenant_id: TenantId,
    /// The subscription. Nil for the stream of the server.
    pub id: SubscriptionId,
    /// The events after this time are sent, in accounts where the stream has no position yet.
    pub begins_at: Timestamp,
    /// The token of the process that sends it, or that was the last to do so.
    pub lease: Option<Uuid>,
    /// When the lease of that process ends. `None` if none had one.
    pub lease_ends_at: Option<Timestamp>,
}

impl Stream {
    /// Returns a stream that no process has sent yet.
    pub fn new(key: StreamKey, begins_at: Timestamp) -> Self {
        Self { tenant_id: key.tenant_id, id: key.id, begins_at, lease: None, lease_ends_at: None }
    }

    /// Returns whether a process had its lease after a time, or it began after it.
    pub fn is_used_since(&self, time: Timestamp) -> bool {
        self.lease_ends_at.unwrap_or(self.begins_at) > time
    }

    /// Returns what identifies the stream.
    pub fn key(&self) -> StreamKey {
        StreamKey { tenant_id: self.tenant_id, id: self.id }
    }
}

/// How far a stream has come in an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamPosition {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The subscription. Nil for the stream of the server.
    pub stream_id: SubscriptionId,
    /// All events of the tenant until this time were sent, or are not for the stream.
    pub sent_until: Timestamp,
}

/// An account that was written to after the position of a stream in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountBehind {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The position of the stream.
    pub sent_until: Timestamp,
    /// The clock of the tenant: the time of its last write.
    pub clock: Timestamp,
    /// Whether the tenant is the sandbox of an account.
    pub is_sandbox: bool,
}
