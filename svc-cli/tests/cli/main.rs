//! End-to-end tests: they run the program on temporary databases and compare its output with snapshots.
//!
//! Accept a changed snapshot with `cargo insta review`, or with `INSTA_UPDATE=always cargo test`.

#![expect(clippy::unwrap_used, reason = "tests and their helpers may panic")]

mod account;
mod api;
mod app;
mod at_once;
mod audit;
mod beside;
mod clock;
mod completions;
mod dashboard;
mod db;
mod delivery;
mod event;
mod export;
mod failures;
mod find;
mod full;
mod harness;
mod ids;
mod import;
mod import_faults;
mod import_foreign;
mod import_running;
mod invoice;
mod key;
mod listen;
mod man;
mod mcp;
mod member;
mod open;
mod outputs;
mod platform_key;
mod postgres;
mod program;
mod quote;
mod records;
mod reference;
mod remote;
mod request;
mod server;
mod share;
mod terminal;
mod times;
mod webhook;

/// The transcripts again, on a server elsewhere.
#[path = "."]
mod on_server {
    #![expect(clippy::duplicate_mod, reason = "the same tests run beside the database and on a server")]

    mod harness {
        pub(crate) use crate::harness::*;

        pub(crate) type Session = SessionOn<crate::server::OnServer>;
    }

    mod account;
    mod app;
    mod dashboard;
    mod delivery;
    mod event;
    mod export;
    mod find;
    mod ids;
    mod import;
    mod import_running;
    mod invoice;
    mod key;
    mod member;
    mod open;
    mod quote;
    mod records;
    mod request;
    mod times;
    mod webhook;
}
