//! `REFERENCE.md` is the help of every command.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Command, CommandFactory as _};
use svc_cli::cli::Cli;

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("REFERENCE.md");
    let mut reference = "# `svc`\n\nThe help of every command. Made by the test `reference`; do not edit.\n".to_owned();
    let mut root = Cli::command().term_width(100);
    root.build();
    describe(&mut root, &mut reference);
    if std::fs::read_to_string(&path).is_ok_and(|kept| kept == reference) {
        return;
    }
    std::fs::write(&path, reference).unwrap();
    panic!("REFERENCE.md was out of date and is made anew; look at the difference and commit it");
}

fn describe(command: &mut Command, reference: &mut String) {
    let name = command.get_bin_name().unwrap_or("svc").to_owned();
    let help = command.render_long_help().to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(reference, "\n## `{name}`\n\n```text\n{}\n```\n", help.join("\n").trim_end()).unwrap();
    for inner in command.get_subcommands_mut().filter(|inner| inner.get_name() != "help") {
        describe(inner, reference);
    }
}

#[test]
fn every_command_has_an_example() {
    fn check(command: &Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let begins = help.starts_with("Example") || command.get_name() == "svc" && help.starts_with("First steps:");
        assert!(begins && help.contains("\n  svc "), "{}", command.get_name());
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}
