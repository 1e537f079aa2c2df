//! The command line beside a running server: what it writes goes out through the server's sender.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::sync::mpsc;

use crate::harness::guarded;
use crate::program::{self, Program};

/// The sender looks once a second for what other processes wrote. The rest is for a busy machine.
const SOON: Duration = Duration::from_secs(6);

/// Runs `svc` on the database; what it printed as JSON.
async fn svc(url: &str, arguments: &[&str]) -> Value {
    printed(&mut svc_command(url, arguments)).await
}

pub(crate) fn svc_command(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_svc-tested"));
    command.args(arguments).args(["--json", "--database-url", url]).stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// What a command that succeeds prints as JSON.
pub(crate) async fn printed(command: &mut Command) -> Value {
    let output = guarded(command.output()).await.unwrap();
    let arguments = command.as_std().get_args();
    assert!(
        output.status.success(),
        "{:?}: {}",
        arguments.collect::<Vec<_>>(),
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

pub(crate) fn id(made: &Value) -> &str {
    made["id"].as_str().unwrap()
}

/// An endpoint that takes everything: its URL, and the bodies that arrive.
pub(crate) async fn receiver() -> (String, mpsc::UnboundedReceiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (arrived, bodies) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(receive(stream, arrived.clone()));
        }
    });
    (url, bodies)
}

async fn receive(mut stream: TcpStream, arrived: mpsc::UnboundedSender<Value>) {
    let mut bytes = Vec::new();
    while stream.read_buf(&mut bytes).await.is_ok_and(|count| count > 0) {
        let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        // Cut short, it is no JSON yet.
        let Ok(body) = serde_json::from_slice(&bytes[head + 4..]) else { continue };
        let _ = arrived.send(body);
        let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await;
        bytes.clear();
    }
}

#[tokio::test]
async fn what_the_command_line_writes_is_delivered_by_the_server() {
    let (folder, url) = program::database();
    let (endpoint, mut bodies) = receiver().await;
    let arguments = ["--listen", "127.0.0.1:0", "--database-url", &url, "--allow-private-webhooks"];
    let server = Program::start(program::command(&arguments)).await;

    let tenant = svc(&url, &["tenant", "create", "--name", "Harbour Plumbing"]).await;
    let tenant = id(&tenant);
    let key = svc(&url, &["key", "create", "--tenant", tenant, "--scopes", "read,write"]).await;
    let authorization = format!("Bearer {}", key["key"].as_str().unwrap());
    let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
    let contact = json!({ "email": "ada@example.com" }).to_string();
    let contact = server.send("POST", "/api/v1/contacts", &headers, &contact).await.id();
    let hook = json!({ "url": endpoint, "events": ["*"] }).to_string();
    assert_eq!(server.send("POST", "/api/v1/webhooks", &headers, &hook).await.status, 201);
    let stay = folder.path().join("stay.json");
    std::fs::write(&stay, r#"{"id": "stay-1"}"#).unwrap();

    let mut soon = async |wanted: &str| {
        let body = tokio::time::timeout(SOON, bodies.recv()).await.unwrap_or_else(|_| panic!("{wanted} does not come"));
        assert_eq!(body.as_ref().map(|body| &body["event"]), Some(&json!(wanted)));
    };
    let stay = stay.to_str().unwrap();
    let emitted = svc(&url, &["event", "emit", "--tenant", tenant, "--kind", "stay.created", "--data", stay]).await;
    soon("stay.created").await;
    svc(&url, &["invoice", "create", "--tenant", tenant, "--contact", &contact, "--total", "99.95"]).await;
    soon("invoice.created").await;
    // It can be sent again once the server has stored that it arrived.
    let delivery = emitted["deliveries"][0].as_str().unwrap();
    guarded(async { while svc(&url, &["delivery", "show", delivery]).await["status"] != "succeeded" {} }).await;
    svc(&url, &["delivery", "replay", delivery]).await;
    soon("stay.created").await;
    assert_eq!(server.stop("TERM").await.0.code(), Some(0));
}
