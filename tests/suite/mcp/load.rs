//! Many assistants at a time, and those that go away in the middle of a message.

use futures_util::future::join_all;
use serde_json::{Value, json};
use svc_core::accounts::keys::KeyCreate;
use svc_core::pages::{Limit, ListParams};
use svc_core::prelude::TenantCreate;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::apps::Running;

const SESSIONS: usize = 1_000;
/// How much more memory the program may have with a session on each of that many connections, in bytes.
const MOST: usize = 64 * 1024 * 1024;

/// An assistant with a connection that it keeps.
struct Assistant {
    stream: TcpStream,
    key: String,
}

impl Assistant {
    async fn connect(server: &Running, key: &str) -> Self {
        let stream = TcpStream::connect(server.issuer.strip_prefix("http://").unwrap()).await.unwrap();
        Self { stream, key: key.to_owned() }
    }

    async fn write(&mut self, message: &Value) {
        let body = message.to_string();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
    }

    async fn get(&mut self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n", self.key);
        self.stream.write_all(request.as_bytes()).await.unwrap();
        self.read().await
    }

    /// Sends a message, and returns the body of the response.
    async fn ask(&mut self, message: Value) -> String {
        self.write(&message).await;
        self.read().await
    }

    async fn read(&mut self) -> String {
        let (mut received, mut chunk) = (Vec::new(), vec![0; 16 * 1024]);
        loop {
            let count = self.stream.read(&mut chunk).await.unwrap();
            assert!(count > 0, "{}", String::from_utf8_lossy(&received));
            received.extend_from_slice(&chunk[..count]);
            let Some(end) = received.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&received[..end]).to_lowercase();
            let length = head.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
            let length: usize = length.map_or(0, |length| length.parse().unwrap());
            if received.len() >= end + 4 + length {
                return String::from_utf8(received.split_off(end + 4)).unwrap();
            }
        }
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn tool(id: u64, name: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({ "name": name, "arguments": arguments }))
}

async fn key(server: &Running) -> String {
    let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
    server.svc.account(server.tenant).keys().create(input).await.unwrap().text.reveal().to_owned()
}

/// Returns the memory of a process that is in use, in bytes.
fn memory(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a long proof: a thousand connections"]
async fn a_thousand_assistants_take_little_memory() {
    let server = Running::start_with(&["--mcp", "on", "--no-rate-limit"]).await;
    let key = key(&server).await;
    let initialize =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let idle = memory(server.process());
    // What a connection takes by itself, whatever is asked on it.
    let connected = (0..SESSIONS).map(|_| async {
        let mut assistant = Assistant::connect(&server, &key).await;
        assistant.get("/api/v1/ping").await;
        assistant
    });
    let connected = join_all(connected).await;
    let before = memory(server.process());

    let working = connected.into_iter().map(|mut assistant| async {
        let said = assistant.ask(request(1, "initialize", initialize.clone())).await;
        assert!(said.contains("\"serverInfo\""), "{said}");
        assistant.ask(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        let tools = assistant.ask(request(2, "tools/list", json!({}))).await;
        assert!(tools.len() > 50_000, "{tools}");
        let listed = assistant.ask(tool(3, "list_contacts", json!({}))).await;
        assert!(listed.contains("\"isError\":false"), "{listed}");
        assistant
    });
    let mut assistants = join_all(working).await;
    let after = memory(server.process());
    let more = after.saturating_sub(before);
    let [idle, before, after] = [idle, before, after].map(|bytes| bytes / 1_000_000);
    println!("{SESSIONS} connections: {idle} MB idle, {before} MB with a request each, {after} MB with a session each");
    assert!(more <= MOST, "{more} bytes more than {before} MB");
    // They are still there.
    let last = assistants[SESSIONS - 1].ask(tool(4, "list_contacts", json!({}))).await;
    assert!(last.contains("\"isError\":false"), "{last}");
}

/// A flood of one account is over its limit, and one without a key over that of its address. Another account works on.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_stopped_by_its_limit_alone() {
    let server = Running::start_with(&["--mcp", "on"]).await;
    let key = key(&server).await;
    let other = server.svc.accounts().create(TenantCreate::named("Quay Bakery")).await.unwrap().id;
    let input = KeyCreate { name: None, write: true, expires_in: None, signed: false };
    let other = server.svc.account(other).keys().create(input).await.unwrap().text.reveal().to_owned();
    let ask = async |key: &str, number: u64| {
        let mut assistant = Assistant::connect(&server, key).await;
        assistant.ask(tool(number, "list_contacts", json!({}))).await
    };
    let flood = join_all((0..300).map(|number| ask(&key, number)));
    let others = join_all((0..50).map(|number| ask(&other, number)));
    let anonymous = join_all((0..200).map(|number| ask("svc_live_no", number)));
    let (flood, others, anonymous) = tokio::join!(flood, others, anonymous);
    let count = |answers: &[String], text: &str| answers.iter().filter(|answer| answer.contains(text)).count();
    assert_eq!((count(&flood, "\"isError\":false"), count(&flood, "rate_limited")), (60, 240));
    assert_eq!(count(&others, "\"isError\":false"), 50);
    assert_eq!((count(&anonymous, "invalid_key"), count(&anonymous, "rate_limited")), (60, 140));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_caller_goes_away_is_made_once() {
    let server = Running::start_with(&["--mcp", "on", "--no-rate-limit"]).await;
    let key = key(&server).await;
    let call = |number: usize| {
        let arguments =
            json!({ "email": format!("person{number}@example.com"), "idempotency_key": format!("k{number}") });
        tool(1, "create_contact", arguments)
    };
    for number in 0..50 {
        let mut assistant = Assistant::connect(&server, &key).await;
        if number % 2 == 0 {
            // The response is not read.
            assistant.write(&call(number)).await;
        } else {
            // The message is not whole.
            let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n{\"jsonrpc\"";
            assistant.stream.write_all(head.as_bytes()).await.unwrap();
        }
        drop(assistant);
    }
    let mut assistant = Assistant::connect(&server, &key).await;
    for number in 0..50 {
        let mut said = assistant.ask(call(number)).await;
        // The first call may still be running.
        while said.contains("idempotency_in_progress") {
            said = assistant.ask(call(number)).await;
        }
        assert!(said.contains("\"isError\":false"), "{said}");
    }
    let svc = &server.svc;
    let contacts = svc
        .account(server.tenant)
        .contacts()
        .list(Default::default(), ListParams { limit: Some(Limit::new(200).unwrap()), ..Default::default() })
        .await
        .unwrap();
    assert_eq!(contacts.data.len(), 50);
}
