//! The implementation of the commands: one file per group, one function per command.

mod audit;
mod booking;
mod completions;
mod contact;
mod dashboard;
mod db;
mod delivery;
mod event;
mod export;
mod import;
mod init;
mod input;
mod invoice;
mod job;
mod key;
mod listen;
mod lookup;
mod man;
mod platform_key;
mod quote;
mod records;
mod tenant;
mod webhook;

use std::sync::Arc;

use svc_core::accounts::audit::acting;
use svc_core::env::Env;
use svc_core::store::Store;
use svc_core::values::{EventKinds, HostPolicy};
use svc_store::{OpenError, Options};

use crate::cli::{Cli, Command, Output};
use crate::clock_guard;
use crate::confirm;
use crate::exit::Failure;
use crate::output::{self, Outcome};
use crate::user;

/// Asks for confirmation if needed, opens the database if the command uses it, and runs the command.
pub(crate) async fn run(cli: Cli) -> Result<Outcome, Failure> {
    confirm::ask(&cli.command, cli.yes)?;
    let url = &cli.database_url;
    let uses_database = match &cli.command {
        Command::Listen(options) => options.secrets.is_empty(),
        Command::Completions { .. } | Command::Man { .. } => false,
        _ => true,
    };
    if let Some(path) = svc_store::exposed_key_file(url).filter(|_| uses_database) {
        let path = path.display();
        output::warning(&format!("Other users may read or change the secret key in {path}; run `chmod 600 {path}`."));
    }
    let hosts = if cli.allow_private_webhooks { HostPolicy::AllowPrivate } else { HostPolicy::Public };
    let event_kinds = cli.event_kinds.clone().unwrap_or_default();
    let allowed = Allowed { hosts, clock_jump: cli.allow_clock_jump, event_kinds };
    let is_json = cli.output() == Output::Json;
    let open = || open(url, allowed.clone());
    match cli.command {
        Command::Init { name, url: server_url } => init::run(url, allowed, &server_url, name).await,
        Command::Tenant { command } => tenant::run(&*open().await?, command).await,
        Command::Key { command } => key::run(&*open().await?, command).await,
        Command::PlatformKey { command } => platform_key::run(&*open().await?, command).await,
        Command::Dashboard { command } => dashboard::run(&*open().await?, command).await,
        Command::Contact { command } => contact::run(&*open().await?, command).await,
        Command::Booking { command } => records::run(&*open().await?, command).await,
        Command::Job { command } => records::run(&*open().await?, command).await,
        Command::Invoice { command } => invoice::run(&*open().await?, command).await,
        Command::Quote { command } => quote::run(&*open().await?, command).await,
        Command::Webhook { command } => webhook::run(&*open().await?, command).await,
        Command::Delivery { command } => delivery::run(&*open().await?, command, is_json).await,
        Command::Event { command } => event::run(&*open().await?, command).await,
        Command::Import(options) => import::run(&*open().await?, options).await,
        Command::Export(options) => export::run(&*open().await?, options, is_json).await,
        Command::Trigger(options) => event::trigger(&*open().await?, options).await,
        Command::Listen(options) if options.secrets.is_empty() => {
            let store = self::open(url, Allowed { hosts: HostPolicy::AllowPrivate, ..allowed }).await?;
            listen::run_with_own_webhook(&*store, options, is_json).await
        }
        Command::Listen(options) => listen::run(options, is_json).await,
        Command::Audit { command } => audit::run(&*open().await?, command).await,
        Command::Db { command } => db::run(url, allowed, command).await,
        Command::Completions { shell } => completions::run(shell),
        Command::Man { directory } => man::run(directory.as_deref()),
    }
}

/// What options allow that is refused without them.
#[derive(Clone)]
struct Allowed {
    /// Which hosts may receive webhooks.
    hosts: HostPolicy,
    /// Whether to write under a clock that is far ahead.
    clock_jump: bool,
    /// The kinds of events.
    event_kinds: EventKinds,
}

/// Opens a database on which the audit log records changes as made by the current user.
async fn open(url: &str, allowed: Allowed) -> Result<Arc<dyn Store>, OpenError> {
    open_or_create(url, allowed, false).await
}

/// Does the same, and creates a SQLite file that is missing with `create_missing`.
async fn open_or_create(url: &str, allowed: Allowed, create_missing: bool) -> Result<Arc<dyn Store>, OpenError> {
    // A command runs its transactions one after the other, and servers need the connections of PostgreSQL.
    let options = Options {
        create_missing,
        read_connections: 1,
        write_connections: 1,
        is_short_lived: true,
        ..Options::default()
    };
    let mut env = Env::system();
    env.webhook_hosts = allowed.hosts;
    env.event_kinds = allowed.event_kinds;
    let store = acting(svc_store::open_with(url, env, options).await?, user::actor());
    Ok(match svc_store::sqlite_file(url) {
        Some(file) if !allowed.clock_jump => clock_guard::guarded(store, file),
        _ => store,
    })
}
