//! What the commands do: one file per noun, one function per command.

mod audit;
mod completions;
mod db;
mod delivery;
mod event;
mod invoice;
mod key;
mod listen;
mod lookup;
mod tenant;
mod webhook;

use std::sync::Arc;

use svc_core::audit::acting;
use svc_core::env::Env;
use svc_core::store::Store;
use svc_store::OpenError;

use crate::cli::{Cli, Command};
use crate::exit::Failure;
use crate::output::Outcome;
use crate::user;

/// Opens the database when the command needs it, and runs the command.
pub(crate) async fn run(cli: Cli) -> Result<Outcome, Failure> {
    let url = &cli.database_url;
    let open = || open(url);
    match cli.command {
        Command::Tenant { command } => tenant::run(&*open().await?, command).await,
        Command::Key { command } => key::run(&*open().await?, command).await,
        Command::Invoice { command } => invoice::run(&*open().await?, command).await,
        Command::Webhook { command } => webhook::run(&*open().await?, command).await,
        Command::Delivery { command } => delivery::run(&*open().await?, command).await,
        Command::Event { command } => event::run(&*open().await?, command).await,
        Command::Listen(options) => listen::run(options, cli.json).await,
        Command::Audit { command } => audit::run(&*open().await?, command).await,
        Command::Db { command } => db::run(url, command).await,
        Command::Completions { shell } => completions::run(shell),
    }
}

/// Opens a database whose changes are noted as those of the user.
async fn open(url: &str) -> Result<Arc<dyn Store>, OpenError> {
    Ok(acting(svc_store::open(url, Env::system()).await?, user::actor()))
}
