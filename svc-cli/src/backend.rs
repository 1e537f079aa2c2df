//! Where a command works: on a database, or on a server elsewhere.

use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;
use svc_client::{Client, ClientBuilder, Platform};
use svc_core::accounts::keys::{KEY_PREFIX, TEST_KEY_PREFIX};
use svc_core::values::Secret;
use url::{Host, Url};

use crate::cli::{Cli, Command};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::profiles;

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

/// A server, and the key for it.
pub(crate) struct Server {
    /// The URL of its platform listener, or for an API key that of its public one.
    pub(crate) url: String,
    /// The platform key, or the API key of an account.
    pub(crate) key: Secret,
}

/// Which of the options that name a backend were given, in the order of `OPTIONS`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given {
    on_command_line: [bool; 3],
    in_environment: [bool; 3],
}

/// The options that name a backend: their ids, and how they are written.
const OPTIONS: [(&str, &str, &str); 3] = [
    ("database_url", "--database-url", "SVC_DATABASE_URL"),
    ("server", "--server", "SVC_SERVER"),
    ("profile", "--profile", "SVC_PROFILE"),
];

impl Given {
    /// Returns which options the arguments have.
    pub(crate) fn of(matches: &ArgMatches) -> Self {
        let given = |source| OPTIONS.map(|(id, ..)| matches.value_source(id) == Some(source));
        Self { on_command_line: given(ValueSource::CommandLine), in_environment: given(ValueSource::EnvVariable) }
    }

    /// Returns whether one of the options is on the command line.
    pub(crate) fn is_on_command_line(self) -> bool {
        self.on_command_line.contains(&true)
    }

    /// Returns the index of the option that names the backend. What is on the command line is stronger than a variable.
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

impl Backend {
    /// Returns the backend that the options and the environment name.
    ///
    /// # Errors
    /// They name two, a profile that is not there, or a server without a key.
    pub(crate) fn of(cli: &Cli) -> Result<Self, Failure> {
        match (cli.given.choice()?, &cli.server, &cli.profile) {
            (Some(1), Some(url), _) => {
                let variable = |name| std::env::var(name).ok().filter(|key| !key.trim().is_empty());
                // It belongs to the server of SVC_URL, unless another one is named beside it.
                let takes_api_key = matches!(cli.command, Command::Mcp(_)) && cli.given.is_on_command_line();
                let api_key = takes_api_key.then(|| variable(API_KEY)).flatten();
                let key = variable(KEY).or(api_key).ok_or_else(|| {
                    let reason = format!(
                        "Set {KEY} to a platform key, which `svc platform-key create` makes beside the database, or store \
                         it with `svc login --server {url}`."
                    );
                    Failure::new(Exit::Usage, reason)
                })?;
                Ok(Self::Server(Server { url: url.clone(), key: Secret::new(key.trim()) }))
            }
            (Some(2), _, Some(name)) => profiles::load(name).map(Self::Server),
            _ => Ok(Self::Database(cli.database_url.clone())),
        }
    }
}

impl Server {
    /// Returns a client of its platform API. The file has certificates (PEM) to trust beside those of the system.
    ///
    /// # Errors
    /// The URL is not valid, or the file cannot be read or has no certificates.
    pub(crate) fn client(&self, ca_file: Option<&Path>) -> Result<Platform, Failure> {
        self.build(ca_file, ClientBuilder::build_platform)
    }

    /// Returns a client of its public API.
    ///
    /// # Errors
    /// As [`client`](Self::client).
    pub(crate) fn account_client(&self, ca_file: Option<&Path>) -> Result<Client, Failure> {
        self.build(ca_file, ClientBuilder::build)
    }

    /// Checks that the key is one of the platform API.
    ///
    /// # Errors
    /// It is the API key of an account.
    pub(crate) fn require_platform_key(&self) -> Result<(), Failure> {
        if !self.has_api_key() {
            return Ok(());
        }
        let reason = "The key is the API key of an account, which `svc mcp` alone works with. Other commands need a platform key, \
                      which `svc platform-key create` makes beside the database.";
        Err(Failure::new(Exit::Usage, reason))
    }

    /// Returns whether the key is the API key of an account.
    pub(crate) fn has_api_key(&self) -> bool {
        [KEY_PREFIX, TEST_KEY_PREFIX].iter().any(|prefix| self.key.reveal().starts_with(prefix))
    }

    fn build<T>(
        &self,
        ca_file: Option<&Path>,
        build: impl FnOnce(ClientBuilder) -> svc_client::Result<T>,
    ) -> Result<T, Failure> {
        if sends_in_clear(&self.url) {
            output::warning(&format!(
                "The key and all data are sent to {} without encryption, and others on the way can read them. Use an https:// \
                 URL.",
                self.url
            ));
        }
        let mut builder =
            Client::builder(&self.url, self.key.reveal()).user_agent(concat!("svc/", env!("CARGO_PKG_VERSION")));
        let mut options = format!("--server {}", self.url);
        if let Some(file) = ca_file {
            let name = file.display();
            let pem = std::fs::read(file)
                .map_err(|error| Failure::new(Exit::Failed, format!("Cannot read --ca-file {name}: {error}.")))?;
            builder = builder.add_root_certificates(&pem);
            options += &format!(" with --ca-file {name}");
        }
        build(builder).map_err(|error| Failure::new(Exit::Usage, format!("{options} cannot be used: {error}.")))
    }
}

/// Returns whether requests to a URL leave this machine without TLS.
fn sends_in_clear(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let is_local = match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => true,
    };
    url.scheme() == "http" && !is_local
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_http_to_another_machine_is_sent_in_clear() {
        for url in
            ["http://api.example.com", "HTTP://10.0.0.7:8080/api", "http://[2001:db8::1]/", "http://localhost.example"]
        {
            assert!(sends_in_clear(url), "{url}");
        }
        for url in [
            "https://api.example.com",
            "http://localhost:8081",
            "http://127.0.0.1",
            "http://127.8.9.10:1",
            "http://[::1]:8081",
        ] {
            assert!(!sends_in_clear(url), "{url}");
        }
    }

    #[test]
    fn the_command_line_is_stronger_than_a_variable_and_two_backends_are_refused() {
        let given = |on_command_line, in_environment| Given { on_command_line, in_environment }.choice();
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
