//! Runs the suite again on PostgreSQL. This test starts its own executable, so that nothing is built or linked twice.
//!
//! To run a single test on PostgreSQL: `SVC_TEST_DATABASE=postgres cargo test -p svc-tests NAME`.

use tokio::process::Command;

use crate::database::CHOICE;

/// Modules that choose their databases themselves, or concern SQLite alone.
const SKIPPED: [&str; 8] =
    ["cli::", "crash::", "document::", "files::", "live::", "nodes::", "postgres::", "program::"];
/// The least number of tests that must run, so that a wrong filter does not pass unnoticed.
const MINIMUM: usize = 110;

#[tokio::test]
async fn the_suite_passes_on_postgres() {
    if !svc_postgres_server::is_installed() {
        return;
    }
    let mut suite = Command::new(std::env::current_exe().unwrap());
    suite.env(CHOICE, "postgres").env("INSTA_UPDATE", "no").kill_on_drop(true);
    for module in SKIPPED {
        suite.args(["--skip", module]);
    }
    let output = suite.output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "on PostgreSQL:\n{printed}");
    let passed = printed.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ok")).count();
    assert!(passed >= MINIMUM, "only {passed} tests ran:\n{printed}");
}
