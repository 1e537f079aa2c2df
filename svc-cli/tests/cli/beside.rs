//! Options that say what a database takes. A server has its own settings instead.

use crate::harness::Session;

#[test]
fn kinds_of_a_file_are_used_everywhere() {
    let mut session = Session::new();
    session.account();
    session.file("events.json", include_str!("../../../fixtures/event-kinds/events.json"));
    session.file("order.json", r#"{"id": "A-18", "to": {"city": "Hobart"}}"#);
    session.file("wrong.json", r#"{"id": 18, "to": {}, "parcels": 0}"#);
    let create = ["webhook", "create", "--url", "https://example.com/hooks", "--events", "order.shipped,invoice.paid"];
    let emit = ["event", "emit", "--kind", "order.shipped", "--data"];
    let with_file = |command: &[&'static str]| [command, &["--event-kinds", "events.json"]].concat();
    session.run(&create).run(&[&emit[..], &["order.json"]].concat());
    session.json(&with_file(&create));
    session
        .run(&with_file(&[&emit[..], &["order.json"]].concat()))
        .run(&with_file(&[&emit[..], &["wrong.json"]].concat()))
        .run(&with_file(&["event", "emit", "--kind", "order.shiped", "--data", "order.json"]))
        .run(&with_file(&["trigger", "order.shipped"]))
        .run(&with_file(&["trigger", "order.shiped"]));
    // What was emitted is shown without the file as well.
    session
        .run(&["delivery", "list", "--event", "order.shipped"])
        .run(&["delivery", "list", "--event", "order.shiped"])
        .run(&["webhook", "list"])
        .assert("event_kinds");
}

#[test]
fn private_webhooks_are_taken_when_a_variable_allows_them() {
    let session = Session::new();
    session.account();
    let mut program = session.program(&["webhook", "create", "--url", "http://localhost:3000/", "--events", "*"]);
    let output = program.env("SVC_ALLOW_PRIVATE_WEBHOOKS", "true").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}
