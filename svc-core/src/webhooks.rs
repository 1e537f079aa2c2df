//! Events and webhooks: what happened, who subscribed to it, and how each event is delivered.
//!
//! - [`subscriptions`] are the endpoints that receive events.
//! - [`events`] are written in the transaction of the change that caused them, with one delivery per matching
//!   subscription.
//! - [`deliveries`] and their attempts; [`engine`] decides, without I/O, which attempts are made when.
//! - [`replays`] send deliveries again, one by one or all of a time span.
//! - [`signatures`] sign a delivery; [`addresses`] says which hosts may receive one.
//! - [`statistics`] sums attempts up; [`retention`] deletes what is older than it needs to be.

pub mod addresses;
pub mod deliveries;
pub mod engine;
pub mod events;
pub mod replays;
pub mod retention;
pub mod signatures;
pub mod statistics;
pub mod subscriptions;
