//! The `svc` command line: works on the database of the service, beside a running server.
//!
//! - [`cli`] says what can be typed; [`values`] reads the single values.
//! - `commands` has one file per noun, which calls svc-core and tells what came of it.
//! - `confirm` asks before what cannot be taken back.
//! - `output` is the only place that writes to stdout: JSON for programs, tables and sentences for people.
//! - `times` tells times and durations in words.
//! - `document` holds JSON that others wrote, number for number.
//! - [`exit`] has the exit codes and which error leads to which.
//!
//! ```
//! use clap::Parser as _;
//! let typed = ["svc", "tenant", "list", "--json", "--database-url", "sqlite://svc.db"];
//! assert!(svc_cli::cli::Cli::try_parse_from(typed).is_ok_and(|cli| cli.json));
//! ```
//!
//! It is a library so that the reference and the tests can reach [`cli::Cli`].

pub mod cli;
mod commands;
mod confirm;
mod document;
pub mod exit;
mod output;
mod times;
mod user;
pub mod values;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::exit::Exit;

/// Runs the program with its arguments, the first of which is its own name.
pub async fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match parse(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help that nobody reads any more is no failure.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() };
        }
    };
    let json = cli.json;
    let done = commands::run(cli).await.and_then(|outcome| outcome.print(json));
    match done {
        Ok(()) => Exit::Done.into(),
        Err(failure) => {
            output::error(failure.message());
            failure.exit().into()
        }
    }
}

/// Says why the program failed.
pub fn fail(message: &str) -> ExitCode {
    output::error(message);
    Exit::Failed.into()
}

/// A noun alone, like `svc` alone, is a question: its help is the answer, on stdout.
fn parse(mut args: Vec<OsString>) -> Result<cli::Cli, clap::Error> {
    cli::Cli::try_parse_from(&args).or_else(|error| match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            args.push("-h".into());
            cli::Cli::try_parse_from(&args)
        }
        _ => Err(error),
    })
}
