//! `svc mcp`, which needs a server. `tests/suite/mcp/programs.rs` has assistants that work with it.

use std::fs::File;

use serde_json::json;
use svc_core::accounts::keys::{self, KeyCreate};
use svc_core::values::TenantId;

use crate::harness::{Session, SessionOn, text};
use crate::server::OnServer;

#[test]
fn each_line_is_a_message_and_gets_its_answer() {
    let mut session = SessionOn::<OnServer>::new();
    let account = session.account();
    let search = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "search", "arguments": { "text": "nobody" } },
    });
    for (file, lines) in [
        ("ping.jsonl", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".to_owned()),
        ("search.jsonl", format!("\n{search}\n")),
        ("broken.jsonl", "hello\n".to_owned()),
    ] {
        session.file(file, lines);
        for args in [&["mcp"][..], &["mcp", "--account", &account, "--read-only", "--json"]] {
            let stdin = File::open(session.folder().join(file)).unwrap();
            let output = session.program(args).stdin(stdin).output().unwrap();
            session.record(args, &output);
        }
    }
    session.run(&["mcp", "--output", "csv"]).assert("mcp");
}

#[test]
fn a_database_has_no_tools() {
    let session = Session::new();
    session.account();
    let output = session.output(&["mcp"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("Set SVC_URL to its URL and SVC_KEY to an API key"), "{output:?}");
}

#[test]
fn other_commands_take_no_api_key() {
    let session = Session::new();
    let account: TenantId = session.account().parse().unwrap();
    let key = session.write(account, async |tx, &account| {
        let input = KeyCreate { name: None, write: false, expires_in: None, signed: false };
        keys::create(tx, account, input).await
    });
    let mut list = session.program(&["account", "list", "--server", "http://127.0.0.1:1"]);
    let output = list.env("SVC_PLATFORM_KEY", key.text.reveal()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("which `svc mcp` alone works with"), "{output:?}");
}
