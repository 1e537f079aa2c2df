//! Every command has a snapshot of its output for people and for programs.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use svc_cli::cli::Cli;

use super::harness::{Session, text};

/// Returns the commands that have no subcommands, such as `account create`.
fn leaves(command: &Command, path: &str) -> Vec<String> {
    let inner = command.get_subcommands().flat_map(|inner| leaves(inner, &format!("{path} {}", inner.get_name())));
    if command.has_subcommands() { inner.collect() } else { vec![path.trim_start().to_owned()] }
}

/// A command in a snapshot.
struct Entry {
    command_line: String,
    /// Whether the command succeeded and printed something.
    has_result: bool,
}

/// Returns the commands in all snapshots.
fn entries() -> Vec<Entry> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots");
    let mut entries = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        entries.extend(text.split("\n$ svc ").skip(1).map(|entry| {
            let (command_line, output) = entry.split_once('\n').unwrap_or((entry, ""));
            let failed = output.lines().any(|line| line.starts_with('[') && line.ends_with(']') && line.len() == 3);
            Entry { command_line: format!("{command_line} "), has_result: !failed && !output.trim().is_empty() }
        }));
    }
    entries
}

#[test]
fn every_command_has_a_snapshot_for_people_and_for_programs() {
    let entries = entries();
    let has_snapshot = |leaf: &str, json: bool| {
        let prefix = format!("{leaf} ");
        entries.iter().any(|Entry { command_line, has_result }| {
            *has_result && command_line.starts_with(&prefix) && command_line.contains(" --json ") == json
        })
    };
    let leaves = leaves(&Cli::command(), "");
    assert!(leaves.len() > 40 && leaves.contains(&"account create".to_owned()), "{leaves:?}");
    let missing: Vec<String> = leaves
        .iter()
        .flat_map(|leaf| [(leaf, false), (leaf, true)])
        .filter(|(leaf, json)| !has_snapshot(leaf, *json))
        .map(|(leaf, json)| format!("svc {leaf}{}", if json { " --json" } else { "" }))
        .collect();
    assert!(missing.is_empty(), "no snapshot has the output of {missing:?}");
}

#[cfg(unix)]
#[test]
fn a_key_file_that_others_can_read_is_warned_about() {
    use std::os::unix::fs::PermissionsExt as _;

    let session = Session::new();
    let list = ["account", "list", "--json"];
    let stderr = |args: &[&str]| text(&session.output(args).stderr);
    assert_eq!(stderr(&list), "");
    assert_eq!(stderr(&list), "", "the key file was made for its owner");
    let path = session.folder().join("svc.db.key");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let warning = "warning: Other users may read or change the secret key in svc.db.key; run `chmod 600 svc.db.key`.\n";
    assert_eq!(stderr(&list), warning);
    assert_eq!(stderr(&["db", "check"]), warning);
    assert_eq!(stderr(&["completions", "bash"]), "", "the command opens no database");
    let key = session.read_file("svc.db.key");
    let mut program = session.program(&list);
    let output = program.env("SVC_SECRET_KEY", key.trim()).output().unwrap();
    assert_eq!(text(&output.stderr), "", "the file is not used");
}

#[test]
fn names_cannot_control_the_terminal() {
    let session = Session::new();
    let name = "Harbour \u{202e}gnibmulP\u{2069}\u{9b}2J";
    let id = session.write(name, async |tx, &name| {
        let account = svc_core::accounts::tenants::create(
            tx,
            svc_core::accounts::tenants::TenantCreate {
                name: name.to_owned(),
                time_zone: svc_core::values::TimeZone::parse("UTC").unwrap(),
                currency: svc_core::values::Currency::parse("AUD").unwrap(),
                developer_access: svc_core::accounts::tenants::DeveloperAccess::Approved,
            },
        );
        Ok(account.await?.id.to_string())
    });
    for args in [&["account", "list"][..], &["account", "show", &id], &["account", "approve", &id]] {
        let shown = text(&session.output(args).stdout);
        assert!(shown.contains(r"Harbour \u{202e}gnibmulP\u{2069}\u{9b}2J"), "{shown}");
        let output = session.output(&[args, &["--json"]].concat());
        assert!(text(&output.stdout).contains(r"Harbour \u202egnibmulP\u2069\u009b2J"));
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(if json.is_array() { &json[0]["name"] } else { &json["name"] }, name);
    }
    let contact = "{\"email\": \"ada@example.com\", \"first_name\": \"\u{202e}adA\"}";
    session.create::<svc_core::resources::contacts::Contact>(&id, contact);
    for format in [&["--json"][..], &["--format", "ndjson"]] {
        let shown = text(&session.output(&[&["export", "contacts", "--account", &id], format].concat()).stdout);
        assert!(shown.contains(r#""first_name":"\u202eadA""#), "{shown}");
    }
}

#[test]
fn lists_are_printed_as_csv() {
    let mut session = Session::new();
    let account = session.account();
    session.create::<svc_core::resources::contacts::Contact>(
        &account,
        r#"{"email": "ada@example.com", "first_name": "Ada, \"Countess\"", "company_name": "=1+1"}"#,
    );
    session
        .run(&["contact", "list", "--output", "csv"])
        .run(&["contact", "list", "--email", "nobody@example.com", "--output", "csv"])
        .run(&["account", "show", &account, "--output", "csv"])
        .run(&["account", "show", &account, "--output", "json"])
        .run(&["account", "list", "--output", "cvs"])
        .assert("output_csv");
    let output = session.output(&["contact", "list", "--json"]);
    assert!(text(&output.stdout).ends_with("]\n") && !text(&output.stdout).ends_with("\n\n"));
}
