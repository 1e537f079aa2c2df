//! Records are found by a text, and named by what they are called.

use super::harness::{Session, text};

/// Creates an account with two contacts of one name, and an invoice of another contact. Returns the id of the last.
fn harbour(session: &Session) -> String {
    session.id(&["account", "create", "--name", "Harbour Plumbing"]);
    for email in ["ada@example.com", "ada@example.org"] {
        session.id(&["contact", "create", "--email", email, "--first-name", "Ada", "--last-name", "Lovelace"]);
    }
    let contact =
        session.id(&["contact", "create", "--email", "bob@example.com", "--first-name", "Bob", "--city", "Cafe"]);
    session.id(&["invoice", "create", "--contact", "Bob", "--total", "40"]);
    session.id(&["quote", "create", "--contact", "BOB@example.com", "--total", "50"]);
    session.id(&["job", "create", "--title", "100% 'new' boiler"]);
    contact
}

#[test]
fn records_are_found_by_a_text() {
    let mut session = Session::new();
    harbour(&session);
    session
        .run(&["find", "lovelace"])
        .run(&["find", "inv-0001"])
        .run(&["find", "example.org", "--json"])
        .run(&["find", "0% 'new' b"])
        .run(&["find", "%%%"])
        .run(&["find", "nobody OR ada"])
        .run(&["find", "ab"])
        .run(&["find", ""])
        .run(&["find", "ada", "--account", "nobody"])
        .assert("find");
}

#[test]
fn a_record_is_named_by_its_number_address_or_name() {
    let mut session = Session::new();
    let contact = harbour(&session);
    let shown = |args: &[&str]| session.json(args)["id"].as_str().map(str::to_owned);
    for name in ["Bob", "bob", "bob@example.com", "BOB@EXAMPLE.COM"] {
        assert_eq!(shown(&["contact", "show", name]), Some(contact.clone()), "{name}");
    }
    let invoice = session.json(&["invoice", "show", "inv-0001"]);
    assert_eq!(invoice["contact_id"], contact.as_str());
    assert_eq!(session.json(&["quote", "show", "QUO-0001"])["contact_id"], contact.as_str());
    assert_eq!(session.json(&["job", "show", "JOB-0001"])["title"], "100% 'new' boiler");
    session
        .run(&["contact", "show", "Ada Lovelace"])
        .run(&["contact", "show", "cafe"])
        .run(&["contact", "show", "nobody"])
        .run(&["invoice", "void", "INV-000", "--yes"])
        .run(&["invoice", "pay", "INV-0001", "--amount", "10"])
        .run(&["webhook", "show", "hook"])
        .assert("find_named");
}

#[test]
fn an_account_is_named_by_its_name() {
    let mut session = Session::new();
    harbour(&session);
    session.id(&["account", "create", "--name", "Hill Electric"]);
    let contacts = |account: &str| session.json(&["contact", "list", "--account", account]).as_array().unwrap().len();
    assert_eq!((contacts("harbour plumbing"), contacts("Hill Electric")), (3, 0));
    let output = session.output(&["contact", "show", "Bob"]);
    assert!(text(&output.stderr).contains("has 2 accounts; name one"), "{output:?}");
    session.id(&["account", "create", "--name", "Hill Electric"]);
    session
        .run(&["contact", "list", "--account", "Hill Electric"])
        .run(&["account", "show", "Hill"])
        .assert("find_accounts");
}

#[test]
fn the_list_of_each_kind_is_searched() {
    let mut session = Session::new();
    harbour(&session);
    session.id(&[
        "booking",
        "create",
        "--contact",
        "Bob",
        "--service-name",
        "Gutters",
        "--start",
        "2026-03-14T09:00:00Z",
    ]);
    session
        .run(&["contact", "list", "--search", "lovelace"])
        .run(&["contact", "list", "--search", "lovelace", "--limit", "1"])
        .run(&["contact", "list", "--search", "example", "--email", "bob@example.com"])
        .run(&["invoice", "list", "--search", "inv-0001"])
        .run(&["invoice", "list", "--search", "inv-", "--status", "paid"])
        .run(&["quote", "list", "--search", "quo"])
        .run(&["job", "list", "--search", "boiler"])
        .run(&["booking", "list", "--search", "gutter"])
        .run(&["contact", "list", "--search", "ada", "--updated-since", "7d"])
        .run(&["webhook", "list", "--search", "ada"])
        .assert("find_lists");
}
