//! Runs the suite again on PostgreSQL, with ordinary tables and with tables that are partitioned by tenant. The tests
//! start their own executable, so that nothing is built or linked twice.
//!
//! To run a single test on PostgreSQL: `SVC_TEST_DATABASE=postgres cargo test -p svc-tests NAME`, or `=partitions`.

use tokio::process::Command;
use tokio::sync::Mutex;

use crate::database::CHOICE;

/// Modules that choose their databases themselves, or concern SQLite alone.
const SKIPPED: [&str; 8] =
    ["cli::", "crash::", "document::", "files::", "live::", "nodes::", "postgres::", "program::"];
/// The least number of tests that must run, so that a wrong filter does not pass unnoticed.
const MINIMUM: usize = 110;

/// One suite at a time, as each keeps all cores busy.
static TURN: Mutex<()> = Mutex::const_new(());

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_suite_passes_on_postgres() {
    run_on("postgres").await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_suite_passes_on_tables_that_are_partitioned_by_tenant() {
    run_on("partitions").await;
}

async fn run_on(choice: &str) {
    if !svc_postgres_server::is_installed() {
        return;
    }
    let _turn = TURN.lock().await;
    let mut suite = Command::new(std::env::current_exe().unwrap());
    suite.env(CHOICE, choice).env("INSTA_UPDATE", "no").kill_on_drop(true);
    for module in SKIPPED {
        suite.args(["--skip", module]);
    }
    let output = suite.output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "on {choice}:\n{printed}");
    let passed = printed.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ok")).count();
    assert!(passed >= MINIMUM, "only {passed} tests ran on {choice}:\n{printed}");
}
