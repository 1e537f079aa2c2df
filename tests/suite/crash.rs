//! The short forms of the crash test (`tests/crash`) and of the load (`tests/load`).

use tokio::process::Command;

/// Both databases at the same time: it takes a while until what was under way at the last kill is tried again, when
/// its lease has ended.
#[tokio::test]
async fn kills_lose_nothing_and_repeat_only_what_was_under_way() {
    let server = svc_postgres_server::server();
    let on_postgres = async {
        if let Some(server) = server {
            kills(&["--database-url", &server.database()]).await;
        }
    };
    tokio::join!(kills(&[]), on_postgres);
}

async fn kills(database: &[&str]) {
    let mut crash = Command::new(env!("CARGO_BIN_EXE_crash"));
    crash.args(["--rounds", "4"]).args(database);
    holds(crash).await;
}

async fn holds(mut program: Command) {
    program.args(["--server", env!("CARGO_BIN_EXE_svc-server-tested")]);
    let output = program.kill_on_drop(true).output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{program:?}: {printed}");
}

async fn faults(more: &[&str]) {
    let mut crash = Command::new(env!("CARGO_BIN_EXE_crash"));
    crash.args(["--rounds", "8", "--longest", "300ms", "--faults"]).args(more);
    holds(crash).await;
}

/// All of them wait, at their ends, for leases of the dead.
#[tokio::test]
async fn a_disk_that_fails_spoils_nothing_that_was_acknowledged() {
    let on_postgres = async {
        if svc_postgres_server::is_installed() {
            faults(&["disk-full", "--database-url", "postgres"]).await;
        }
    };
    tokio::join!(faults(&["fsync"]), faults(&["no-space"]), faults(&["disk-full"]), on_postgres);
}

#[tokio::test]
async fn mixed_traffic_is_answered_and_delivered() {
    let mut load = Command::new(env!("CARGO_BIN_EXE_load"));
    load.args(["--minutes", "0.05", "--rate", "100", "--contacts", "60"]);
    holds(load).await;
}
