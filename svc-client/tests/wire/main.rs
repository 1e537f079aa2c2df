//! The client against servers whose responses the test sets: every retry, every error, every header.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

mod collections;
mod errors;
mod fixture;
mod lists;
mod logs;
mod platform;
mod retries;
mod settings;
mod signing;
mod tokens;
