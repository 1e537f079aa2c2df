//! Events and webhooks: what happened, which subscriptions receive it, and how each event is delivered.
//!
//! A change to a record writes its events, and one delivery per matching subscription, in the transaction of the change
//! (a transactional outbox). A delivery engine then sends each delivery to its endpoint until the endpoint accepts it or
//! the retries are used up.
//!
//! - [`subscriptions`]: the endpoints that receive events, their signing secrets and their automatic pause.
//! - [`events`]: the events, and how they and their deliveries are written.
//! - [`deliveries`]: one event on its way to one subscription, its status, its lease and the log of its attempts.
//! - [`engine`]: decides, without I/O, which attempts are made and when, and what follows from their outcomes.
//! - [`operational`]: events of the platform account, about all accounts.
//! - [`replays`]: sends deliveries again, one by one or all of a time range.
//! - [`samples`]: the `data` of test events, one for each kind.
//! - [`signatures`]: signs a delivery.
//! - [`addresses`]: the host names and addresses that may receive deliveries.
//! - [`statistics`]: success rate, durations and backlog of a subscription.
//! - [`streams`]: sends all events to a broker that a company has already, such as NATS, in place of deliveries.
//! - [`retention`]: deletes finished deliveries and events that are older than the retention period.

pub mod addresses;
pub mod deliveries;
pub mod engine;
pub mod events;
pub mod filters;
pub mod operational;
pub mod options;
pub mod replays;
pub mod retention;
mod retries;
pub mod samples;
pub mod signatures;
pub mod statistics;
pub mod streams;
pub mod subscriptions;
