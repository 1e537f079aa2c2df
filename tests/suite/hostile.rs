//! Short runs of the program `hostile` (`tests/hostile`). They check that the server survives each attack; latencies
//! of other clients are not checked here.

use tokio::process::Command;

async fn assert_survives(attacks: &[&str]) {
    assert_survives_for(1, attacks).await;
}

async fn assert_survives_for(seconds: u64, attacks: &[&str]) {
    let mut hostile = Command::new(env!("CARGO_BIN_EXE_hostile"));
    hostile.args(["--seconds", &seconds.to_string(), "--rate", "50", "--any-latency"]);
    hostile.args(["--server", env!("CARGO_BIN_EXE_svc-server-tested")]).args(attacks);
    let output = hostile.kill_on_drop(true).output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{attacks:?}: {printed}");
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_server_survives_many_slow_connections() {
    assert_survives(&["silent", "slow-heads", "slow-bodies", "slow-readers", "handshakes", "forms"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_server_survives_large_responses_that_are_not_read() {
    assert_survives(&["large-responses", "large-stuck-answers", "stuck-pages"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_server_survives_large_files_and_logs() {
    assert_survives(&["files", "stuck-files", "attempt-logs"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_server_survives_floods_of_requests() {
    assert_survives(&["pipelining", "heads", "uris", "chunks", "gigabyte-declared", "gigabyte-chunked", "search"])
        .await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn ambiguous_requests_and_documents_get_one_response() {
    assert_survives(&["documents", "smuggling"]).await;
}

#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_server_survives_http_2_floods() {
    assert_survives(&["resets", "streams", "continuations", "settings", "pings", "empty-frames", "stuck-answers"])
        .await;
}

/// As many connections as a server takes by default.
#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_server_survives_ten_thousand_connections() {
    assert_survives_for(8, &["short-heads", "idle-http2"]).await;
}

/// As many, each with something that takes as much memory as it may and is never finished.
#[tokio::test]
#[ignore = "a long proof, which .ci/run runs"]
async fn the_server_survives_ten_thousand_unfinished_requests() {
    assert_survives_for(8, &["unfinished-heads", "unfinished-bodies", "client-hellos", "unfinished-streams"]).await;
}
