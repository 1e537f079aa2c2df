//! What holds for every command.

use crate::harness::{Session, text};

#[test]
fn a_noun_alone_answers_with_its_help() {
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
fn the_database_is_made_and_migrated() {
    let mut session = Session::new();
    session
        .run(&["db", "migrate"])
        .run(&["db", "migrate"])
        .run(&["db", "migrate", "--json"])
        .run(&["db", "migrate", "--database-url", "sqlite://other.db", "--json"])
        .assert("db");
}

#[test]
fn a_database_out_of_reach_is_told_apart_from_a_bad_url() {
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
