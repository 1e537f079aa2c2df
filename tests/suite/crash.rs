//! Short runs of the programs `crash` (`tests/crash`) and `load` (`tests/load`), which check what they observe
//! themselves.

use tokio::process::Command;

/// Both databases run at the same time, because at the end each run waits until the leases of the killed server have
/// expired and its deliveries are tried again.
#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn kills_lose_no_write_and_repeat_only_attempts_in_progress() {
    let server = svc_test_support::postgres::server();
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
    assert_succeeds(crash).await;
}

async fn assert_succeeds(mut program: Command) {
    program.args(["--server", env!("CARGO_BIN_EXE_svc-server-tested")]);
    let output = program.kill_on_drop(true).output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{program:?}: {printed}");
}

async fn faults(more: &[&str]) {
    let mut crash = Command::new(env!("CARGO_BIN_EXE_crash"));
    crash.args(["--rounds", "8", "--longest", "300ms", "--faults"]).args(more);
    assert_succeeds(crash).await;
}

/// These run at the same time because each waits at its end for the leases of killed servers.
#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_failing_disk_loses_no_acknowledged_write() {
    let on_postgres = async {
        if svc_test_support::postgres::is_installed() {
            faults(&["disk-full", "--database-url", "postgres"]).await;
        }
    };
    tokio::join!(faults(&["fsync"]), faults(&["no-space"]), faults(&["disk-full"]), on_postgres);
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn mixed_traffic_succeeds_and_every_event_is_delivered() {
    let mut load = Command::new(env!("CARGO_BIN_EXE_load"));
    load.args(["--minutes", "0.05", "--rate", "100", "--contacts", "60"]);
    assert_succeeds(load).await;
}
