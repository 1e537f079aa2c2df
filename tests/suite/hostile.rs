//! The short form of the hostile clients (`tests/hostile`): what they do to others is not timed here.

use tokio::process::Command;

async fn holds(attacks: &[&str]) {
    let mut hostile = Command::new(env!("CARGO_BIN_EXE_hostile"));
    hostile.args(["--seconds", "1", "--rate", "50", "--any-latency"]);
    hostile.args(["--server", env!("CARGO_BIN_EXE_svc-server-tested")]).args(attacks);
    let output = hostile.kill_on_drop(true).output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{attacks:?}: {printed}");
}

#[tokio::test]
async fn crowds_are_borne() {
    holds(&["silent", "slow-heads", "slow-bodies", "slow-readers", "handshakes"]).await;
}

#[tokio::test]
async fn floods_are_borne() {
    holds(&["pipelining", "heads", "uris", "chunks", "gigabyte-declared", "gigabyte-chunked"]).await;
}

#[tokio::test]
async fn what_two_readers_could_read_differently_has_one_answer() {
    holds(&["documents", "smuggling"]).await;
}

#[tokio::test]
async fn floods_over_http_2_are_borne() {
    holds(&["resets", "streams", "continuations", "settings", "pings", "empty-frames", "stuck-answers"]).await;
}
