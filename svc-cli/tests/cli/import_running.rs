//! Imports that are broken off, and imports side by side.

use std::fmt::Write as _;
use std::io::Write as _;
use std::ops::Range;
use std::process::{Child, Stdio};

use serde_json::Value;

use crate::harness::{Session, text};

/// Rows of CSV: every third has no email, and of those every second says the same as the one before.
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

/// An import from stdin that has got some rows and waits for more.
fn fed(session: &Session, tenant: &str, numbers: Range<u32>) -> Child {
    let mut command = session.program(&["import", "contacts", "--tenant", tenant, "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stdin = child.stdin.as_mut().unwrap();
    write!(stdin, "email,first_name\n{}", rows(numbers)).unwrap();
    stdin.flush().unwrap();
    child
}

fn until_there_are(session: &Session, tenant: &str, count: usize) {
    while session.count("contacts", tenant) < count {
        std::thread::yield_now();
    }
}

#[test]
fn a_killed_import_is_run_again() {
    let session = Session::new();
    let tenant = session.tenant();
    let mut child = fed(&session, &tenant, 0..1_200);
    until_there_are(&session, &tenant, 1_000);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(session.count("contacts", &tenant), 1_000, "two groups of 500, and no half of one");

    session.file("people.csv", format!("email,first_name\n{}", rows(0..2_000)));
    let import = ["import", "contacts", "--tenant", &tenant, "people.csv"];
    let again = session.json(&import);
    assert_eq!((&again["added"], &again["there_already"]), (&1_000.into(), &1_000.into()));
    let once_more = session.json(&import);
    assert_eq!((&once_more["added"], &once_more["there_already"]), (&0.into(), &2_000.into()));
    assert_eq!(session.count("contacts", &tenant), 2_000);
}

#[test]
fn an_interrupted_import_says_how_to_go_on() {
    let session = Session::new();
    let tenant = session.tenant();
    let mut child = fed(&session, &tenant, 0..600);
    // It stays open: whoever types there wants an answer.
    let stdin = child.stdin.take();
    until_there_are(&session, &tenant, 500);
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).starts_with("Rows so far: 500 read, 500 added, "), "{output:?}");
    assert!(text(&output.stderr).contains("run the same command again to go on"), "{output:?}");
    assert_eq!(session.count("contacts", &tenant), 500);
}

#[test]
fn two_imports_of_one_file_add_each_row_once() {
    let session = Session::new();
    let tenant = session.tenant();
    session.file("people.csv", format!("email,first_name\n{}", rows(0..3_000)));
    let args = ["import", "contacts", "--tenant", &tenant, "people.csv", "--json"];
    let running: Vec<Child> = (0..2).map(|_| session.program(&args).stdout(Stdio::piped()).spawn().unwrap()).collect();
    let mut added = 0;
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!((&summary["rows"], &summary["refused"]), (&3_000.into(), &0.into()));
        added += summary["added"].as_u64().unwrap();
    }
    assert_eq!((added, session.count("contacts", &tenant)), (3_000, 3_000));
}
