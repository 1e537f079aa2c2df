//! The tables of events and webhooks.

pub(crate) mod attempt_counts;
pub(crate) mod attempts;
pub(crate) mod deliveries;
pub(crate) mod events;
pub(crate) mod operational_events;
pub(crate) mod replays;
pub(crate) mod retention;
pub(crate) mod schedule;
pub(crate) mod streams;
pub(crate) mod subscriptions;
