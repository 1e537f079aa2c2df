//! Scenarios with several servers on one PostgreSQL database: what must hold between them, tested with real
//! processes.
//!
//! ```text
//! cargo run -p svc-tests --bin nodes -- [--database-url URL|postgres] SCENARIO [OPTIONS]
//! ```
//!
//! - `order`: a client that follows `updated_since` misses no change, whichever node wrote it.
//! - `once`: each delivery is sent once, whichever node sends it.
//! - `stopped`: a node that is stopped or killed delays the attempts it had started; other nodes repeat them, and
//!   nothing changes when it continues.
//! - `wake`: how soon a node sends an event that another process wrote.
//! - `revoked`: every node refuses a key as soon as its revocation is acknowledged.
//! - `shared`: rate limits, signatures, Idempotency-Keys and failure counts apply to all nodes together.
//! - `cut`: connections to the database break at a commit; no write is lost or done twice.
//! - `restart`: the database stops under load and starts again; no acknowledged write is lost.
//!
//! The defaults are the long form; the suite runs short forms. The program exits with 1 if something does not hold.

mod cluster;
mod cut;
mod once;
mod order;
mod proxy;
mod receiver;
mod restart;
mod revoked;
mod shared;
mod stopped;
mod wake;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use svc_server::program::config::Config;
use svc_tests::database::{Database, OWN_SERVER};
use svc_tests::node::Program;
use svc_tests::{Result, node};

use self::cluster::TestCluster;

/// Scenarios with several servers on one PostgreSQL database.
#[derive(Debug, Parser)]
#[command(name = "nodes")]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    scenario: Scenario,
}

#[derive(Debug, Args)]
struct Options {
    /// URL of the database, to which new tenants are added. `postgres` starts a PostgreSQL server for the run.
    #[arg(long, value_name = "URL", default_value = OWN_SERVER)]
    database_url: String,
    /// The server to test, instead of the one built into this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// The command line program. Without it the scenarios use a store of this process instead.
    #[arg(long, value_name = "FILE")]
    svc: Option<PathBuf>,
    /// Shows the servers' logs.
    #[arg(long)]
    log: bool,
}

#[derive(Debug, Subcommand)]
enum Scenario {
    Order(order::Size),
    Once(once::Size),
    Stopped(stopped::Size),
    Wake(wake::Size),
    Revoked(revoked::Size),
    Shared(shared::Size),
    Cut(cut::Size),
    Restart(restart::Size),
    /// Runs the server.
    #[command(hide = true)]
    Serve(Box<Config>),
}

fn main() -> ExitCode {
    let Cli { options, scenario } = Cli::parse();
    if let Scenario::Serve(config) = scenario {
        return node::serve(*config);
    }
    let done = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Into::into);
    let done = done.and_then(|runtime| runtime.block_on(run(&options, scenario)));
    // A closed pipe must not change the exit code.
    let mut out = std::io::stdout().lock();
    match done {
        Ok(summary) => {
            let _ = writeln!(out, "{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(out, "VIOLATION: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(options: &Options, scenario: Scenario) -> Result<String> {
    let program =
        Program { file: options.server.clone(), log: if options.log { "info" } else { "off" }, ..Program::default() };
    let database = Database::new(Some(&options.database_url))?;
    let cluster = TestCluster::new(database, program, options.svc.clone()).await?;
    match scenario {
        Scenario::Order(size) => order::run(&cluster, &size).await,
        Scenario::Once(size) => once::run(&cluster, &size).await,
        Scenario::Stopped(size) => stopped::run(&cluster, &size).await,
        Scenario::Wake(size) => wake::run(&cluster, &size).await,
        Scenario::Revoked(size) => revoked::run(&cluster, &size).await,
        Scenario::Shared(size) => shared::run(&cluster, &size).await,
        Scenario::Cut(size) => cut::run(&cluster, &size).await,
        Scenario::Restart(size) => restart::run(&cluster, &size).await,
        Scenario::Serve(_) => Err("the server does not run here".into()),
    }
}
