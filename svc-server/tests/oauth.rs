//! The endpoints of apps (OAuth 2.0): every parameter that is missing, repeated, wrong or oversized, and what attackers try.

#![cfg(feature = "dashboard")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail by a panic, in its helpers as well")]

#[path = "oauth/attacks.rs"]
mod attacks;
#[path = "oauth/authorize.rs"]
mod authorize;
#[path = "oauth/document.rs"]
mod document;
#[path = "oauth/harness.rs"]
mod harness;
#[path = "oauth/token.rs"]
mod token;
