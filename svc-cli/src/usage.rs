//! Errors of the command line itself: what was wrong, what was probably meant, and the usage of that command.

use std::ffi::OsString;
use std::io::{self, Write as _};

use clap::CommandFactory as _;
use clap::builder::StyledStr;
use clap::error::ErrorKind;

use crate::cli::Cli;
use crate::{help, output};

/// Prints the help or the version that was asked for to stdout, or a usage error to stderr.
pub(crate) fn print(error: &clap::Error, args: &[OsString]) {
    match error.kind() {
        ErrorKind::DisplayHelp => return print_help(&help::for_args(args)),
        // A closed stdout is not a failure.
        ErrorKind::DisplayVersion => return drop(error.print()),
        _ => {}
    }
    let mut lines = lines(&error.render().ansi().to_string());
    let mut root = Cli::command();
    root.build();
    lines.push(help::command_of(&root, args).clone().render_usage().ansi().to_string());
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
