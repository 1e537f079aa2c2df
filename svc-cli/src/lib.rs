//! The `svc` command line, which manages an svc database while servers use it.
//!
//! This package is a library as well as a program, so that the reference generator and the tests can use [`cli::Cli`]:
//!
//! ```
//! use clap::Parser as _;
//! let typed = ["svc", "account", "list", "--json", "--database-url", "sqlite://svc.db"];
//! assert!(svc_cli::cli::Cli::try_parse_from(typed).is_ok_and(|cli| cli.json));
//! ```
//!
//! # Modules
//!
//! - [`cli`] has the options of all commands, and runs the command. `commands` has a file for each group of commands: their
//!   options, help, and what they do. Each calls the platform API and formats the result.
//! - `values` and `ids` parse the values of options. `fields` makes options of the fields of API inputs,
//!   and `options` names and marks them.
//! - `session` opens what a command works on. `backend` says what that is: a database, or a `server` elsewhere. `service`
//!   calls the platform API of either. `profiles` keeps servers and their keys.
//! - `confirm` asks before what cannot be undone. `clock_guard` refuses writes under a clock that is far ahead.
//! - `output` writes results to stdout: JSON for programs, tables and sentences for people. `record` describes what people see
//!   of a record, and `table` formats tables that fit the terminal.
//! - `times` formats times and durations for people.
//! - `document` holds JSON of servers and files, with its exact numbers.
//! - [`help`] renders the help of commands. `usage` words errors of the command line itself, `suggestions` says what was meant,
//!   and `kinds` checks event kinds, which are also in a file.
//! - `exit` defines the exit codes and maps errors to them.

mod backend;
pub mod cli;
mod clock_guard;
mod commands;
mod confirm;
mod document;
mod exit;
mod fields;
pub mod help;
mod ids;
mod kinds;
mod options;
mod output;
mod profiles;
mod public_url;
mod record;
mod server;
mod service;
mod session;
mod suggestions;
mod table;
mod times;
mod usage;
mod user;
mod values;

use std::ffi::{OsStr, OsString};
use std::pin::Pin;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, CommandFactory as _, FromArgMatches as _};

use crate::exit::Exit;

/// Runs the program with the arguments of the process, and returns its exit code.
pub fn main() -> ExitCode {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            // A runtime polls what it runs in three places. Behind a pointer, all commands are compiled once and not thrice.
            let run: Pin<Box<dyn Future<Output = ExitCode>>> = Box::pin(run(std::env::args_os()));
            runtime.block_on(run)
        }
        Err(error) => {
            output::error(&format!("the program cannot start: {error}"));
            Exit::Failed.into()
        }
    }
}

/// Runs the program with its arguments, the first of which is the program's name, and returns its exit code.
pub async fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    if let Some(text) = help::topic(&args) {
        usage::print_help(&text);
        return Exit::Success.into();
    }
    let cli = match parse(args.clone()) {
        Ok(cli) => cli,
        Err(error) => {
            let error = suggestions::corrected(error, &args);
            usage::print(&error, &args);
            return if error.use_stderr() { Exit::Usage.into() } else { Exit::Success.into() };
        }
    };
    let output = cli.output();
    let result = cli.run().await.and_then(|outcome| outcome.print(output));
    match result {
        Ok(()) => Exit::Success.into(),
        Err(failure) => {
            output::error(failure.message());
            failure.exit().into()
        }
    }
}

/// Parses the arguments. `svc` or a group such as `svc account` without a command prints its help to stdout and
/// succeeds.
fn parse(mut args: Vec<OsString>) -> Result<cli::Cli, clap::Error> {
    let command = without_empty_variables(cli::Cli::command());
    let matches = command.clone().try_get_matches_from(&args).or_else(|error| match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            args.push("-h".into());
            command.try_get_matches_from(&args)
        }
        _ => Err(error),
    })?;
    let mut cli = cli::Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut cli::Cli::command()))?;
    cli.backend.sources = backend::Sources::from_matches(&matches);
    kinds::check(&cli, &args)?;
    check_account(&matches)?;
    Ok(cli)
}

/// Refuses an account that would have no effect. One of the environment is for all commands, so no conflict of the options
/// can say this.
fn check_account(matches: &ArgMatches) -> Result<(), clap::Error> {
    let (command, with) = match matches.subcommand() {
        Some(("dashboard", link)) => (link.subcommand().map(|(_, link)| link), ["operator", "--operator"]),
        Some(("listen", listen)) => (Some(listen), ["secrets", "--secret"]),
        _ => return Ok(()),
    };
    let is_given = |id| command.is_some_and(|command| command.value_source(id) == Some(ValueSource::CommandLine));
    if is_given("account") && is_given(with[0]) {
        let reason = format!("--account has no effect with {}; omit it", with[1]);
        return Err(cli::Cli::command().error(ErrorKind::ArgumentConflict, reason));
    }
    Ok(())
}

/// Returns the command without the environment variables that are set to nothing. They count as unset, as a script may leave
/// them empty.
fn without_empty_variables(command: Command) -> Command {
    let is_empty = |name: &OsStr| std::env::var_os(name).is_some_and(|value| value.is_empty());
    command
        .mut_args(|arg| if arg.get_env().is_some_and(is_empty) { arg.env(Resettable::Reset) } else { arg })
        .mut_subcommands(without_empty_variables)
}
