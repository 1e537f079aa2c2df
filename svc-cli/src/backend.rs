//! Where a command works: on a database, or on a server elsewhere.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, ValueHint};
use svc_core::values::Secret;

use crate::exit::{Exit, Failure};
use crate::profiles;
use crate::server::Server;

/// The variable with the platform key.
const KEY: &str = "SVC_PLATFORM_KEY";

/// The variable with the API key of an account, which `svc mcp` can have instead.
const API_KEY: &str = "SVC_KEY";

/// Where a command works.
pub(crate) enum Backend {
    /// On the database with this URL.
    Database(String),
    /// On a server.
    Server(Server),
}

/// The options that name a backend.
#[derive(Args, Clone, Debug)]
#[group(skip)]
pub(crate) struct BackendArgs {
    /// Database URL: sqlite://PATH or postgres://USER:PASSWORD@HOST:PORT/DATABASE. `svc init` and `svc db migrate`
    /// create a SQLite file that does not exist.
    #[arg(
        long,
        global = true,
        env = "SVC_DATABASE_URL",
        hide_env_values = true,
        default_value = "sqlite://svc.db",
        value_name = "URL"
    )]
    pub(crate) database_url: String,

    /// URL of the platform listener of a server (`svc-server --platform-listen`) to work on in place of a database, with the
    /// platform key in SVC_PLATFORM_KEY.
    #[arg(long, global = true, env = "SVC_SERVER", hide_env_values = true, value_name = "URL")]
    pub(crate) server: Option<String>,

    /// Work on the server of this profile, which `svc login` stored.
    #[arg(
        long,
        global = true,
        env = "SVC_PROFILE",
        hide_env_values = true,
        value_parser = profiles::name,
        value_name = "NAME"
    )]
    pub(crate) profile: Option<String>,

    /// File with certificates (PEM) of authorities to trust for the server, beside those of this system.
    #[arg(
        long,
        global = true,
        env = "SVC_CA_FILE",
        hide_env_values = true,
        hide_short_help = true,
        value_hint = ValueHint::FilePath,
        value_name = "FILE"
    )]
    pub(crate) ca_file: Option<PathBuf>,

    #[arg(skip)]
    pub(crate) sources: Sources,
}

/// Where the options that name a backend come from, in the order of `OPTIONS`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sources {
    on_command_line: [bool; 3],
    in_environment: [bool; 3],
}

/// The options that name a backend: their ids, and how they are written.
const OPTIONS: [(&str, &str, &str); 3] = [
    ("database_url", "--database-url", "SVC_DATABASE_URL"),
    ("server", "--server", "SVC_SERVER"),
    ("profile", "--profile", "SVC_PROFILE"),
];

impl Sources {
    /// Returns which options the arguments have.
    pub(crate) fn from_matches(matches: &ArgMatches) -> Self {
        let given_by = |source| OPTIONS.map(|(id, ..)| matches.value_source(id) == Some(source));
        Self { on_command_line: given_by(ValueSource::CommandLine), in_environment: given_by(ValueSource::EnvVariable) }
    }

    /// Returns the index of the option that names the backend. An option is stronger than a variable.
    fn choice(self) -> Result<Option<usize>, Failure> {
        let indices = |given: [bool; 3]| (0..given.len()).filter(move |at| given[*at]).collect::<Vec<_>>();
        match (&indices(self.on_command_line)[..], &indices(self.in_environment)[..]) {
            ([one], _) | ([], [one]) => Ok(Some(*one)),
            ([], []) => Ok(None),
            ([first, second, ..], _) => {
                let reason = format!("Give {} or {}, not both.", OPTIONS[*first].1, OPTIONS[*second].1);
                Err(Failure::new(Exit::Usage, reason))
            }
            ([], [first, second, ..]) => {
                let reason = format!(
                    "{} and {} are both set; unset one of them, or give {} or {}.",
                    OPTIONS[*first].2, OPTIONS[*second].2, OPTIONS[*first].1, OPTIONS[*second].1
                );
                Err(Failure::new(Exit::Usage, reason))
            }
        }
    }
}

impl BackendArgs {
    /// Returns whether one of the options is on the command line.
    pub(crate) fn is_on_command_line(&self) -> bool {
        self.sources.on_command_line.contains(&true)
    }

    /// Returns the backend that the options and the environment name, whose key may be the API key of an account with
    /// `takes_api_key`.
    ///
    /// # Errors
    /// They name two, a profile that is not there, or a server without a key.
    pub(crate) fn backend(&self, takes_api_key: bool) -> Result<Backend, Failure> {
        match (self.sources.choice()?, &self.server, &self.profile) {
            (Some(1), Some(url), _) => {
                let variable = |name| std::env::var(name).ok().filter(|key| !key.trim().is_empty());
                // It belongs to the server of SVC_URL, unless another one is named beside it.
                let api_key = (takes_api_key && self.is_on_command_line()).then(|| variable(API_KEY)).flatten();
                let key = variable(KEY).or(api_key).ok_or_else(|| {
                    let reason = format!(
                        "Set {KEY} to a platform key, which `svc platform-key create` makes beside the database, or store \
                         it with `svc login --server {url}`."
                    );
                    Failure::new(Exit::Usage, reason)
                })?;
                Ok(Backend::Server(Server { url: url.clone(), key: Secret::new(key.trim()) }))
            }
            (Some(2), _, Some(name)) => profiles::load(name).map(Backend::Server),
            _ => Ok(Backend::Database(self.database_url.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_stronger_than_a_variable_and_two_backends_are_refused() {
        let given = |on_command_line, in_environment| Sources { on_command_line, in_environment }.choice();
        let [database, server, none] = [[true, false, false], [false, true, false], [false; 3]];
        assert_eq!(given(none, none), Ok(None));
        assert_eq!(given(none, server), Ok(Some(1)));
        assert_eq!(given(database, server), Ok(Some(0)));
        assert_eq!(given(server, database), Ok(Some(1)));
        let both = [true, true, false];
        let (line, variables) = (given(both, none).unwrap_err(), given(none, both).unwrap_err());
        assert_eq!(line.message(), "Give --database-url or --server, not both.");
        assert!(variables.message().starts_with("SVC_DATABASE_URL and SVC_SERVER are both set"), "{variables:?}");
    }
}
