//! Errors of the command line itself: what was wrong, what was probably meant, and the usage of that command.

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::builder::StyledStr;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory as _};

pub(crate) use svc_core::input::similar;

use crate::cli::Cli;
use crate::{help, output};

/// Prints the help or the version that was asked for to stdout, or a usage error to stderr.
pub(crate) fn print(error: &clap::Error, args: &[OsString]) {
    match error.kind() {
        ErrorKind::DisplayHelp => return print_help(&help::of(args)),
        // A closed stdout is not a failure.
        ErrorKind::DisplayVersion => return drop(error.print()),
        _ => {}
    }
    let mut lines = lines(&error.render().ansi().to_string());
    let mut root = Cli::command();
    root.build();
    lines.push(named(&root, args).clone().render_usage().ansi().to_string());
    let mut err = anstream::AutoStream::auto(io::stderr().lock());
    // There is nowhere to report that stderr is closed.
    let _ = writeln!(err, "{}", lines.join("\n"));
}

/// Prints a help to stdout.
pub(crate) fn print_help(help: &StyledStr) {
    // A closed stdout is not a failure.
    let _ = output::write_now(&help.ansi().to_string());
}

/// Returns the lines of a message of clap without its usage, which leaves options out, and without its pointer to the help.
/// All possible values are listed only if none is similar to the one that was typed.
fn lines(message: &str) -> Vec<String> {
    let plain = |line: &str| anstream::adapter::strip_str(line).to_string();
    let has_tip = message.lines().any(|line| plain(line).trim_start().starts_with("tip:"));
    let is_kept = |line: &&str| {
        let line = plain(line);
        let line = line.trim_start();
        let is_noise = line.starts_with("For more information") || has_tip && line.starts_with("[possible values:");
        !line.is_empty() && !is_noise
    };
    let is_usage = |line: &&str| plain(line).starts_with("Usage:");
    message.lines().take_while(|line| !is_usage(line)).filter(is_kept).map(str::to_owned).collect()
}

/// Returns the command that the arguments name, as far as they name one.
pub(crate) fn named<'c>(root: &'c Command, args: &[OsString]) -> &'c Command {
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
            named(&root, &args).get_bin_name().unwrap_or("svc").to_owned()
        };
        assert_eq!(name("svc account list --jsn"), "svc account list");
        assert_eq!(name("svc --json contact ls"), "svc contact list");
        assert_eq!(name("svc account craete"), "svc account");
        assert_eq!(name("svc tenent"), "svc");
    }
}
