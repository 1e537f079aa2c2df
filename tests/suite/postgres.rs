//! Runs the suite again on PostgreSQL, with ordinary tables and with tables that are distributed as on Citus.
//!
//! To run a single test on PostgreSQL: `SVC_TEST_DATABASE=postgres cargo test -p svc-tests NAME`, or `=citus`.

use svc_postgres_server::run_tests_on;

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
const MINIMUM: usize = 110;

#[test]
#[ignore = "a long proof, which .ci/run runs"]
fn the_suite_passes_on_postgres() {
    run_tests_on("postgres", &SELECTED, MINIMUM);
}

#[test]
#[ignore = "a long proof, which .ci/run runs"]
fn the_suite_passes_on_tables_that_are_distributed_as_on_citus() {
    run_tests_on("citus", &SELECTED, MINIMUM);
}
