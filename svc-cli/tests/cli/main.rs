//! End-to-end tests: they run the program on temporary databases and compare its output with snapshots.
//!
//! Accept a changed snapshot with `cargo insta review`, or with `INSTA_UPDATE=always cargo test`.

#![expect(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod at_once;
mod audit;
mod clock;
mod completions;
mod dashboard;
mod db;
mod delivery;
mod event;
mod export;
mod failures;
mod full;
mod harness;
mod ids;
mod import;
mod import_running;
mod invoice;
mod key;
mod listen;
mod man;
mod outputs;
mod platform_key;
mod program;
mod quote;
mod records;
mod reference;
mod tenant;
mod terminal;
mod webhook;
