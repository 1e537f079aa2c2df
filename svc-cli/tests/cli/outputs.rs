//! Every command has a transcript of its output, for people and for programs.

use std::path::Path;

use clap::{Command, CommandFactory as _};
use svc_cli::cli::Cli;

/// The commands that do something, such as `tenant create`.
fn leaves(command: &Command, path: &str) -> Vec<String> {
    let inner = command.get_subcommands().flat_map(|inner| leaves(inner, &format!("{path} {}", inner.get_name())));
    if command.has_subcommands() { inner.collect() } else { vec![path.trim_start().to_owned()] }
}

/// What is in the transcripts: what was typed, and whether it was done.
fn entries() -> Vec<(String, bool)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/snapshots");
    let mut entries = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        entries.extend(text.split("\n$ svc ").skip(1).map(|entry| {
            let (typed, output) = entry.split_once('\n').unwrap_or((entry, ""));
            let failed = output.lines().any(|line| line.starts_with('[') && line.ends_with(']') && line.len() == 3);
            (format!("{typed} "), !failed && !output.trim().is_empty())
        }));
    }
    entries
}

#[test]
fn every_command_has_its_output_kept() {
    let entries = entries();
    let kept = |leaf: &str, json: bool| {
        let begins = format!("{leaf} ");
        entries.iter().any(|(typed, done)| *done && typed.starts_with(&begins) && typed.contains(" --json ") == json)
    };
    let leaves = leaves(&Cli::command(), "");
    assert!(leaves.len() > 40 && leaves.contains(&"tenant create".to_owned()), "{leaves:?}");
    let missing: Vec<String> = leaves
        .iter()
        .flat_map(|leaf| [(leaf, false), (leaf, true)])
        .filter(|(leaf, json)| !kept(leaf, *json))
        .map(|(leaf, json)| format!("svc {leaf}{}", if json { " --json" } else { "" }))
        .collect();
    assert!(missing.is_empty(), "no transcript has the output of {missing:?}");
}
