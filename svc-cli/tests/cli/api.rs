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
fn fields_are_the_body_or_the_query() {
    let mut session = SessionOn::<OnServer>::new();
    session.account();
    session.file("name.txt", "Analytical Engines");
    let fields =
        ["api", "POST", "/contacts", "-f", "email=ada@example.com", "-f", "phone=0412", "-F", "company_name=@name.txt"];
    let created = session.output(&fields);
    assert_eq!(created.status.code(), Some(0), "{created:?}");
    let contact: serde_json::Value = serde_json::from_slice(&created.stdout).unwrap();
    assert_eq!(
        (&contact["data"]["phone"], &contact["data"]["company_name"]),
        (&"0412".into(), &"Analytical Engines".into())
    );
    let id = contact["data"]["id"].as_str().unwrap();
    let contact_id = format!("contact_id={id}");
    session
        .run(&["api", "POST", "/quotes", "-f", &contact_id, "-F", "total=99.95"])
        .run(&["api", "POST", "/quotes", "-f", &contact_id, "-f", "total=99.95"])
        .run(&[
            "api",
            "POST",
            "/webhooks",
            "-f",
            "url=https://example.com/",
            "-f",
            "events[]=quote.accepted",
            "-F",
            "max_per_second=5",
        ])
        .run(&["api", "GET", "/contacts", "-f", "email=ada@example.com", "-F", "limit=1"])
        .run(&["api", "GET", "/contacts?limit=1", "-f", "email=nobody&x@example.com"])
        .run(&["api", "PATCH", &format!("/contacts/{id}"), "-F", "phone=null"])
        .run(&["api", "POST", "/contacts", "-f", "email"])
        .run(&["api", "POST", "/contacts", "-f", "a=1", "-f", "a[b]=2"])
        .run(&["api", "POST", "/contacts", "-f", "email=a@example.com", "--data", "-"])
        .assert("api_fields");
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
