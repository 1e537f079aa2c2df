//! Tests of webhook deliveries over real sockets: what is sent, and what hostile receivers cannot do.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

mod attempts;
mod document;
mod engine;
mod libraries;
mod log;
mod mocks;
mod options;
mod pacing;
mod proxy;
mod receivers;
mod tls;
