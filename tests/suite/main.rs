//! Tests of the API over real databases, as clients use it, and of the server program, as operators use it.
//!
//! Every response in these tests is checked against the OpenAPI document ([`conform`]). To accept changed snapshots,
//! run `cargo insta review`, or `INSTA_UPDATE=always cargo test -p svc-tests`.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail by a panic, in its helpers as well")]

mod apps;
mod auth;
mod cli;
mod client;
mod codes;
mod conditions;
mod conform;
mod crash;
mod database;
mod disk;
mod document;
mod erasure;
mod extensions;
mod faults;
mod files;
mod fixtures;
mod harness;
mod hostile;
mod http2;
mod idempotency;
mod isolation;
mod limits;
mod lists;
mod live;
mod mcp;
mod nodes;
mod oauth;
mod order;
mod pages;
mod platform;
mod postgres;
mod program;
mod python;
mod readme;
mod readonly;
mod sandbox;
mod seed;
mod signing;
mod strict;
mod subscriptions;
mod surface;
mod sync;
mod terminal;
mod tls;
mod unfinished;
mod walks;
mod webhook_options;
mod wire;
