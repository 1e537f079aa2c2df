//! Runs the program as its users do, on databases of its own, and keeps transcripts of the sessions.
//!
//! A changed transcript is accepted with `cargo insta review`, or with `INSTA_UPDATE=always cargo test`.

#![expect(clippy::unwrap_used, reason = "a test may fail by a panic, in its helpers as well")]

mod at_once;
mod audit;
mod completions;
mod db;
mod delivery;
mod event;
mod export;
mod failures;
mod full;
mod harness;
mod import;
mod import_running;
mod invoice;
mod key;
mod listen;
mod man;
mod outputs;
mod program;
mod quote;
mod reference;
mod tenant;
mod terminal;
mod webhook;
