//! Streams to real engines: the program as operators start it, an engine from Debian's packages that is killed and started
//! again while accounts are written to, and a check that every event arrived and in which order.
//!
//! Each test starts an engine of its own, on a free port and with its data in a temporary folder. That of Kafka is a mock.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test may fail by a panic, in its helpers as well")]

#[cfg(feature = "amqp")]
mod amqp;
#[cfg(feature = "kafka")]
mod kafka;
#[cfg(feature = "nats")]
mod nats;
mod support;
