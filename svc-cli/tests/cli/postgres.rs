//! Runs the transcripts of a server once more, on a server with PostgreSQL. The test starts its own executable, so that nothing
//! is built or linked twice.
//!
//! To run a single test so: `SVC_TEST_DATABASE=postgres cargo test -p svc-cli --test cli on_server::NAME`.

use std::process::Command;

use crate::server::DATABASE;

/// The modules over records, keys, webhooks and deliveries. The others are about files.
const MODULES: [&str; 10] =
    ["account", "delivery", "event", "ids", "invoice", "key", "member", "quote", "records", "webhook"];
/// The least number of tests that must run, so that a wrong filter does not pass unnoticed.
const MINIMUM: usize = 52;

#[test]
#[ignore = "a long proof, which .ci/run runs"]
fn transcripts_are_the_same_on_a_server_with_postgresql() {
    if !svc_postgres_server::is_installed() {
        return;
    }
    let mut tests = Command::new(std::env::current_exe().unwrap());
    tests
        .args(MODULES.map(|module| format!("on_server::{module}::")))
        .env(DATABASE, "postgres")
        .env("INSTA_UPDATE", "no");
    let output = tests.output().unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{printed}");
    let passed = printed.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ok")).count();
    assert!(passed >= MINIMUM, "only {passed} tests ran:\n{printed}");
}
