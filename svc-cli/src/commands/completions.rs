//! `svc completions`.

use clap::{Args, Command};
use clap_complete::Shell;
use serde_json::json;

use crate::exit::{Exit, Failure};
use crate::output::Outcome;

/// Generate the completion script of a shell.
///
/// Save the script where the shell looks for completions, then start a new shell.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc completions bash > ~/.local/share/bash-completion/completions/svc\n  \
                  svc completions zsh > ~/.zfunc/_svc\n  \
                  svc completions fish > ~/.config/fish/completions/svc.fish")]
pub(crate) struct Completions {
    /// Shell to generate the script for.
    shell: Shell,
}

pub(crate) fn run(mut root: Command, Completions { shell }: &Completions) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(*shell, &mut root, "svc", &mut script);
    let script = String::from_utf8(script)
        .map_err(|error| Failure::new(Exit::Failed, format!("The completion script is not valid UTF-8: {error}.")))?;
    Outcome::new(&json!({ "shell": shell.to_string(), "script": script }), script)
}
