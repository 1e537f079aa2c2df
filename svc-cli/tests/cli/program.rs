//! What holds for every command.

use std::process::Stdio;

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
        .run(&["tenent"])
        .run(&["tenant", "crate"])
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

#[test]
fn several_may_start_on_a_new_database_at_once() {
    let session = Session::new();
    let create = ["tenant", "create", "--name", "Harbour Plumbing"];
    let running: Vec<_> = (0..8).map(|_| session.program(&create).stdout(Stdio::null()).spawn().unwrap()).collect();
    for mut child in running {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(session.json(&["tenant", "list"]).as_array().unwrap().len(), 8);
}

#[test]
fn completions_are_complete() {
    let session = Session::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = session.output(&["completions", shell]).stdout;
        assert!(text(&script).contains("rotate"), "{shell}");
        let json = session.json(&["completions", shell]);
        assert_eq!((json["shell"].as_str(), json["script"].as_str()), (Some(shell), Some(text(&script).as_str())));
    }
    assert_eq!(session.output(&["completions", "tcsh"]).status.code(), Some(2));
    assert!(!session.output(&["completions", "bash"]).stdout.is_empty());
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let session = Session::new();
    for args in [&["--json", "completions", "zsh", "--json"][..], &["--help"], &["tenant", "create", "--name", "Ada"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = session.program(args).stdout(writer).stderr(Stdio::piped()).spawn().unwrap().wait_with_output();
        let output = output.unwrap();
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""), "{args:?}");
    }
    assert_eq!(session.json(&["tenant", "list"]).as_array().unwrap().len(), 1);
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let session = Session::new();
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = session.program(&["tenant", "list", "--json"]).stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("could not be printed"));
}

#[test]
fn colour_is_for_those_who_want_it() {
    let session = Session::new();
    session.tenant();
    let coloured = |names: &[&str]| {
        let mut program = session.program(&["tenant", "list"]);
        program.envs(names.iter().map(|name| (name, "1")));
        text(&program.output().unwrap().stdout).contains('\u{1b}')
    };
    assert!(!coloured(&[]), "a pipe is no terminal");
    assert!(coloured(&["CLICOLOR_FORCE"]));
    assert!(!coloured(&["CLICOLOR_FORCE", "NO_COLOR"]));
}
