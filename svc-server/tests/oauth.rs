//! The endpoints of apps (OAuth 2.0): every parameter that is missing, repeated, wrong or oversized, and what attackers try.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail by a panic, in its helpers as well")]

mod attacks;
mod authorize;
mod document;
mod harness;
mod token;
