//! `svc completions`.

use clap::CommandFactory as _;
use clap_complete::Shell;
use serde_json::json;

use crate::cli::Cli;
use crate::exit::{Exit, Failure};
use crate::output::Outcome;

pub(super) fn run(shell: Shell) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "svc", &mut script);
    let script = String::from_utf8(script)
        .map_err(|error| Failure::new(Exit::Failed, format!("The completion script is not valid UTF-8: {error}.")))?;
    Outcome::new(&json!({ "shell": shell.to_string(), "script": script }), script)
}
