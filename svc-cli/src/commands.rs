//! The implementation of the commands: one file per group, one function per command. `confirm` prompts before those that
//! cannot be undone.

mod account;
mod api;
mod app;
mod audit;
mod completions;
mod confirm;
mod contact;
mod dashboard;
mod db;
mod delivery;
mod event;
mod export;
mod find;
mod follow;
mod grant;
mod import;
mod init;
mod input;
mod invoice;
mod key;
mod listen;
mod login;
mod lookup;
mod man;
mod mcp;
mod member;
mod open;
mod platform_key;
mod quote;
mod records;
mod request;
mod webhook;

use std::sync::Arc;

use svc_core::accounts::actor::acting;
use svc_core::env::Env;
use svc_core::store::Store;
use svc_core::values::HostPolicy;
use svc_store::{OpenError, Options};

use crate::backend::Backend;
use crate::cli::{Cli, Command, DeliveryCommand, ListRequests, Output, RequestCommand, WebhookCommand};
use crate::clock_guard;
use crate::exit::{Exit, Failure};
use crate::output::{self, Outcome};
use crate::profiles;
use crate::service::{Service, local_only};
use crate::user;

/// Opens the database or the way to the server if the command uses it, asks for confirmation if needed, and runs the
/// command.
pub(crate) async fn run(cli: Cli) -> Result<Outcome, Failure> {
    if let Some(reason) = refused_output(&cli) {
        return Err(Failure::new(Exit::Usage, reason));
    }
    let (is_json, is_for_people) = (cli.output() == Output::Json, cli.output() == Output::Text);
    let backend = Backend::of(&cli);
    let profile = cli.profile.as_deref().unwrap_or(profiles::DEFAULT);
    let mut command = match cli.command {
        Command::Completions { shell } => return completions::run(shell),
        Command::Man { directory } => return man::run(directory.as_deref()),
        Command::Login => return login::run(cli.server, profile, cli.ca_file.as_deref()).await,
        Command::Logout => return login::logout(profile),
        Command::Profiles => return login::list(),
        Command::Mcp(options) => {
            return mcp::run(backend, cli.given.is_on_command_line(), options, cli.ca_file.as_deref()).await;
        }
        Command::Import(options) if options.presets => return import::presets(),
        Command::Webhook(WebhookCommand::FilterTest { filter, event, data }) => {
            return webhook::filter_test::run(&filter, event, data.as_deref(), &cli.event_kinds.unwrap_or_default());
        }
        Command::Listen(options) if !options.secrets.is_empty() => return listen::run(options, is_json).await,
        command => command,
    };
    let backend = backend?;
    if let Backend::Server(server) = &backend {
        server.require_platform_key()?;
    }
    if let (Backend::Server(_), Some(name)) = (&backend, database_only(&command)) {
        return Err(local_only(name));
    }
    let mut env = Env::system();
    if cli.allow_private_webhooks || matches!(command, Command::Listen(_)) {
        env.webhook_hosts = HostPolicy::AllowPrivate;
    }
    env.event_kinds = cli.event_kinds.unwrap_or_default();
    let service = match backend {
        Backend::Server(server) => Service::of_server(server.client(cli.ca_file.as_deref())?, env),
        Backend::Database(url) => {
            warn_of_exposed_key(&url);
            let database = Database { url, env, allow_clock_jump: cli.allow_clock_jump };
            match command {
                Command::Init { name, url } => return init::run(&database, &url, name).await,
                Command::Db(command) => {
                    if !cli.yes {
                        confirm::ask_for_database(&command)?;
                    }
                    return db::run(&database, command).await;
                }
                _ => Service::of_database(database.open(false).await?),
            }
        }
    };
    let service = service.for_people(is_for_people);
    if !cli.yes {
        confirm::ask(&service, &mut command).await?;
    }
    run_on(&service, command, is_json).await
}

/// Returns why `--output csv` is refused, which commands that print line by line do not have.
fn refused_output(cli: &Cli) -> Option<&'static str> {
    let reason = match &cli.command {
        Command::Export(_) => "--output csv does not apply to `svc export`; use --format csv.",
        Command::Mcp(_) => "--output csv does not apply to `svc mcp`, which prints messages; omit it.",
        Command::Listen(_) => "--output csv does not apply to `svc listen`; use --output json, or omit it.",
        Command::Api(_) => "--output csv does not apply to `svc api`, which prints the response as it is; omit it.",
        Command::Delivery(DeliveryCommand::List { follow: true, .. })
        | Command::Request(RequestCommand::List(ListRequests { follow: true, .. })) => {
            "--output csv does not apply to --follow; use --output json, or omit it."
        }
        _ => return None,
    };
    (cli.output() == Output::Csv).then_some(reason)
}

/// Runs a command on a service.
async fn run_on(service: &Service, command: Command, is_json: bool) -> Result<Outcome, Failure> {
    match command {
        Command::Account(command) => account::run(service, command).await,
        Command::Key(command) => key::run(service, command).await,
        Command::PlatformKey(command) => platform_key::run(service.database("svc platform-key")?, command).await,
        Command::App(command) => app::run(service, command).await,
        Command::Grant(command) => grant::run(service, command).await,
        Command::Dashboard(command) => dashboard::run(service, command).await,
        Command::Member(command) => member::run(service, command).await,
        Command::Contact(command) => contact::run(service, command).await,
        Command::Booking(command) => records::run(service, command).await,
        Command::Job(command) => records::run(service, command).await,
        Command::Invoice(command) => invoice::run(service, command).await,
        Command::Quote(command) => quote::run(service, command).await,
        Command::Webhook(command) => webhook::run(service, command).await,
        Command::Delivery(command) => delivery::run(service, command, is_json).await,
        Command::Event(command) => event::run(service, command).await,
        Command::Trigger(options) => event::trigger(service, options).await,
        Command::Import(options) => import::run(service, options).await,
        Command::Export(options) => export::run(service, options, is_json).await,
        Command::Listen(options) => listen::run_with_own_webhook(service, options, is_json).await,
        Command::Find(options) => find::run(service, options).await,
        Command::Audit(command) => audit::run(service, command).await,
        Command::Request(command) => request::run(service, command, is_json).await,
        Command::Api(options) => api::run(service, options).await,
        Command::Open(options) => open::run(service, options).await,
        Command::Init { .. }
        | Command::Db(_)
        | Command::Completions { .. }
        | Command::Man { .. }
        | Command::Login
        | Command::Logout
        | Command::Mcp(_)
        | Command::Profiles => Err(local_only("svc")),
    }
}

/// Returns the name of a command that works on a whole database, or on what no platform key may change.
fn database_only(command: &Command) -> Option<&'static str> {
    match command {
        Command::Init { .. } => Some("svc init"),
        Command::Db(_) => Some("svc db"),
        Command::PlatformKey(_) => Some("svc platform-key"),
        _ => None,
    }
}

fn warn_of_exposed_key(url: &str) {
    if let Some(path) = svc_store::exposed_key_file(url) {
        let path = path.display();
        output::warning(&format!("Other users may read or change the secret key in {path}; run `chmod 600 {path}`."));
    }
}

/// A database as the options describe it.
struct Database {
    url: String,
    env: Env,
    /// Whether to write under a clock that is far ahead.
    allow_clock_jump: bool,
}

impl Database {
    /// Opens the database. The audit log records changes as made by the current user. With `create_missing`, a SQLite file
    /// that is missing is created.
    async fn open(&self, create_missing: bool) -> Result<Arc<dyn Store>, OpenError> {
        // A command runs its transactions one after the other, and servers need the connections of PostgreSQL.
        let options = Options {
            create_missing,
            read_connections: 1,
            write_connections: 1,
            is_short_lived: true,
            ..Options::default()
        };
        let store = acting(svc_store::open_with(&self.url, self.env.clone(), options).await?, user::actor());
        Ok(match svc_store::sqlite_file(&self.url) {
            Some(file) if !self.allow_clock_jump => clock_guard::guarded(store, file),
            _ => store,
        })
    }
}
