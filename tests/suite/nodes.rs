//! Short runs of the scenarios of the program `nodes` (`tests/nodes`): several servers passes_on one PostgreSQL database.

use tokio::process::Command;

/// Runs a scenario passes_on a new database.
async fn passes(scenario: &[&str]) {
    let Some(server) = svc_postgres_server::server() else { return };
    passes_on(&server.database(), scenario).await;
}

async fn passes_on(database_url: &str, scenario: &[&str]) {
    let mut nodes = Command::new(env!("CARGO_BIN_EXE_nodes"));
    nodes.args(["--database-url", database_url, "--server", env!("CARGO_BIN_EXE_svc-server-tested")]);
    nodes.args(["--svc", env!("CARGO_BIN_EXE_svc-tested")]).args(scenario);
    let output = nodes.kill_on_drop(true).output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{scenario:?}: {printed}");
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_client_that_follows_changes_misses_none() {
    passes(&["order", "--changes", "500"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn each_delivery_is_sent_once() {
    passes(&["once", "--deliveries", "2000"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_stopped_or_killed_node_loses_no_delivery() {
    passes(&["stopped", "--events", "20"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn events_written_by_another_process_are_sent_at_once() {
    passes(&["wake", "--events", "20", "--commands", "10", "--most", "500"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_revoked_key_is_refused_by_every_node() {
    passes(&["revoked", "--keys", "50"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn nodes_share_limits_signatures_keys_and_failure_counts() {
    passes(&["shared", "--rounds", "1"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_connection_lost_at_the_commit_loses_and_repeats_no_write() {
    passes(&["cut", "--cuts", "20"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn a_database_restart_loses_no_acknowledged_write() {
    if svc_postgres_server::is_installed() {
        passes_on("postgres", &["restart", "--rounds", "2", "--down", "1s"]).await;
    }
}
