//! The set-up of these tests: a server, the command line on its database, and `svc listen` as the receiver of its
//! deliveries.

use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::Value;
use svc_test_support::database::Database;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::harness::{Response, guarded};
use crate::program::{self, Program};

/// The longest wait for a delivery on a busy machine; each one is normally sent within a second.
const SOON: Duration = Duration::from_secs(20);

pub(super) struct Installation {
    database: Database,
    folder: tempfile::TempDir,
    pub(super) tenant: String,
    server: Program,
    key: String,
    listening: Option<Stream>,
}

/// A running `svc` command that prints one JSON document per line.
pub(super) struct Stream {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Stream {
    /// Returns the next printed document that `is_wanted` accepts.
    pub(super) async fn next(&mut self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let coming = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                let document = serde_json::from_str(&line).unwrap();
                if is_wanted(&document) {
                    return document;
                }
            }
            panic!("the command ended before it printed {what}");
        };
        tokio::time::timeout(SOON, coming).await.unwrap_or_else(|_| panic!("{what} was not printed"))
    }
}

impl Installation {
    /// Starts a server, then creates a tenant and a key for it with the command line.
    pub(super) async fn open(database: Database) -> Self {
        let arguments = ["--listen", "127.0.0.1:0", "--ops-listen", "127.0.0.1:0", "--database-url", &database.url];
        let mut command = program::command(&arguments);
        command.args(["--allow-private-webhooks", "--no-rate-limit"]).envs(database.variables());
        let server = Program::start(command).await;
        let folder = tempfile::tempdir().unwrap();
        let mut fixture = Self { database, folder, tenant: String::new(), server, key: String::new(), listening: None };
        fixture.tenant = id(&fixture.svc(&["tenant", "create", "--name", "Harbour Plumbing"]).await);
        let create = ["key", "create", "--tenant", &fixture.tenant, "--scopes", "read,write"];
        fixture.key = fixture.svc(&create).await["key"].as_str().unwrap().to_owned();
        fixture
    }

    fn command(&self, url: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_svc-tested"));
        command.args(arguments).args(["--json", "--database-url", url]).envs(self.database.variables());
        command.current_dir(self.folder.path()).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs `svc` with `--json` and returns its output, whatever the exit code.
    pub(super) async fn output(&self, arguments: &[&str]) -> Output {
        guarded(self.command(&self.database.url, arguments).output()).await.unwrap()
    }

    /// Returns the tenants of another database.
    pub(super) async fn tenants_of(&self, url: &str) -> Value {
        let output = guarded(self.command(url, &["tenant", "list"]).output()).await.unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command that must succeed, and returns the JSON that it prints.
    pub(super) async fn svc(&self, arguments: &[&str]) -> Value {
        let output = self.output(arguments).await;
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs a command that must fail, and returns its exit code.
    pub(super) async fn refused(&self, arguments: &[&str]) -> Option<i32> {
        let output = self.output(arguments).await;
        assert!(!output.status.success() && output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
        output.status.code()
    }

    /// Repeats a command until `is_wanted` accepts what it prints.
    pub(super) async fn until(&self, arguments: &[&str], is_wanted: impl Fn(&Value) -> bool) -> Value {
        guarded(async {
            loop {
                let printed = self.svc(arguments).await;
                if is_wanted(&printed) {
                    return printed;
                }
            }
        })
        .await
    }

    /// Starts a command that keeps running.
    pub(super) fn start(&self, arguments: &[&str]) -> Stream {
        let mut child = self.command(&self.database.url, arguments).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Stream { _child: child, lines }
    }

    /// Sends a request to the server with the given key.
    pub(super) async fn call(&self, key: &str, method: &str, path: &str, body: &str) -> Response {
        let authorization = format!("Bearer {key}");
        let headers = [("Authorization", authorization.as_str()), ("Content-Type", "application/json")];
        self.server.send(method, &format!("/api/v1{path}"), &headers, body).await
    }

    /// Sends a request with the key of the set-up, expects success, and returns the record of the response.
    pub(super) async fn api(&self, method: &str, path: &str, body: &str) -> Value {
        let response = self.call(&self.key, method, path, body).await;
        assert!((200..300).contains(&response.status), "{method} {path}: {}", response.text);
        if response.body.is_empty() { Value::Null } else { response.data() }
    }

    /// Returns the status of `GET /ping` with the key of the set-up.
    pub(super) async fn ping(&self) -> u16 {
        self.call(&self.key, "GET", "/ping", "").await.status
    }

    /// Creates a webhook for all events with `svc listen` as its receiver, and returns the webhook's id.
    pub(super) async fn listen(&mut self) -> String {
        // The receiver needs the webhook's secret, and the webhook needs the receiver's port.
        let made = self.api("POST", "/webhooks", r#"{"url": "http://127.0.0.1:9/", "events": ["*"]}"#).await;
        let secret = made["secret"].as_str().unwrap();
        let mut listening = self.start(&["listen", "--port", "0", "--secret", secret]);
        let first = listening.next("the address", |_| true).await;
        let url = serde_json::json!({ "url": format!("{}/hook", first["listening"].as_str().unwrap()) });
        let path = format!("/webhooks/{}", id(&made));
        self.api("PATCH", &path, &url.to_string()).await;
        self.listening = Some(listening);
        id(&made)
    }

    /// Waits for the next delivery of this event about this record or a payment of it, checks that its signature was
    /// verified, and returns the event's data.
    pub(super) async fn arrives(&mut self, event: &str, id: &str) -> Value {
        let is_wanted = |delivery: &Value| {
            let about = &delivery["body"]["data"];
            delivery["event"] == event && (about["id"] == id || about["invoice_id"] == id)
        };
        let arrived = self.listening.as_mut().unwrap().next(event, is_wanted).await;
        assert_eq!(arrived["verified"], true, "{arrived}");
        arrived["body"]["data"].clone()
    }

    pub(super) fn file(&self, name: &str, content: &str) {
        std::fs::write(self.folder.path().join(name), content).unwrap();
    }

    /// Checks the database and stops the server, which must exit with 0.
    pub(super) async fn close(self) {
        assert_eq!(self.svc(&["db", "check"]).await, serde_json::json!([]));
        let (status, _, log) = self.server.stop("TERM").await;
        assert_eq!(status.code(), Some(0), "{log}");
    }
}

pub(super) fn id(made: &Value) -> String {
    made["id"].as_str().unwrap_or_else(|| panic!("no id in {made}")).to_owned()
}
