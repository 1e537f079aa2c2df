use std::io::Write as _;
use std::process::Stdio;

use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::harness::{Session, UNKNOWN_ID};

#[test]
fn events_are_emitted() {
    let mut session = Session::new();
    session.account();
    let account = session.account();
    session.file("stay.json", "{\n  \"id\": \"stay-1\",\n  \"rate\": 119.50,\n  \"guest\": \"Zoë\"\n}\n");
    let emit = ["event", "emit", "--account", &account, "--data", "stay.json", "--kind"];
    session.run(&[&emit[..], &["stay.created"]].concat());
    let stays = r#"{"url": "https://example.org/", "events": ["stay.created"]}"#;
    let _: WebhookSubscription = session.create(&account, stays);
    session
        .run(&[&emit[..], &["stay.created"]].concat())
        .run(&[&emit[..], &["stay.created", "--json"]].concat())
        .run(&[&emit[..], &["cohort.sessions_generated", "--json"]].concat())
        .run(&["delivery", "list", "--account", &account])
        .assert("event");
}

#[test]
fn events_are_listed_and_shown_with_their_deliveries() {
    let mut session = Session::new();
    let account = session.account();
    let stays = r#"{"url": "https://example.org/", "events": ["stay.created"]}"#;
    let _: WebhookSubscription = session.create(&account, stays);
    session.file("stay.json", r#"{"id": "stay-1", "rate": 119.50}"#);
    let emit = |kind: &str| {
        let output = session.output(&["event", "emit", "--data", "stay.json", "--kind", kind, "--json"]);
        let event: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        event["id"].as_str().unwrap().to_owned()
    };
    let (created, no_show) = (emit("stay.created"), emit("stay.no_show"));
    session
        .run(&["event", "list"])
        .run(&["event", "list", "--kind", "stay.created", "--json"])
        .run(&["event", "list", "--kind", "invoice.paid"])
        .run(&["event", "list", "--limit", "1"])
        .run(&["event", "list", "--since", "2099-01-01"])
        .run(&["event", "show", &created])
        .run(&["event", "show", &created, "--json"])
        .run(&["event", "show", &no_show])
        .run(&["event", "show", UNKNOWN_ID])
        .assert("event_list");
    assert_eq!(session.id(&["event", "show", &created[24..]]), created);
}

#[test]
fn data_is_read_from_stdin() {
    let session = Session::new();
    let account = session.account();
    let emit = ["event", "emit", "--json", "--account", &account, "--kind", "stay.no_show", "--data", "-"];
    let mut child =
        session.program(&emit).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(br#"{"id": 7}"#).unwrap();
    let output = child.wait_with_output().unwrap();
    let event: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((event["event"].as_str(), event["data"]["id"].as_u64()), (Some("stay.no_show"), Some(7)));
}

#[test]
fn invalid_commands_are_refused() {
    let mut session = Session::new();
    let account = session.account();
    session.file("stay.json", r#"{"id": "stay-1"}"#);
    session.file("nameless.json", r#"{"nights": 2}"#);
    session.file("twice.json", r#"{"id": 1, "guest": {"name": "Ada", "name": "Zoë"}}"#);
    session.file("broken.json", r#"{"id": 1"#);
    session.file("large.json", format!(r#"{{"id": "{}"}}"#, "x".repeat(1 << 20)));
    let emit = ["event", "emit", "--account", &account, "--kind", "stay.created", "--data"];
    session
        .run(&["event", "emit"])
        .run(&["event", "emit", "--account", &account, "--data", "stay.json", "--kind", "invoice.paid"])
        .run(&["event", "emit", "--account", &account, "--data", "stay.json", "--kind", "stay.made"])
        .run(&["event", "emit", "--account", UNKNOWN_ID, "--data", "stay.json", "--kind", "stay.created"])
        .run(&[&emit[..], &["missing.json"]].concat());
    session.file("list.json", "[]");
    for file in ["list.json", "nameless.json", "twice.json", "broken.json", "large.json", "-"] {
        session.run(&[&emit[..], &[file]].concat());
    }
    session.assert("event_refused");
}

#[test]
fn an_event_of_any_kind_is_triggered() {
    let mut session = Session::new();
    session.account();
    session.json(&["webhook", "create", "--url", "https://example.com/hooks", "--events", "invoice.paid"]);
    session
        .run(&["trigger", "invoice.paid"])
        .run(&["trigger", "stay.created", "--json"])
        .run(&["trigger", "invoice.payed"])
        .assert("trigger");
    let deliveries = session.json(&["delivery", "list"]);
    assert_eq!(deliveries.as_array().unwrap().len(), 1);
    assert_eq!(deliveries[0]["event"], "invoice.paid");
    assert_eq!(session.json(&["invoice", "list"]).as_array().unwrap().len(), 0, "no record is made");
}

#[test]
fn a_file_of_kinds_that_is_not_valid_is_refused() {
    let mut session = Session::new();
    session.file("list.json", "[]");
    session.file("name.json", r#"{"Order": {}}"#);
    session.file("taken.json", r#"{"invoice.paid": {}}"#);
    session.file("schema.json", r#"{"order.shipped": {"properties": {"id": {"type": "text"}}, "examples": [{}]}}"#);
    session.file("example.json", r#"{"order.shipped": {"required": ["id"], "examples": [{"ID": 1}]}}"#);
    for file in ["missing.json", "list.json", "name.json", "taken.json", "schema.json", "example.json"] {
        session.run(&["account", "list", "--event-kinds", file]);
    }
    session.assert("event_kinds_refused");
}
