//! Several servers on one PostgreSQL database: what must hold between them, tried with real processes.
//!
//! ```text
//! cargo run -p svc-tests --bin nodes -- [--database-url URL|postgres] SCENARIO [sizes]
//! ```
//!
//! - `order`: whoever follows `updated_since` misses no change, whichever node wrote it.
//! - `once`: each delivery arrives once, whichever nodes send.
//! - `stopped`: a node that stands still or dies delays what it had begun, and spoils nothing when it comes back.
//! - `wake`: how soon a node sends what another process wrote.
//! - `revoked`: a key is refused on every node from the moment on that its revocation was acknowledged.
//! - `shared`: rate limits, signatures, Idempotency-Keys and the count of failures are those of all nodes together.
//! - `cut`: connections to the database break at the commit; nothing is done twice or lost.
//! - `restart`: the database goes away under load and comes back.
//!
//! Without sizes the long form runs; the suite runs short ones. Exits 1 when something did not hold.

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

/// Several servers on one PostgreSQL database: what must hold between them.
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
    /// Database, to which tenants are added; `postgres` alone stands for a server that is made for the run.
    #[arg(long, value_name = "URL", default_value = OWN_SERVER)]
    database_url: String,
    /// Another server to start than the one that is built into this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
    /// The command line; without it a store of this process stands for it.
    #[arg(long, value_name = "FILE")]
    svc: Option<PathBuf>,
    /// Show what the servers log.
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
    /// Is the server.
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
    // A reader that goes away changes nothing about the verdict.
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
