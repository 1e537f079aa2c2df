use super::harness::{Session, UNKNOWN_ID, text};

#[test]
fn a_link_to_the_dashboard_is_one_line() {
    let mut session = Session::new();
    let account = session.account();
    let output = session.output(&["dashboard", "link", "--role", "developer", "--url", "https://api.example.com/"]);
    let line = text(&output.stdout);
    let token = line.strip_prefix("https://api.example.com/dashboard/sign-in?token=").unwrap();
    assert_eq!((token.trim_end().len(), line.lines().count()), (43, 1), "{line}");

    let link = session.json(&["dashboard", "link", "--account", &account]);
    assert_eq!((link["role"].as_str(), link["tenant_id"].as_str()), (Some("owner"), Some(account.as_str())));
    let operator = session.json(&["dashboard", "link", "--operator"]);
    assert!(operator["tenant_id"].is_null());
    let log = session.json(&["audit", "list"]);
    let made = log.as_array().unwrap().iter().filter(|entry| entry["object_kind"] == "dashboard_link");
    assert_eq!(made.count(), 2, "{log}");
    assert!(!log.to_string().contains(token.trim_end()));
    assert!(!session.output(&["dashboard", "link", "--account", UNKNOWN_ID]).status.success());
    assert!(!session.output(&["dashboard", "link", "--operator", "--role", "viewer"]).status.success());
    session.json(&["member", "add", "--email", "ada@example.com", "--role", "developer"]);
    let member = session.json(&["dashboard", "link", "--email", "Ada@example.com"]);
    assert_eq!(member["role"], "developer");
    let log = session.json(&["audit", "list"]);
    let made = log.as_array().unwrap().iter().find(|entry| entry["object_kind"] == "dashboard_link").unwrap();
    assert_eq!(made["after"]["identity"], "ada@example.com", "{log}");
    session
        .run(&["dashboard", "link", "--email", "eve@example.com"])
        .run(&["dashboard", "link", "--email", "ada@example.com", "--role", "owner"])
        .run(&["dashboard", "link", "--email", "ada"])
        .run(&["dashboard", "link", "--role", "viewer"])
        .run(&["dashboard", "link", "--operator", "--json"])
        .run(&["dashboard", "link", "--account", UNKNOWN_ID])
        .assert("dashboard");
}
