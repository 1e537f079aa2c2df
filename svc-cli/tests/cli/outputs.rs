//! Every command has a snapshot of its output for people and for programs.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use svc_cli::cli::Cli;

/// Returns the commands that have no subcommands, such as `tenant create`.
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
    assert!(leaves.len() > 40 && leaves.contains(&"tenant create".to_owned()), "{leaves:?}");
    let missing: Vec<String> = leaves
        .iter()
        .flat_map(|leaf| [(leaf, false), (leaf, true)])
        .filter(|(leaf, json)| !has_snapshot(leaf, *json))
        .map(|(leaf, json)| format!("svc {leaf}{}", if json { " --json" } else { "" }))
        .collect();
    assert!(missing.is_empty(), "no snapshot has the output of {missing:?}");
}
