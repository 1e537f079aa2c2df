use std::time::Duration;

use serde_json::{Value, json};
use svc_core::accounts::dashboard_links::INVITATION_LIFETIME;
use svc_core::values::Timestamp;

use super::harness::{Session, UNKNOWN_ID};

#[test]
fn members_are_added_listed_and_removed() {
    let mut session = Session::new();
    let account = session.account();
    session
        .run(&["member", "list"])
        .run(&["member", "add", "--email", "Ada@Example.com", "--role", "owner"])
        .run(&["member", "add", "--email", "bob@example.com", "--role", "viewer"])
        .run(&["member", "add", "--account", &account, "--email", "BOB@example.com", "--role", "developer"])
        .run(&["member", "list"])
        .run(&["member", "invite", "eve@example.com", "--role", "owner"])
        .run(&["member", "invite", "eve@example.com", "--json"])
        .run(&["member", "remove", "--email", "Bob@example.com"])
        .run(&["member", "remove", "--email", "ada@example.com"])
        .run(&["member", "list"])
        .assert("member");
}

#[test]
fn members_for_programs() {
    let mut session = Session::new();
    session.account();
    session
        .run(&["member", "list", "--json"])
        .run(&["member", "add", "--email", "ada@example.com", "--role", "owner", "--json"])
        .run(&["member", "list", "--json"])
        .run(&["member", "remove", "--email", "ada@example.com", "--json"])
        .assert("member_json");
}

#[test]
fn invalid_members_are_refused() {
    let mut session = Session::new();
    session.account();
    session
        .run(&["member", "add", "--email", "ada", "--role", "owner"])
        .run(&["member", "add", "--email", "ada@example.com"])
        .run(&["member", "add", "--email", "ada@example.com", "--role", "admin"])
        .run(&["member", "add", "--account", UNKNOWN_ID, "--email", "ada@example.com", "--role", "owner"])
        .run(&["member", "remove", "--email", "ada@example.com"])
        .run(&["member", "list", "--account", UNKNOWN_ID])
        .assert("member_refused");
}

#[test]
fn a_person_is_invited_by_a_link() {
    let session = Session::new();
    let account = session.account();
    let invited = session.json(&["member", "invite", "ada@example.com", "--url", "https://api.example.com"]);
    let url = invited["url"].as_str().unwrap();
    assert!(url.starts_with("https://api.example.com/dashboard/sign-in?token="), "{url}");
    assert_eq!(
        (&invited["email"], &invited["role"], &invited["tenant_id"]),
        (&json!("ada@example.com"), &json!("viewer"), &json!(account))
    );
    let time = |of: &Value, name: &str| Timestamp::parse(of[name].as_str().unwrap()).unwrap();
    let added = time(&session.json(&["member", "list"])[0], "created_at");
    let lifetime = time(&invited, "expires_at").since(added);
    assert!(lifetime.abs_diff(INVITATION_LIFETIME) < Duration::from_secs(60), "{lifetime:?}");
    // Another link for the same member keeps the role, unless it says another.
    assert_eq!(session.json(&["member", "invite", "ADA@example.com", "--role", "owner"])["role"], "owner");
    assert_eq!(session.json(&["member", "invite", "ada@example.com"])["role"], "owner");
    assert_eq!(session.json(&["member", "list"]).as_array().unwrap().len(), 1);
    assert!(!session.output(&["member", "invite", "ada"]).status.success());
    assert!(!session.output(&["member", "invite", "ada@example.com", "--role", "boss"]).status.success());
}
