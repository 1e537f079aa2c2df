//! Rows of events and webhooks.

pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod retention;
pub(crate) mod subscriptions;
