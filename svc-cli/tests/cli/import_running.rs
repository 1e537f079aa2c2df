//! Interrupted imports and concurrent imports.

use std::fmt::Write as _;
use std::ops::Range;
use std::process::{Child, Stdio};

use serde_json::Value;
use svc_core::values::{TenantId, Timestamp, parse_uuid};

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

/// Enough that an import is under way when a test has seen its first groups.
const MANY: u32 = 10_000;

/// Starts an import of a file with many rows, and waits for its first group.
fn start_long_import(session: &Session, account: &str) -> Child {
    session.file("people.csv", format!("email,first_name\n{}", rows(0..MANY)));
    let mut command = session.program(&["import", "contacts", "--account", account, "people.csv"]);
    let mut import = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let account = TenantId(parse_uuid(account).unwrap());
    session.with_store(async |store, _| {
        let events = async || {
            let events = store.read("test", account, async |tx, &account| {
                Ok(tx.events_after(account, Timestamp::from_micros(0), 1).await?)
            });
            events.await.unwrap()
        };
        while events().await.is_empty() {
            assert!(is_running(&mut import), "The import ended without a group.");
            std::thread::yield_now();
        }
    });
    import
}

fn is_running(import: &mut Child) -> bool {
    import.try_wait().unwrap().is_none()
}

/// Checks that a number of rows is that of whole groups of 500, and not all of the file.
fn assert_whole_groups(rows: u64) {
    assert!(rows >= 500 && rows.is_multiple_of(500) && rows < MANY.into(), "{rows}");
}

#[test]
fn a_killed_import_can_be_continued() {
    let session = Session::new();
    let account = session.account();
    let mut child = start_long_import(&session, &account);
    child.kill().unwrap();
    child.wait().unwrap();

    // A server may have committed one more group after that.
    let import = ["import", "contacts", "--account", &account, "people.csv"];
    let again = session.json(&import);
    let there_already = again["there_already"].as_u64().unwrap();
    assert_whole_groups(there_already);
    assert_eq!(again["added"], u64::from(MANY) - there_already);
    let once_more = session.json(&import);
    assert_eq!((&once_more["added"], &once_more["there_already"]), (&0.into(), &MANY.into()));
    assert_eq!(session.count("contacts", &account), MANY as usize);
}

#[test]
fn an_interrupted_import_says_how_to_continue() {
    let session = Session::new();
    let account = session.account();
    let child = start_long_import(&session, &account);
    std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let count = session.count("contacts", &account);
    assert_whole_groups(count as u64);
    let summary = format!("Rows so far: {count} read, {count} added, ");
    assert!(text(&output.stdout).starts_with(&summary), "{output:?}");
    assert!(text(&output.stderr).contains("Run the same command again to continue"), "{output:?}");
}

#[test]
fn other_programs_read_and_write_while_an_import_runs() {
    let session = Session::new();
    let account = session.account();
    let mut import = start_long_import(&session, &account);
    let created = session.json(&["contact", "create", "--account", &account, "--email", "eva@example.com"]);
    let id = created["id"].as_str().unwrap();
    assert_eq!(session.json(&["contact", "show", "--account", &account, id])["email"], "eva@example.com");
    assert!(is_running(&mut import));
    assert!(import.wait().unwrap().success());
    assert_eq!(session.count("contacts", &account), MANY as usize + 1);
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
