//! `svc api`, which needs a server.

use crate::harness::{Session, SessionOn, UNKNOWN_ID, text};
use crate::server::OnServer;

#[test]
fn a_response_is_printed_as_it_is_and_its_status_is_the_exit_code() {
    let mut session = SessionOn::<OnServer>::new();
    let account = session.account();
    session.file("contact.json", r#"{"email": "ada@example.com", "first_name": "Ada"}"#);
    session.file("broken.json", "{");
    session
        .run(&["api", "POST", "/contacts", "--data", "contact.json"])
        .run(&["api", "get", "contacts?limit=1", "--json"])
        .run(&["api", "GET", &format!("/accounts/{account}/quotes")])
        .run(&["api", "POST", "/contacts", "--data", "contact.json"])
        .run(&["api", "POST", "/contacts", "--data", "broken.json"])
        .run(&["api", "GET", &format!("/contacts/{UNKNOWN_ID}")])
        .run(&["api", "GET", "/contacts", "--account", UNKNOWN_ID])
        .run(&["api", "PUT", "/contacts"])
        .run(&["api", "GET", "https://example.com/"])
        .run(&["api", "GET", "/contacts", "--output", "csv"])
        .assert("api");
    let shown = text(&session.output(&["api", "-i", "GET", "/accounts"]).stdout);
    assert!(shown.starts_with("200 OK\n") && shown.contains("\ncontent-type: application/json"), "{shown}");
    assert!(shown.contains(&account), "{shown}");
}

#[test]
fn a_database_has_no_api() {
    let session = Session::new();
    session.account();
    let output = session.output(&["api", "GET", "/contacts"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        text(&output.stderr).contains("`svc api` sends requests to a server; name one with --profile"),
        "{output:?}"
    );
}
