//! The suite once more, on PostgreSQL: this program runs itself, so that nothing is built or linked twice.
//!
//! A single test runs there by `SVC_TEST_DATABASE=postgres cargo test -p svc-tests NAME`.

use tokio::process::Command;

use crate::database::CHOICE;

/// What is about the programs, or about SQLite alone.
const ONCE: [&str; 8] = ["cli::", "crash::", "document::", "files::", "live::", "nodes::", "postgres::", "program::"];
/// Fewer tests than this are not the suite.
const ENOUGH: usize = 110;

#[tokio::test]
async fn everything_holds_on_postgres_too() {
    if !svc_postgres_server::is_installed() {
        return;
    }
    let mut suite = Command::new(std::env::current_exe().unwrap());
    suite.env(CHOICE, "postgres").env("INSTA_UPDATE", "no").kill_on_drop(true);
    for module in ONCE {
        suite.args(["--skip", module]);
    }
    let output = suite.output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "on PostgreSQL:\n{printed}");
    let passed = printed.lines().filter(|line| line.starts_with("test ") && line.ends_with(" ok")).count();
    assert!(passed >= ENOUGH, "only {passed} tests ran:\n{printed}");
}
