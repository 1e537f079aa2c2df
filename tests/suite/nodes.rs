//! The short forms of the scenarios of several nodes (`tests/nodes`), which need PostgreSQL.

use tokio::process::Command;

/// Runs a scenario on a database of its own.
async fn holds(scenario: &[&str]) {
    let Some(server) = svc_postgres_server::server() else { return };
    on(&server.database(), scenario).await;
}

async fn on(database_url: &str, scenario: &[&str]) {
    let mut nodes = Command::new(env!("CARGO_BIN_EXE_nodes"));
    nodes.args(["--database-url", database_url, "--server", env!("CARGO_BIN_EXE_svc-server-tested")]);
    nodes.args(["--svc", env!("CARGO_BIN_EXE_svc-tested")]).args(scenario);
    let output = nodes.kill_on_drop(true).output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{scenario:?}: {printed}");
}

#[tokio::test]
async fn whoever_follows_changes_misses_none() {
    holds(&["order", "--changes", "500"]).await;
}

#[tokio::test]
async fn each_delivery_arrives_once() {
    holds(&["once", "--deliveries", "2000"]).await;
}

#[tokio::test]
async fn a_node_that_stands_still_or_dies_spoils_nothing() {
    holds(&["stopped", "--events", "20"]).await;
}

#[tokio::test]
async fn what_others_write_is_sent_at_once() {
    holds(&["wake", "--events", "20", "--commands", "10", "--most", "500"]).await;
}

#[tokio::test]
async fn a_revoked_key_is_refused_everywhere() {
    holds(&["revoked", "--keys", "50"]).await;
}

#[tokio::test]
async fn limits_signatures_keys_and_failures_are_shared() {
    holds(&["shared", "--rounds", "1"]).await;
}

#[tokio::test]
async fn a_connection_that_breaks_at_the_commit_loses_and_doubles_nothing() {
    holds(&["cut", "--cuts", "20"]).await;
}

#[tokio::test]
async fn a_database_that_goes_away_loses_nothing() {
    if svc_postgres_server::is_installed() {
        on("postgres", &["restart", "--rounds", "2", "--down", "1s"]).await;
    }
}
