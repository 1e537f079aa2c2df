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
