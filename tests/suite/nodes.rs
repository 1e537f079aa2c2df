//! Short runs of the scenarios of the program `nodes` (`tests/nodes`): several servers on one PostgreSQL database.

use tokio::process::Command;

const FOUR: &[&str] = &["--nodes", "4"];
const POOLER: &[&str] = &["--pooler"];

/// Runs a scenario on a new database.
async fn passes(options: &[&str], scenario: &[&str]) {
    let Some(server) = svc_test_support::postgres::server() else { return };
    passes_on(&server.database(), options, scenario).await;
}

/// Runs a scenario on a server of its own, which it may stop.
async fn passes_on_own_server(options: &[&str], scenario: &[&str]) {
    if svc_test_support::postgres::is_installed() {
        passes_on("postgres", options, scenario).await;
    }
}

async fn passes_on(database_url: &str, options: &[&str], scenario: &[&str]) {
    if options.contains(&"--pooler") && svc_test_support::postgres::pgbouncer().is_none() {
        return;
    }
    let mut nodes = Command::new(env!("CARGO_BIN_EXE_nodes"));
    nodes.args(["--database-url", database_url, "--server", env!("CARGO_BIN_EXE_svc-server-tested")]);
    nodes.args(["--svc", env!("CARGO_BIN_EXE_svc-tested")]).args(options).args(scenario);
    let output = nodes.kill_on_drop(true).output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{options:?} {scenario:?}: {printed}");
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_client_that_follows_changes_misses_none() {
    passes(&[], &["order", "--changes", "500"]).await;
    passes(FOUR, &["order", "--changes", "500"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn each_delivery_is_sent_once() {
    passes(&[], &["once", "--deliveries", "2000"]).await;
    passes(FOUR, &["once", "--deliveries", "2000"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_stopped_or_killed_node_loses_no_delivery() {
    passes(&[], &["stopped", "--events", "20"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn events_written_by_another_process_are_sent_at_once() {
    passes(&[], &["wake", "--events", "20", "--commands", "10", "--most", "500"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_revoked_key_is_refused_by_every_node() {
    passes(&[], &["revoked", "--keys", "50"]).await;
    passes(FOUR, &["revoked", "--keys", "50"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn nodes_share_limits_signatures_keys_and_failure_counts() {
    passes(&[], &["shared", "--rounds", "1"]).await;
    passes(FOUR, &["shared", "--rounds", "1"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_connection_lost_at_the_commit_loses_and_repeats_no_write() {
    passes(&[], &["cut", "--cuts", "20"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_database_restart_loses_no_acknowledged_write() {
    passes_on_own_server(&[], &["restart", "--rounds", "2", "--down", "1s"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_standby_that_takes_over_has_every_acknowledged_write() {
    passes_on_own_server(FOUR, &["promoted", "--rounds", "2"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_promises_hold_behind_pgbouncer() {
    passes(POOLER, &["order", "--changes", "500"]).await;
    passes(POOLER, &["once", "--deliveries", "2000"]).await;
    passes(POOLER, &["wake", "--events", "20", "--commands", "10", "--most", "500"]).await;
    passes(POOLER, &["cut", "--cuts", "20"]).await;
    passes_on_own_server(POOLER, &["restart", "--rounds", "2", "--down", "1s"]).await;
}
