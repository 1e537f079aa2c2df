use serde_json::Value;

use crate::harness::{Session, UNKNOWN_ID, text};

#[test]
fn the_audit_log_lists_every_change() {
    let mut session = Session::new();
    let account = session.account();
    session.json(&["account", "suspend", &account]);
    session.json(&["account", "suspend", &account]);
    session.json(&["account", "approve", &account]);
    session.json(&["account", "set", &account, "--currency", "NZD"]);
    let limits = ["account", "set", &account, "--rate-limit", "600", "--write-rate-limit", "jobs=7"];
    session.json(&limits);
    // The same settings again change nothing.
    session.json(&limits);
    let key = session.json(&["key", "create", "--account", &account, "--scopes", "read", "--signed"]);
    session.json(&["key", "revoke", key["id"].as_str().unwrap()]);
    let log = session.json(&["audit", "list", "--account", &account]);
    let log = log.as_array().unwrap();
    let lines: Vec<String> =
        log.iter().map(|entry| format!("{} {}", entry["action"], entry["object_kind"]).replace('"', "")).collect();
    let updates = ["update tenant"; 4];
    assert_eq!(lines, [&["revoke key", "create key"][..], &updates, &["create tenant"]].concat());
    assert!(log.iter().all(|entry| entry["actor"].as_str().unwrap().starts_with("cli:")));
    let limits = ["before", "after"].map(|side| &log[2][side]["limits"]);
    assert_eq!(limits.map(|limits| &limits["rate_limit"]), [&Value::Null, &600.into()]);
    assert_eq!(limits.map(|limits| &limits["write_rate_limits"]["jobs"]), [&Value::Null, &7.into()]);
    assert_eq!((&log[3]["before"]["currency"], &log[3]["after"]["currency"]), (&"AUD".into(), &"NZD".into()));
    assert!(log[0]["before"]["revoked_at"].is_null() && log[0]["after"]["revoked_at"].is_string());
    let shown = text(&session.output(&["audit", "list", "--account", &account, "--json"]).stdout);
    assert!(!shown.contains("svcsig_") && !shown.contains(key["key"].as_str().unwrap()));
    let people = text(&session.output(&["audit", "list", "--account", &account, "--limit", "1"]).stdout);
    assert!(people.contains("revoked key") && people.lines().count() == 2, "{people}");
    session
        .run(&["audit", "list", "--account", &account, "--limit", "1", "--json"])
        .run(&["audit", "list", "--account", &account, "--since", "2099-01-01T00:00:00Z"])
        .run(&["audit", "list", "--account", UNKNOWN_ID])
        .run(&["audit", "list"])
        .assert("audit");
    // The audit log is copied with the database and is never pruned.
    session.json(&["db", "prune", "--retention", "1us"]);
    session.json(&["db", "copy", "sqlite://svc.db", "sqlite://new.db"]);
    let copied = session.json(&["audit", "list", "--account", &account, "--database-url", "sqlite://new.db"]);
    assert_eq!(copied.as_array().unwrap(), log);
}

/// Payments and imports are logged with their actor, which the records themselves do not contain.
#[test]
fn the_audit_log_lists_changes_to_records() {
    let mut session = Session::new();
    let account = session.account();
    session.file("contacts.csv", "email\nada@example.com\nbob@example.com\n");
    session.json(&["import", "contacts", "--account", &account, "contacts.csv", "--no-events"]);
    // The same import again changes nothing.
    session.json(&["import", "contacts", "--account", &account, "contacts.csv", "--no-events"]);
    let contact = session.json(&["export", "contacts", "--account", &account])[0]["id"].as_str().unwrap().to_owned();
    let invoice = session.id(&["invoice", "create", "--account", &account, "--contact", &contact, "--total", "40"]);
    session.json(&["invoice", "pay", &invoice]);
    session.run(&["audit", "list", "--account", &account]).assert("audit_records");
    let log = session.json(&["audit", "list", "--account", &account]);
    let paid = log.as_array().unwrap().iter().find(|entry| entry["action"] == "paid").unwrap();
    assert_eq!((paid["object_id"].as_str(), &paid["after"]["status"]), (Some(invoice.as_str()), &"paid".into()));
}
