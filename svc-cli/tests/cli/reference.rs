//! Generates `REFERENCE.md`, which contains the help of every command, and checks that it is up to date.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _};
use svc_cli::cli::Cli;
use svc_cli::help;

const INTRODUCTION: &str = "\
# `svc` command reference

The help of every command, written by the test `the_reference_is_up_to_date`. Every command has `--help` (`-h` for a summary), and
takes the [options of all commands](#svc-help-options).

Commands that have these arguments describe them no further, and name the options after *Also*:

| Argument | Meaning |
|---|---|
";

/// An argument that so many commands have in the same words is described once.
const COMMON: usize = 4;

#[test]
fn the_reference_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("REFERENCE.md");
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut counts = BTreeMap::new();
    count(&root, &mut counts);
    counts.retain(|_, count| *count >= COMMON);
    // Of two with one name, the rarer one is described where it is.
    let most = counts.clone();
    counts.retain(|(name, _), count| most.iter().all(|((other, _), others)| other != name || others <= count));
    let mut reference = INTRODUCTION.to_owned();
    for (name, help) in counts.keys() {
        writeln!(reference, "| `{}` | {help} |", name.replace('|', " or ")).unwrap();
    }
    describe(&root, &|arg| counts.contains_key(&described(arg)), &mut reference);
    section("svc help options", &help::options(Cli::command().term_width(100)), &mut reference);
    section("svc help imports", &help::imports(Cli::command().term_width(100)), &mut reference);
    if std::fs::read_to_string(&path).is_ok_and(|committed| committed == reference) {
        return;
    }
    std::fs::write(&path, reference).unwrap();
    panic!("REFERENCE.md was out of date and has been regenerated; review the difference and commit it");
}

/// Returns the name of an argument with its value, and its help.
fn described(arg: &Arg) -> (String, String) {
    let shown = help::with_whole_help(arg.clone());
    let defaults = arg.get_default_values().iter().map(|value| format!(" [default: {}]", value.to_string_lossy()));
    let help = shown.get_help().map(ToString::to_string).unwrap_or_default();
    (arg.to_string(), help + &defaults.collect::<String>())
}

/// Counts the commands that have an argument with the same description.
fn count(command: &Command, counts: &mut BTreeMap<(String, String), usize>) {
    let own =
        command.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set() && arg.get_id() != "help");
    for arg in own {
        *counts.entry(described(arg)).or_default() += 1;
    }
    command.get_subcommands().filter(|inner| inner.get_name() != "help").for_each(|inner| count(inner, counts));
}

fn describe(command: &Command, is_common: &impl Fn(&Arg) -> bool, reference: &mut String) {
    let shown = help::in_reference(command, is_common);
    section(command.get_bin_name().unwrap_or("svc"), &shown, reference);
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        describe(inner, is_common, reference);
    }
}

fn section(name: &str, help: &StyledStr, reference: &mut String) {
    let help = help.to_string();
    let help: Vec<&str> = help.lines().map(str::trim_end).collect();
    write!(reference, "\n## `{name}`\n\n```text\n{}\n```\n", help.join("\n").trim()).unwrap();
}

/// `svc` itself lists all commands.
#[test]
fn the_help_of_every_command_fits_forty_lines() {
    fn check(command: &Command, long: &mut Vec<String>) {
        for help in [help::short(command), help::long(command)] {
            let (text, name) = (help.to_string(), command.get_bin_name().unwrap_or_default());
            let lines = text.trim_end().lines().count();
            if lines > 40 {
                long.push(format!("{name}: {lines} lines"));
            }
            assert!(
                text.lines()
                    .all(|line| line.chars().count() <= 100 || line.starts_with("  ") || line.starts_with("Usage:")),
                "{text}"
            );
            assert!(text.trim_end().ends_with("Global options: svc help options"), "{text}");
            assert!(!text.contains("--database-url <"), "{text}");
        }
        command.get_subcommands().filter(|inner| inner.get_name() != "help").for_each(|inner| check(inner, long));
    }
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut long = Vec::new();
    root.get_subcommands().filter(|inner| inner.get_name() != "help").for_each(|inner| check(inner, &mut long));
    assert!(long.is_empty(), "{long:#?}");
}

#[test]
fn every_command_has_an_example() {
    fn check(command: &Command) {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let has_heading =
            help.starts_with("Example") || command.get_name() == "svc" && help.starts_with("First steps:");
        assert!(has_heading && help.contains("\n  svc "), "{}", command.get_name());
        command.get_subcommands().for_each(check);
    }
    check(&Cli::command());
}

#[test]
fn options_that_must_be_given_are_marked() {
    fn check(command: &Command, marked: &mut usize) {
        let helps = [help::short(command), help::long(command)].map(|help| help.to_string());
        let options = command.get_arguments().filter(|arg| !arg.is_positional() && arg.is_required_set());
        let count = options.count();
        for help in helps {
            let words: Vec<&str> = help.split_whitespace().collect();
            let marks = words.iter().filter(|word| **word == "[required]").count();
            assert!(marks >= count, "{help}");
            *marked += marks;
        }
        command.get_subcommands().filter(|inner| inner.get_name() != "help").for_each(|inner| check(inner, marked));
    }
    let mut root = Cli::command().term_width(100);
    root.build();
    let mut marked = 0;
    check(&root, &mut marked);
    assert!(marked > 20, "{marked}");
    let create = root.find_subcommand("booking").unwrap().find_subcommand("create").unwrap();
    let help = help::long(create).to_string();
    for option in ["--contact", "--service-name", "--start-time"] {
        let text = help.split(&format!("{option} <")).nth(1).unwrap();
        let text = text.split("\n      --").next().unwrap();
        assert!(text.contains("[required]"), "{option}: {text}");
    }
    let optional = help.split("--notes <").nth(1).unwrap().split("\n      --").next().unwrap();
    assert!(!optional.contains("[required]"), "{optional}");
}

/// Tables show the ends of ids, since records of the same minute begin alike.
#[test]
fn the_ids_of_examples_are_the_ends_that_tables_show() {
    fn check(command: &Command, found: &mut usize) {
        let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let is_hex = |word: &&str| word.len() >= 6 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        for id in examples.split_whitespace().filter(is_hex) {
            assert_eq!(id.len(), 12, "{}: {id}", command.get_name());
            *found += 1;
        }
        assert!(!examples.contains("0195"), "{examples}");
        command.get_subcommands().for_each(|inner| check(inner, found));
    }
    let mut found = 0;
    check(&Cli::command(), &mut found);
    assert!(found > 30, "{found}");
}

#[test]
fn help_names_options_in_place_of_fields() {
    fn check(command: &Command) {
        for arg in command.get_arguments() {
            for text in [arg.get_help(), arg.get_long_help()].into_iter().flatten().map(ToString::to_string) {
                let named = command.get_arguments().find(|other| text.contains(&format!("`{}`", other.get_id())));
                let named = named.filter(|other| other.get_help_heading() == Some("Fields"));
                assert!(named.is_none(), "{} --{}: {text}", command.get_name(), arg.get_id());
                assert!(!text.contains("in RFC 3339"), "{text}");
            }
        }
        command.get_subcommands().for_each(check);
    }
    let mut root = Cli::command();
    root.build();
    check(&root);
}

#[test]
fn every_help_text_is_a_phrase_for_people() {
    fn check(command: &Command) {
        let name = command.get_bin_name().unwrap_or_default();
        let is_phrase = |text: &str| text.starts_with(|c: char| c.is_uppercase() || c == '\'') && text.contains(' ');
        let texts = [command.get_about(), command.get_long_about()].into_iter().flatten();
        let options = command.get_arguments().flat_map(|option| [option.get_help(), option.get_long_help()]).flatten();
        for text in texts.chain(options).map(ToString::to_string) {
            assert!(is_phrase(&text), "{name}: {text:?}");
            let speaks_of_json =
                ["Null clears", "Null if", "or null", "as null"].iter().any(|words| text.contains(words));
            assert!(!speaks_of_json, "{name}: {text:?}");
        }
        assert!(command.get_about().is_some(), "{name} has no help");
        command.get_subcommands().for_each(check);
    }
    let mut root = Cli::command();
    root.build();
    check(&root);
}
