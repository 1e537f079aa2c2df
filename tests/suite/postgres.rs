//! Runs the suite again on PostgreSQL, with ordinary tables and with tables that are distributed as on Citus.
//!
//! To run a single test on PostgreSQL: `SVC_TEST_DATABASE=postgres cargo test -p svc-tests NAME`, or `=citus`.

use svc_test_support::postgres::run_tests_on;

/// Leaves out the modules that choose their databases themselves, or concern SQLite alone.
const SELECTED: [&str; 9] = [
    "--skip=cli::",
    "--skip=crash::",
    "--skip=document::",
    "--skip=erasure::",
    "--skip=files::",
    "--skip=live::",
    "--skip=nodes::",
    "--skip=postgres::",
    "--skip=program::",
];

/// Leaves out the modules that concern HTTP, clients and documentation: their requests read and write as others do.
const SELECTED_ON_CITUS: [&str; 11] = [
    "--skip=client::",
    "--skip=codes::",
    "--skip=http2::",
    "--skip=mcp::",
    "--skip=pages::",
    "--skip=python::",
    "--skip=readme::",
    "--skip=strict::",
    "--skip=surface::",
    "--skip=tls::",
    "--skip=wire::",
];

/// The modules that depend most on the database: orders, positions, versions, repeated requests and the borders of accounts.
const DATABASE_MODULES: [&str; 9] = [
    "conditions::",
    "extensions::",
    "idempotency::",
    "isolation::",
    "lists::",
    "order::",
    "readonly::",
    "sync::",
    "walks::",
];

/// How many tests the suite has at least without those that are left out: a run without tests would pass.
const MINIMUM: usize = 110;

#[test]
#[ignore = "a long proof, which .ci/run runs"]
fn orders_versions_and_borders_hold_on_tables_that_are_distributed_as_on_citus() {
    run_tests_on("citus", &DATABASE_MODULES, 65);
}

#[test]
#[ignore = "a run once more, which .ci/release runs"]
fn the_suite_passes_on_postgres_once_more() {
    run_tests_on("postgres", &SELECTED, MINIMUM);
}

#[test]
#[ignore = "a run once more, which .ci/release runs"]
fn the_suite_passes_on_tables_that_are_distributed_as_on_citus_once_more() {
    run_tests_on("citus", &[&SELECTED[..], &SELECTED_ON_CITUS].concat(), MINIMUM);
}
