//! Runs the transcripts of a server once more, on a server with PostgreSQL.
//!
//! To run a single test so: `SVC_TEST_DATABASE=postgres cargo test -p svc-cli --test cli on_server::NAME`.

/// The modules over records, keys, webhooks and deliveries. The others are about files.
const SELECTED: [&str; 14] = [
    "on_server::account::",
    "on_server::app::",
    "on_server::delivery::",
    "on_server::event::",
    "on_server::find::",
    "on_server::ids::",
    "on_server::invoice::",
    "on_server::key::",
    "on_server::member::",
    "on_server::open::",
    "on_server::quote::",
    "on_server::records::",
    "on_server::request::",
    "on_server::webhook::",
];

#[test]
#[ignore = "a run once more, which .ci/release runs"]
fn transcripts_are_the_same_on_a_server_with_postgresql_once_more() {
    svc_test_support::postgres::run_tests_on("postgres", &SELECTED, 70);
}
