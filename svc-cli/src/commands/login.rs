//! `svc login`, `svc logout` and `svc profiles`.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use clap::Args;
use rustix::termios::{self, LocalModes, OptionalActions};
use serde::Serialize;
use svc_core::accounts::keys::KEY_PREFIX;
use svc_core::accounts::platform_keys::PLATFORM_KEY_PREFIX;
use svc_core::env::Env;
use svc_core::values::Secret;

use crate::backend::BackendArgs;
use crate::exit::{Exit, Failure};
use crate::output::{Outcome, Table};
use crate::profiles;
use crate::server::Server;
use crate::service::{CallError, Service};
use crate::session::Session;

/// Store a server and its platform key as a profile, for --profile.
///
/// The server is that of --server, and the profile that of --profile, or `default`. The key is read from a prompt that
/// does not show it, or from stdin, and is stored once the server takes it, in a file that only you can read. It may also
/// be the API key of an account, with the URL of the public listener, for `svc mcp`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:\n  svc login --server https://svc.example.com:8443 --profile production\n  \
                  svc account list --profile production\n  \
                  svc login --server https://svc.example.com:8443 < key.txt")]
pub(crate) struct Login {}

/// Delete a profile and its key from this machine.
///
/// The profile is that of --profile, or `default`. The key itself works until `svc platform-key revoke`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  svc logout --profile production")]
pub(crate) struct Logout {}

/// List the profiles of this machine.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  svc profiles")]
pub(crate) struct Profiles {}

/// The longest line that is read as a key.
const MAX_KEY: usize = 200;

/// A profile in JSON output. The key is not part of it.
#[derive(Serialize)]
struct View {
    name: String,
    server: String,
    /// The first characters of the key, which tell keys apart.
    prefix: String,
}

impl View {
    fn new(name: &str, server: &Server) -> Self {
        let prefix = server.key.reveal().chars().take(PLATFORM_KEY_PREFIX.len() + 6).collect();
        Self { name: name.to_owned(), server: server.url.clone(), prefix }
    }
}

/// Returns the name of the profile that the options give.
fn profile(session: &Session) -> &str {
    session.backend.profile.as_deref().unwrap_or(profiles::DEFAULT)
}

/// Stores a server and its key as a profile, once the server takes the key.
pub(crate) async fn run(session: &Session) -> Result<Outcome, Failure> {
    let BackendArgs { server, ca_file, .. } = &session.backend;
    let (name, ca_file) = (profile(session), ca_file.as_deref());
    let url = server.clone().ok_or_else(|| {
        let reason = "Give the URL of the platform listener of the server with --server (SVC_SERVER); for the API key of an \
                      account, that of the public listener.";
        Failure::new(Exit::Usage, reason)
    })?;
    let key = read_key().map_err(|error| Failure::new(Exit::Failed, format!("Cannot read the key: {error}.")))?;
    let server = Server { url, key: Secret::new(key.as_str()) };
    if server.has_api_key() {
        check_api_key(&server, ca_file).await?;
    } else if key.starts_with(PLATFORM_KEY_PREFIX) {
        check_platform_key(&server, ca_file).await?;
    } else {
        let reason = format!(
            "A platform key begins with {PLATFORM_KEY_PREFIX}, and the API key of an account with {KEY_PREFIX}; copy all of it."
        );
        return Err(Failure::new(Exit::Usage, reason));
    }
    let path = profiles::store(name, &server)?;
    let text = format!(
        "Stored the profile {name} for {} in {}. Use it with --profile {name}, or set SVC_PROFILE={name}.",
        server.url,
        path.display()
    );
    Outcome::new(&View::new(name, &server), text)
}

async fn check_api_key(server: &Server, ca_file: Option<&Path>) -> Result<(), Failure> {
    match server.account_client(ca_file)?.ping().await {
        Ok(_) => Ok(()),
        Err(error) if error.code() == Some("route_not_found") => {
            let reason = format!(
                "An API key is for the public listener of a server, and {} is none. Give its URL, or a platform key.",
                server.url
            );
            Err(Failure::new(Exit::Usage, reason))
        }
        Err(error) if error.status() == Some(401) => {
            Err(Failure::new(Exit::Refused, format!("The server does not take the API key: {error}.")))
        }
        Err(error) => Err(CallError::from(error).into()),
    }
}

async fn check_platform_key(server: &Server, ca_file: Option<&Path>) -> Result<(), Failure> {
    let service = Service::of_server(server.client(ca_file)?, Env::system());
    match service.accounts(None, 1, false).await {
        Ok(_) => Ok(()),
        // The key is one of the server's, for other areas.
        Err(CallError::Server(error)) if error.status() == Some(403) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Deletes a profile. The key works until it is revoked.
pub(crate) fn logout(session: &Session) -> Result<Outcome, Failure> {
    let name = profile(session);
    profiles::delete(name)?;
    let text = format!(
        "Deleted the profile {name}. Its key works until `svc platform-key revoke` ends it beside the database."
    );
    Outcome::new(&serde_json::json!({ "name": name }), text)
}

/// Lists the profiles.
pub(crate) fn list() -> Result<Outcome, Failure> {
    let mut views = Vec::new();
    for name in profiles::names()? {
        views.push(View::new(&name, &profiles::load(&name)?));
    }
    let table = Table::new(["NAME", "SERVER", "KEY"], &views, |view| {
        [view.name.clone(), view.server.clone(), format!("{}…", view.prefix)]
    });
    Outcome::list(&views, &table, "There are no profiles; make one with `svc login`.")
}

/// Reads the key: from a prompt that does not show it, or else the first line of stdin.
fn read_key() -> io::Result<String> {
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        return line();
    }
    let shown = termios::tcgetattr(&stdin)?;
    let mut hidden = shown.clone();
    hidden.local_modes -= LocalModes::ECHO;
    termios::tcsetattr(&stdin, OptionalActions::Flush, &hidden)?;
    let mut err = io::stderr().lock();
    let typed = write!(err, "Platform key: ").and_then(|()| err.flush()).and_then(|()| line());
    termios::tcsetattr(&stdin, OptionalActions::Now, &shown)?;
    writeln!(err)?;
    typed
}

fn line() -> io::Result<String> {
    let mut line = String::new();
    io::Read::take(io::stdin().lock(), MAX_KEY as u64).read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
