//! Interrupted imports and concurrent imports.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::process::{Child, Stdio};

use serde_json::Value;

use super::harness::{Session, text};

/// Returns CSV rows. Every third row has no email, and every second of those has the same content as the one before it.
fn rows(numbers: Range<u32>) -> String {
    let mut rows = String::new();
    for n in numbers {
        match n % 3 {
            0 => writeln!(rows, ",Same {}", n / 6).unwrap(),
            _ => writeln!(rows, "p{n}@example.com,Person {n}").unwrap(),
        }
    }
    rows
}

/// Starts an import from stdin, sends it some rows and leaves stdin open.
fn start_import_from_stdin(session: &Session, account: &str, numbers: Range<u32>) -> Child {
    let mut command = session.program(&["import", "contacts", "--account", account, "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.as_mut().unwrap();
    write!(stdin, "email,first_name\n{}", rows(numbers)).unwrap();
    stdin.flush().unwrap();
    child
}

fn wait_for_contacts(session: &Session, account: &str, count: usize) {
    while session.count("contacts", account) < count {
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_import_can_be_continued() {
    let session = Session::new();
    let account = session.account();
    let mut child = start_import_from_stdin(&session, &account, 0..1_200);
    wait_for_contacts(&session, &account, 1_000);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(session.count("contacts", &account), 1_000, "two whole groups of 500");

    session.file("people.csv", format!("email,first_name\n{}", rows(0..2_000)));
    let import = ["import", "contacts", "--account", &account, "people.csv"];
    let again = session.json(&import);
    assert_eq!((&again["added"], &again["there_already"]), (&1_000.into(), &1_000.into()));
    let once_more = session.json(&import);
    assert_eq!((&once_more["added"], &once_more["there_already"]), (&0.into(), &2_000.into()));
    assert_eq!(session.count("contacts", &account), 2_000);
}

#[test]
fn an_interrupted_import_says_how_to_continue() {
    let session = Session::new();
    let account = session.account();
    let mut child = start_import_from_stdin(&session, &account, 0..600);
    // stdin stays open, as it does on a terminal.
    let stdin = child.stdin.take();
    wait_for_contacts(&session, &account, 500);
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("Rows so far: 500 read, 500 added, "), "{output:?}");
    assert!(text(&output.stderr).contains("Run the same command again to continue"), "{output:?}");
    assert_eq!(session.count("contacts", &account), 500);
}

#[test]
fn two_imports_of_one_file_add_each_row_once() {
    let session = Session::new();
    let account = session.account();
    session.file("people.csv", format!("email,first_name\n{}", rows(0..3_000)));
    let args = ["import", "contacts", "--account", &account, "people.csv", "--json"];
    let running: Vec<Child> = (0..2).map(|_| session.program(&args).stdout(Stdio::piped()).spawn().unwrap()).collect();
    let mut added = 0;
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&summary["rows"], &summary["refused"]), (&3_000.into(), &0.into()));
        added += summary["added"].as_u64().unwrap();
    }
    assert_eq!((added, session.count("contacts", &account)), (3_000, 3_000));
}
