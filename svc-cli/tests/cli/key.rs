use std::time::Duration;

use svc_core::accounts::keys::KeyHash;
use svc_core::env::Env;
use svc_core::values::{Date, TimeZone, Timestamp};

use super::harness::{Session, UNKNOWN_ID, text};

#[test]
fn output_for_people() {
    let mut session = Session::new();
    let account = session.account();
    let pending = session.id(&["account", "create", "--name", "Zoë & Sons", "--pending"]);
    session
        .run(&["key", "list", "--account", &account])
        .run(&["key", "create", "--account", &account, "--scopes", "read"])
        .run(&["key", "create", "--account", &pending, "--scopes", "read,write", "--expires", "90d", "--signed"]);
    let id = session.id(&["key", "create", "--account", &account, "--scopes", "read,write", "--name", "Shop"]);
    session
        .run(&["key", "rotate", &id])
        .run(&["key", "show", &id])
        .run(&["key", "revoke", &id])
        .run(&["key", "revoke", &id])
        .run(&["key", "rotate", &id])
        .run(&["key", "list", "--account", &account])
        .assert("key");
}

#[test]
fn output_for_programs() {
    let mut session = Session::new();
    let account = session.account();
    let create = ["key", "create", "--json", "--account", &account, "--scopes"];
    session.run(&["key", "list", "--account", &account, "--json"]);
    session.run(&[&create[..], &["read"]].concat());
    session.run(&[&create[..], &["read,write", "--name", "Shop", "--expires", "24h", "--signed"]].concat());
    let id = session.id(&[&create[..], &["write,read"]].concat());
    session
        .run(&["key", "show", &id, "--json"])
        .run(&["key", "rotate", &id, "--overlap", "30m", "--json"])
        .run(&["key", "revoke", &id, "--json"])
        .run(&["key", "list", "--account", &account, "--json"])
        .assert("key_json");
}

#[test]
fn invalid_commands_are_refused() {
    let mut session = Session::new();
    session
        .run(&["key", "create", "--account", UNKNOWN_ID])
        .run(&["key", "create", "--account", UNKNOWN_ID, "--scopes", "write"])
        .run(&["key", "create", "--account", UNKNOWN_ID, "--scopes", "read,admin"])
        .run(&["key", "create", "--account", UNKNOWN_ID, "--scopes", "read", "--expires", "soon"])
        .run(&["key", "create", "--account", UNKNOWN_ID, "--scopes", "read", "--expires", "0s"])
        .run(&["key", "create", "--account", UNKNOWN_ID, "--scopes", "read", "--expires", "9999y"])
        .run(&["key", "create", "--account", UNKNOWN_ID, "--scopes", "read"])
        .run(&["key", "list"])
        .run(&["key", "list", "--account", UNKNOWN_ID])
        .run(&["key", "show", UNKNOWN_ID])
        .run(&["key", "revoke", UNKNOWN_ID])
        .run(&["key", "rotate", UNKNOWN_ID])
        .run(&["key", "rotate", UNKNOWN_ID, "--overlap", "-1h"])
        .assert("key_refused");
}

#[test]
fn a_key_is_shown_once() {
    let session = Session::new();
    let account = session.account();
    let created = session.json(&["key", "create", "--account", &account, "--scopes", "read", "--signed"]);
    let (key, secret) = (created["key"].as_str().unwrap(), created["signing_secret"].as_str().unwrap());
    assert!(KeyHash::of(key).is_ok() && secret.starts_with("svcsig_"));
    let id = created["id"].as_str().unwrap();
    for args in [vec!["key", "show", id], vec!["key", "list", "--account", &account], vec!["key", "revoke", id]] {
        let shown = text(&session.output(&args).stdout) + &session.json(&args).to_string();
        assert!(!shown.contains(key) && !shown.contains(secret), "{args:?}");
    }
}

#[test]
fn an_expired_key_has_the_status_expired() {
    let session = Session::new();
    let account = session.account();
    let id = session.id(&["key", "create", "--account", &account, "--scopes", "read", "--expires", "1us"]);
    assert!(text(&session.output(&["key", "show", &id]).stdout).contains("expired"));
    assert_eq!(session.output(&["key", "rotate", &id]).status.code(), Some(4));
}

#[test]
fn a_key_is_revoked_only_for_the_account_that_is_named() {
    let session = Session::new();
    let (account, other) = (session.account(), session.account());
    let id = session.id(&["key", "create", "--account", &account, "--scopes", "read"]);
    for command in ["show", "revoke", "rotate"] {
        let refused = session.output(&["key", command, &id, "--account", &other]);
        assert_eq!(refused.status.code(), Some(3), "{command}");
    }
    assert_eq!(session.json(&["key", "list", "--account", &account]).as_array().unwrap().len(), 1);
    let revoked = session.json(&["key", "revoke", &id, "--account", &account]);
    assert!(revoked["revoked_at"].is_string());
}

#[test]
fn a_key_expires_at_a_time_or_when_a_day_begins() {
    let session = Session::new();
    let account = session.id(&["account", "create", "--name", "Harbour Plumbing", "--time-zone", "Australia/Sydney"]);
    let expires_at = |typed: &str| {
        let created = session.json(&["key", "create", "--account", &account, "--scopes", "read", "--expires", typed]);
        Timestamp::parse(created["expires_at"].as_str().unwrap()).unwrap()
    };
    let is_just_after = |at: Timestamp, wanted: Timestamp| at.since(wanted) < Duration::from_secs(60) && at >= wanted;
    let later = Env::system().now().checked_add(Duration::from_secs(10 * 86_400)).unwrap();
    assert!(is_just_after(expires_at(&later.to_string()), later));
    let date = &later.to_string()[..10];
    let begins = TimeZone::parse("Australia/Sydney").unwrap().date_begins(Date::parse(date).unwrap());
    assert!(is_just_after(expires_at(date), begins));
    let past = session.output(&["key", "create", "--scopes", "read", "--expires", "2020-01-01"]);
    assert_eq!(past.status.code(), Some(2));
    assert!(text(&past.stderr).contains("--expires must be after now; 2020-01-01 00:00:00+11:00 is past."), "{past:?}");
}
