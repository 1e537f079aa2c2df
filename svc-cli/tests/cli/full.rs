//! Full disks: `/dev/full` stands in for a full stdout, a limit on the file size for a full file system.

#![cfg(target_os = "linux")]

use std::fs::OpenOptions;
use std::process::{Command, Output};

use crate::harness::{Session, text};

#[test]
fn a_result_that_cannot_be_printed_is_a_failure() {
    let session = Session::new();
    let account = session.account();
    session.contact(&account);
    let export = ["export", "contacts", "--account", &account];
    for args in [
        &["account", "list"][..],
        &["account", "list", "--json"],
        &["man"],
        &["completions", "bash"],
        &["listen", "--port", "0", "--secret", "whsec_NonLnCtITl6j9pp/nDn8yGuBAPIGksVBSCiosftiZ5o="],
        &export,
        &[&export[..], &["--json"]].concat(),
        &[&export[..], &["--format", "csv"]].concat(),
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = session.program(args).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains("No space left on device") && stderr.lines().count() == 1, "{args:?}: {stderr}");
    }
}

/// Runs a command that can write no file larger than this, in KiB. A write beyond the limit fails as on a full disk.
fn run_with_file_size_limit(session: &Session, kib: u64, args: &[&str]) -> Output {
    let program = session.program(args);
    let mut shell = Command::new("sh");
    // `ulimit -f` counts blocks of 512 bytes in POSIX shells.
    shell.args(["-c", &format!("trap '' XFSZ; ulimit -f {}; exec \"$@\"", kib * 2), "sh"]);
    shell.arg(program.get_program()).args(program.get_args()).current_dir(session.folder());
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell.output().unwrap()
}

fn size_in_kib(session: &Session, name: &str) -> u64 {
    std::fs::metadata(session.folder().join(name)).unwrap().len() / 1024
}

fn assert_database_has_no_problems(session: &Session) {
    assert_eq!(session.json(&["db", "check"]), serde_json::json!([]));
}

/// The groups of rows committed before the failure remain, and the import can be continued when there is space again.
#[test]
fn an_import_onto_a_full_disk_can_be_continued() {
    let session = Session::new();
    let account = session.account();
    let rows: String = (0..4_000).map(|n| format!("p{n}@example.com,{}\n", "x".repeat(200))).collect();
    session.file("people.csv", format!("email,company_name\n{rows}"));
    let import = ["import", "contacts", "--account", &account, "people.csv"];
    let output = run_with_file_size_limit(&session, 1_500, &import);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(
        stderr.starts_with("error: ") && !stderr.contains("line "),
        "the error is about the disk, not about a row: {stderr}"
    );
    let imported = session.count("contacts", &account);
    assert!(imported < 4_000 && imported.is_multiple_of(500), "{imported}");
    assert_database_has_no_problems(&session);
    let again = session.json(&import);
    assert_eq!((&again["there_already"], &again["refused"]), (&imported.into(), &0.into()));
    assert_eq!(session.count("contacts", &account), 4_000);
}

#[test]
fn a_write_onto_a_full_disk_changes_nothing() {
    let session = Session::new();
    session.demo();
    let before = session.json(&["account", "list"]);
    // The database file is already larger than the limit, and its write-ahead log starts empty.
    let output = run_with_file_size_limit(&session, 4, &["account", "create", "--name", "Ada"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(text(&output.stderr).starts_with("error: ") && output.stdout.is_empty(), "{output:?}");
    assert_eq!(session.json(&["account", "list"]), before);
    assert_database_has_no_problems(&session);
}

#[test]
fn a_backup_onto_a_full_disk_leaves_no_file() {
    let session = Session::new();
    session.demo();
    let half = size_in_kib(&session, "svc.db") / 2;
    let output = run_with_file_size_limit(&session, half, &["db", "backup", "backup.db"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let stderr = text(&output.stderr);
    assert!(stderr.starts_with("error: ") && stderr.contains("backup.db"), "{stderr}");
    let left: Vec<String> = std::fs::read_dir(session.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("backup"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(session.output(&["db", "backup", "backup.db"]).status.code(), Some(0));
    assert_database_has_no_problems(&session);
}

#[test]
fn a_report_onto_a_full_disk_fails_the_import() {
    let session = Session::new();
    let account = session.account();
    let rows: String = (0..1_000).map(|n| format!("no email {n}\n")).collect();
    session.file("people.csv", format!("email\n{rows}"));
    let full = ["import", "contacts", "--account", &account, "people.csv", "--report", "/dev/full"];
    let output = session.output(&full);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("The report /dev/full cannot be written: No space left"), "{stderr}");
}
