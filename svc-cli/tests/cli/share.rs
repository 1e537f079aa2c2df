//! The addresses of invoices, quotes and calendars for people without a sign-in.

use serde_json::Value;
use svc_core::resources::quotes::QuoteStatus;

use super::harness::{Session, UNKNOWN_ID};

/// Returns the address that a command prints as JSON.
fn url(session: &Session, command: &[&str]) -> String {
    session.json(command)["url"].as_str().unwrap().to_owned()
}

#[test]
fn an_address_stays_until_it_is_renewed_or_revoked() {
    let session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    session.quote(&account, &contact, QuoteStatus::Sent);
    session.json(&["invoice", "create", "--total", "80"]);
    for (command, path) in [
        (["quote", "share", "QUO-0001"], "/share/"),
        (["invoice", "share", "INV-0001"], "/share/"),
        (["account", "calendar", &account], "/dashboard/calendar.ics?secret="),
    ] {
        let with = |option| [command.as_slice(), &[option]].concat();
        let first = url(&session, &command);
        let secret = first.strip_prefix(&format!("http://127.0.0.1:8080{path}")).unwrap();
        assert_eq!(secret.len(), 43, "{first}");
        assert_eq!(url(&session, &command), first);
        let renewed = url(&session, &with("--renew"));
        assert_ne!(renewed, first);
        let shown = session.output(&[command.as_slice(), &["--url", "https://api.example.com/"]].concat());
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert_eq!(shown, renewed.replace("http://127.0.0.1:8080", "https://api.example.com") + "\n");
        for _ in 0..2 {
            assert_eq!(session.json(&with("--revoke"))["url"], Value::Null);
        }
        assert_ne!(url(&session, &command), renewed);
    }
}

#[test]
fn addresses_are_printed_and_those_of_nothing_refused() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    session.quote(&account, &contact, QuoteStatus::Sent);
    session.json(&["invoice", "create", "--total", "80"]);
    session
        .run(&["invoice", "share", "INV-0001"])
        .run(&["invoice", "share", "INV-0001", "--json"])
        .run(&["invoice", "share", "INV-0001", "--revoke"])
        .run(&["quote", "share", "QUO-0001", "--url", "https://api.example.com"])
        .run(&["quote", "share", "QUO-0001", "--json"])
        .run(&["account", "calendar", &account])
        .run(&["account", "calendar", &account, "--renew", "--json"])
        .run(&["account", "calendar", &account, "--revoke", "--json"])
        .run(&["invoice", "share", UNKNOWN_ID])
        .run(&["quote", "share", UNKNOWN_ID, "--revoke"])
        .run(&["account", "calendar", UNKNOWN_ID])
        .run(&["quote", "share", UNKNOWN_ID, "--revoke", "--renew"])
        .assert("share");
}
