//! Behaviour that all commands share.

use crate::harness::{Session, text};

#[test]
fn a_group_without_a_command_prints_its_help() {
    let mut session = Session::new();
    let with_env = session.program(&["tenant"]).env("SVC_DATABASE_URL", "sqlite://other.db").output().unwrap();
    assert_eq!(with_env.status.code(), Some(0));
    assert_eq!(with_env.stdout, session.output(&["tenant", "-h"]).stdout);
    session
        .run(&[])
        .run(&["key"])
        .run(&["--json"])
        .run(&["tenent"])
        .run(&["tenat", "create"])
        .run(&["tenant", "craete", "--name", "Ada"])
        .run(&["tenant", "list", "--jsn"])
        .assert("program");
}

#[test]
fn the_database_is_created_and_migrated() {
    let mut session = Session::new();
    session
        .run(&["db", "migrate"])
        .run(&["db", "migrate"])
        .run(&["db", "migrate", "--json"])
        .run(&["db", "migrate", "--database-url", "sqlite://other.db", "--json"])
        .assert("db");
}

#[test]
fn an_unreachable_database_and_an_invalid_url_have_different_exit_codes() {
    let mut session = Session::new();
    session
        .run(&["tenant", "list", "--database-url", "sqlite://missing/folder/svc.db"])
        .run(&["db", "migrate", "--database-url", "sqlite://missing/folder/svc.db"])
        .run(&["tenant", "list", "--database-url", "sqlite://."])
        .run(&["tenant", "list", "--database-url", "mysql://localhost/svc"])
        .run(&["tenant", "list", "--database-url", ""])
        .assert("database_url");
}

#[test]
fn the_environment_names_the_database() {
    let session = Session::new();
    session.tenant();
    let list = |url| {
        let output = session.program(&["tenant", "list", "--json"]).env("SVC_DATABASE_URL", url).output().unwrap();
        text(&output.stdout)
    };
    assert_eq!(list("sqlite://other.db"), "[]\n");
    assert!(list("sqlite://svc.db").contains("Harbour Plumbing"));
}
