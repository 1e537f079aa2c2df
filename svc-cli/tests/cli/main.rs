//! Runs the program as its users do, on databases of its own, and keeps transcripts of the sessions.
//!
//! A changed transcript is accepted with `cargo insta review`, or with `INSTA_UPDATE=always cargo test`.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

mod audit;
mod db;
mod delivery;
mod event;
mod export;
mod harness;
mod import;
mod import_running;
mod invoice;
mod key;
mod listen;
mod program;
mod quote;
mod reference;
mod tenant;
mod webhook;
