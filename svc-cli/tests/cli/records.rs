//! `list`, `show`, `create`, `update` and `delete` of every resource.

use std::io::Write as _;
use std::process::Stdio;

use super::harness::{Session, UNKNOWN_ID, text};

#[test]
fn contacts() {
    let mut session = Session::new();
    session.account();
    let create = ["contact", "create", "--email", "ada@example.com", "--first-name", "Ada", "--last-name", "Lovelace"];
    session.run(&create).run(&create).run(&["contact", "create", "--email", "alan@example.com", "--json"]);
    let listed = session.json(&["contact", "list"]);
    let ada = listed[1]["id"].as_str().unwrap();
    session
        .run(&["contact", "show", ada])
        .run(&["contact", "show", ada, "--json"])
        .run(&["contact", "update", ada, "--company_name", "Analytical Engines", "--last-name", ""])
        .run(&["contact", "update", ada, "--company-name", "Analytical Engines"])
        .run(&["contact", "update", ada, "--email", "alan@example.com", "--json"])
        .run(&["contact", "update", ada, "--phone", "+61 2 5550 0100", "--json"])
        .run(&["contact", "list"])
        .run(&["contact", "ls", "--limit", "1"])
        .run(&["contact", "list", "--email", "ALAN@example.com", "--json"])
        .run(&["contact", "delete", ada])
        .run(&["contact", "delete", ada])
        .run(&["contact", "list", "--include-deleted", "--updated-since", "1h"])
        .run(&["contact", "list", "--email", "nobody@example.com"])
        .run(&["contact", "delete", listed[0]["id"].as_str().unwrap(), "--json"])
        .assert("contact");
}

#[test]
fn a_contact_is_exported_and_erased() {
    let mut session = Session::new();
    let account = session.account();
    let ada = session.contact(&account);
    session.run(&["job", "create", "--title", "Replace the boiler", "--contact", &ada]);
    session
        .run(&["contact", "export-all", &ada])
        .run(&["contact", "erase", &ada])
        .run(&["contact", "erase", &ada, "--reason", "asked by\nletter"])
        .run(&["contact", "erase", &ada, "--reason", "asked by letter"])
        .run(&["contact", "erase", &ada, "--reason", "asked again", "--json"])
        .run(&["contact", "export-all", &ada, "--json"])
        .run(&["audit", "list"])
        .run(&["contact", "erase", UNKNOWN_ID, "--reason", "asked by letter"])
        .run(&["contact", "erase", "nobody@example.com", "--reason", "asked by letter"])
        .assert("contact_erase");
}

#[test]
fn bookings_jobs_and_quotes() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let booking = ["booking", "create", "--contact", &contact, "--service-name", "Boiler", "--start"];
    let job = ["job", "create", "--title", "Replace the boiler", "--contact", &contact];
    let quote = ["quote", "create", "--contact", &contact, "--total", "1500.50", "--valid-until", "2099-04-13"];
    session
        .run(&[&booking[..], &["2099-03-14T09:00:00+11:00"]].concat())
        .run(&[&booking[..], &["2099-03-14T09:00:00+11:00", "--json"]].concat())
        .run(&[&job[..], &["--status", "scheduled", "--estimated-total", "99.95"]].concat())
        .run(&[&job[..], &["--json"]].concat())
        .run(&quote)
        .run(&[&quote[..], &["--json"]].concat());
    for (name, change) in
        [("booking", ["--status", "cancelled"]), ("job", ["--actual-total", "12"]), ("quote", ["--status", "sent"])]
    {
        let listed = session.json(&[name, "list"]);
        let [new, old] = [0, 1].map(|at| listed[at]["id"].as_str().unwrap());
        session
            .run(&[name, "update", old, change[0], change[1]])
            .run(&[name, "update", new, change[0], change[1], "--json"])
            .run(&[name, "show", old])
            .run(&[name, "show", old, "--json"])
            .run(&[name, "list"])
            .run(&[name, "list", "--limit", "1", "--json"]);
    }
    session.run(&["job", "list", "--status", "scheduled"]).assert("bookings_jobs_and_quotes");
    // The changes go through the rules, so they have their events.
    let audited = session.json(&["audit", "list"]);
    let is_recorded = |action: &str, kind: &str| {
        audited.as_array().unwrap().iter().any(|entry| entry["action"] == action && entry["object_kind"] == kind)
    };
    assert!(is_recorded("created", "booking") && is_recorded("updated", "job") && is_recorded("updated", "quote"));
}

#[test]
fn invoices() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let invoice = session.id(&["invoice", "create", "--contact_id", &contact, "--total", "100"]);
    session
        .run(&["invoice", "create", "--total", "5", "--issue-date", "2099-01-01", "--due", "2099-02-01"])
        .run(&["invoice", "show", &invoice])
        .run(&["invoice", "show", &invoice, "--json"])
        .run(&["invoice", "list"])
        .run(&["invoice", "list", "--number", "INV-0002", "--json"])
        .run(&["invoice", "update", &invoice, "--due", "2099-05-01"])
        .run(&["invoice", "update", &invoice, "--due-date", "", "--contact", "", "--json"])
        .assert("invoice_records");
}

#[test]
fn webhooks() {
    let mut session = Session::new();
    session.account();
    let create = ["webhook", "create", "--url", "https://example.com/hooks", "--events"];
    session
        .run(&[&create[..], &["invoice.paid,invoice.sent", "--description", "Accounting"]].concat())
        .run(&[&create[..], &["*", "--json"]].concat())
        .run(&[&create[..], &["invoice.payed"]].concat())
        .run(&["webhook", "create", "--url", "http://localhost:3000/", "--events", "*"]);
    let listed = session.json(&["webhook", "list"]);
    let [all, paid] = [0, 1].map(|at| listed[at]["id"].as_str().unwrap());
    session
        .run(&["webhook", "update", paid, "--events", "*", "--description", ""])
        .run(&["webhook", "update", paid, "--enabled", "false", "--json"])
        .run(&["webhook", "update", paid, "--enabled", "maybe"])
        .run(&["webhook", "disable", all])
        .run(&["webhook", "disable", all, "--json"])
        .run(&["webhook", "ls"])
        .run(&["webhook", "delete", paid])
        .run(&["webhook", "delete", all, "--json"])
        .run(&["webhook", "list"])
        .assert("webhook_records");
}

#[test]
fn a_body_of_the_api_creates_and_changes_records() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    let quote = format!(r#"{{"contact_id": "{contact}", "total": 12.50, "line_items": [{{"a": 1}}]}}"#);
    session.file("quote.json", quote);
    session.file("misspelled.json", r#"{"contact": 1, "totl": 12.50}"#);
    session.file("read_only.json", r#"{"email": "a@example.com", "id": 1}"#);
    session.file("array.json", "[]");
    session.file("empty.json", "");
    session
        .run(&["quote", "create", "--data", "quote.json"])
        .run(&["quote", "create", "--data", "misspelled.json"])
        .run(&["contact", "create", "--data", "read_only.json"])
        .run(&["contact", "create", "--data", "array.json"])
        .run(&["contact", "create", "--data", "empty.json"])
        .run(&["contact", "create", "--data", "missing.json"])
        .run(&["contact", "create", "--data", "quote.json", "--email", "a@example.com"])
        .assert("records_data");
    let mut child = session
        .program(&["contact", "update", &contact, "--data", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{"city": "Hobart"}"#).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(text(&output.stdout).contains(r#""city": "Hobart""#), "{output:?}");
}

#[test]
fn invalid_commands_are_refused() {
    let mut session = Session::new();
    let account = session.account();
    let contact = session.contact(&account);
    session
        .run(&["contact", "create"])
        .run(&["contact", "create", "--email", "ada"])
        .run(&["contact", "create", "--email", "ada@example.org", "--frist-name", "Ada"])
        .run(&["contact", "update", &contact])
        .run(&["contact", "update", UNKNOWN_ID, "--city", "Hobart"])
        .run(&["contact", "list", "--email", "ada"])
        .run(&["contacts", "list"])
        .run(&["contact", "lst"])
        .run(&["quote", "list", "--status", "acepted"])
        .run(&["quote", "create", "--contact", UNKNOWN_ID, "--total", "1"])
        .run(&["quote", "create", "--contact", "ffff", "--total", "1"])
        .run(&["quote", "create", "--contact", &contact, "--total", "1,5"])
        .run(&["quote", "create", "--contact", &contact, "--total", "1.555"])
        .run(&["booking", "create", "--contact", &contact, "--service-name", "x", "--start", "tomorrow"])
        .run(&["job", "show", UNKNOWN_ID])
        .run(&["job", "update", "ffff", "--status", "done"])
        .run(&["webhook", "create", "--url", "https://example.com", "--events", ""])
        .assert("records_refused");
}

#[test]
fn fields_are_cleared_by_their_names() {
    let mut session = Session::new();
    session.account();
    let create = ["--email", "ada@example.com", "--phone", "1", "--company-name", "X", "--city", "Perth"];
    session.json(&[&["contact", "create"], &create[..]].concat());
    let contact = |session: &Session| session.json(&["contact", "show", "ada@example.com"]);
    session
        .run(&["contact", "update", "ada@example.com", "--clear", "phone,company_name", "--city", "Hobart"])
        .run(&["contact", "update", "ada@example.com", "--clear", "city", "--city", "Sydney"])
        .run(&["contact", "update", "ada@example.com", "--clear", "city", "--clear", "city"])
        .run(&["contact", "update", "ada@example.com", "--clear", "town"])
        .run(&["contact", "update", "ada@example.com", "--clear", "city", "--data", "-"])
        .run(&["contact", "create", "--email", "eve@example.com", "--clear", "phone"])
        .run(&["invoice", "update", "INV-0001", "--clear", "total"])
        .assert("clear");
    let contact = contact(&session);
    let fields = ["phone", "company_name", "city"].map(|field| contact[field].to_string());
    assert_eq!(fields, ["null", "null", r#""Hobart""#]);
}
