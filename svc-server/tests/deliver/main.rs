//! The webhook sender against real sockets: what it sends, and what hostile receivers cannot do to it.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

mod attempts;
mod engine;
mod libraries;
mod mocks;
mod receivers;
