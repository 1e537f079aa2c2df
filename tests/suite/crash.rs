//! The short form of the crash test (`tests/crash`).

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
    crash.args(["--rounds", "4", "--server", env!("CARGO_BIN_EXE_svc-server-tested")]).args(database);
    let output = crash.kill_on_drop(true).output().await.unwrap();
    let printed = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{database:?}: {printed}");
}
