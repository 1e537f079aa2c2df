//! Deliveries: one event on its way to one subscription.

use uuid::Uuid;

use crate::types::{TenantId, Timestamp, text_enum};

text_enum! {
    /// How far a delivery is (decisions §7).
    pub enum DeliveryState {
        /// An attempt is due at `next_attempt_at`.
        Pending = "pending",
        /// An attempt was answered with 2xx.
        Succeeded = "succeeded",
        /// All attempts failed.
        Failed = "failed",
        /// Its subscription is paused; it goes out on replay.
        Held = "held",
    }
}

/// One event on its way to one subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The same on every attempt.
    pub id: Uuid,
    /// Whose it is.
    pub tenant: TenantId,
    /// What is delivered.
    pub event: Uuid,
    /// To whom.
    pub subscription: Uuid,
    /// How far it is.
    pub state: DeliveryState,
    /// When the next attempt is due; `None` unless pending.
    pub next_attempt_at: Option<Timestamp>,
    /// When the event happened.
    pub created_at: Timestamp,
}
