//! The help of commands: what `--help`, `-h`, `svc help COMMAND` and REFERENCE.md show.
//!
//! The help of a command has its own options only, one after the other without blank lines, so that it fits a screen. The
//! options that all commands have are a topic of their own, `svc help options`.

use std::ffi::OsString;

use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _};

use crate::cli::Cli;
use crate::exit;
use crate::options::{split_mark, with_marks};

/// The line that ends the help of a command.
const GLOBAL_OPTIONS: &str = "Global options: svc help options";

/// The line that leads from the help of `svc import`, which has too much to say for a screen, to its topic.
const IMPORTS: &str = "How files are read: svc help imports";

/// Returns the topic that the arguments ask for, which is not a command: that of `svc help options` or `svc help imports`.
pub(crate) fn topic(args: &[OsString]) -> Option<StyledStr> {
    match args.get(1..)? {
        [help, topic] if help == "help" && topic == "options" => Some(options(Cli::command())),
        [help, topic] if help == "help" && topic == "imports" => Some(imports(Cli::command())),
        _ => None,
    }
}

/// Returns the help that the arguments ask for. `-h` asks for the short one.
pub(crate) fn for_args(args: &[OsString]) -> StyledStr {
    let mut root = Cli::command();
    root.build();
    let words = args.iter().filter(|word| *word != "help").cloned().collect::<Vec<_>>();
    let command = command_of(&root, &words);
    let is_long = args.iter().any(|word| word == "--help" || word == "help");
    if is_long { long(command) } else { short(command) }
}

/// Renders the help of a command, whose root has been built, without the text that follows the first sentence.
pub fn short(command: &Command) -> StyledStr {
    shown(command).render_help()
}

/// Renders the help of a command, whose root has been built: the whole one, unless that is a topic.
pub fn long(command: &Command) -> StyledStr {
    match command.get_name() {
        "import" => short(command),
        _ => whole(command),
    }
}

/// Renders how files are imported: the whole help of `svc import`.
pub fn imports(mut root: Command) -> StyledStr {
    root.build();
    root.find_subcommand("import").map(whole).unwrap_or_default()
}

/// Renders the help of a command, whose root has been built, as a part of a page that describes the arguments that `is_common`
/// selects once. The help has their names alone.
pub fn in_reference(command: &Command, is_common: impl Fn(&Arg) -> bool) -> StyledStr {
    let about = command.get_long_about().or_else(|| command.get_about()).cloned().unwrap_or_default();
    let shown = with_marks(command.clone()).about(about).disable_help_flag(true).disable_help_subcommand(true);
    if command.get_name() == "svc" {
        return shown.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg }).render_help();
    }
    // The list of commands says what it is for, and its commands follow, each with what it does.
    let inner: Vec<&str> = command.get_subcommands().map(Command::get_name).filter(|name| *name != "help").collect();
    if !inner.is_empty() {
        let usage = format!("{} <{}>", command.get_bin_name().unwrap_or_default(), inner.join("|"));
        let about = command.get_long_about().cloned().unwrap_or_default();
        let shown = shown.about(about).override_usage(usage).after_help("").mut_args(|arg| arg.hide(true));
        return shown.mut_subcommands(|inner| inner.hide(true)).render_help();
    }
    let common = command.get_arguments().filter(|arg| is_common(arg)).filter_map(|arg| arg.get_long());
    let common = common.map(|name| format!("--{name}")).collect::<Vec<_>>().join(", ");
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let shown = match common.as_str() {
        "" => shown,
        common => shown.after_help(format!("Also: {common}\n\n{examples}")),
    };
    let hides = |arg: &Arg| arg.is_global_set() || arg.get_id() == "help" || is_common(arg);
    shown.mut_args(|arg| if hides(&arg) { arg.hide(true) } else { with_whole_help(arg) }).render_help()
}

fn whole(command: &Command) -> StyledStr {
    let about = command.get_long_about().or_else(|| command.get_about()).cloned().unwrap_or_default();
    shown(command).about(about).mut_args(with_whole_help).render_help()
}

/// Renders the options that every command has, the environment variables and the exit codes.
pub fn options(root: Command) -> StyledStr {
    let about = "Every command takes these options, before or after its own.";
    let command = root.about(about).help_template("{about-with-newline}\n{all-args}{after-help}");
    let mut command = command.after_help(exit::LONG_HELP).mut_args(with_whole_help).disable_help_flag(true);
    command = command.disable_version_flag(true);
    // Subcommands are those of `svc`, and no option.
    command.mut_subcommands(|inner| inner.hide(true)).disable_help_subcommand(true).render_help()
}

/// Returns a command as its help shows it: with the way to the options that all commands have in place of them.
fn shown(command: &Command) -> Command {
    let marked = with_marks(command.clone());
    let hidden = marked.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg });
    let help = command.get_after_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
    match command.get_name() {
        "svc" => hidden,
        "import" => hidden.after_help(format!("{help}{IMPORTS}\n{GLOBAL_OPTIONS}")),
        _ => hidden.after_help(format!("{help}{GLOBAL_OPTIONS}")),
    }
}

/// Returns an option with its long help, and what each of its possible values is, in one paragraph.
pub fn with_whole_help(arg: Arg) -> Arg {
    let help = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.replace("\n\n", " ");
    let (help, mark) = split_mark(&help);
    let values = arg.get_possible_values();
    let described: Vec<String> = values
        .iter()
        .filter(|value| !value.is_hide_set())
        .filter_map(|value| Some(format!("{}: {}", value.get_name(), value.get_help()?)))
        .collect();
    let arg = arg.hide_short_help(false);
    if described.is_empty() || arg.is_hide_possible_values_set() {
        return arg.help(format!("{help}{mark}"));
    }
    let end = if help.ends_with('.') { "" } else { "." };
    arg.help(format!("{help}{end} {}{mark}", described.join("; "))).hide_possible_values(true)
}

/// Returns the command that the arguments name, as far as they name one.
pub(crate) fn command_of<'c>(root: &'c Command, args: &[OsString]) -> &'c Command {
    let words = args.iter().skip(1).filter_map(|arg| arg.to_str());
    words.fold(root, |command, word| command.find_subcommand(word).unwrap_or(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_is_that_of_the_command_that_was_named() {
        let mut root = Cli::command();
        root.build();
        let name = |line: &str| {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            command_of(&root, &args).get_bin_name().unwrap_or("svc").to_owned()
        };
        assert_eq!(name("svc account list --jsn"), "svc account list");
        assert_eq!(name("svc --json contact ls"), "svc contact list");
        assert_eq!(name("svc account craete"), "svc account");
        assert_eq!(name("svc tenent"), "svc");
    }
}
