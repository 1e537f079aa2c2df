//! Scenarios with several servers on one PostgreSQL database: what must hold between them, tested with real
//! processes.
//!
//! ```text
//! cargo run -p svc-tests --bin nodes -- [--database-url URL|postgres] [--nodes 4] [--pooler] SCENARIO [OPTIONS]
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
//! - `promoted`: the database crashes under load and its standby takes its place; no acknowledged write is lost.
//! - `upgrade`: nodes of an earlier release are replaced under load; no request fails and no acknowledged write is lost.
//! - `throughput`: what 1, 2 and 4 nodes do on one database.
//!
//! The defaults are the long form; the suite runs short forms. The program exits with 1 if something does not hold.

mod cluster;
mod cut;
mod load;
mod once;
mod order;
mod pooler;
mod promoted;
mod proxy;
mod receiver;
mod restart;
mod revoked;
mod shared;
mod stopped;
mod throughput;
mod upgrade;
mod wake;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use svc_server::program::config::Config;
use svc_test_support::database::{Database, OWN_SERVER};
use svc_test_support::node::Program;
use svc_test_support::{Result, node};

use self::cluster::{SetUp, TestCluster};

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
    /// Number of nodes, where a scenario needs no other number.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(2..=16))]
    nodes: u8,
    /// Connects the nodes through PgBouncer in session mode, as docs/operations/postgresql.md says.
    #[arg(long)]
    pooler: bool,
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
    Promoted(promoted::Size),
    Upgrade(upgrade::Size),
    Throughput(throughput::Size),
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
    let (nodes, pooler) = (usize::from(options.nodes), options.pooler);
    let set_up = SetUp { program, svc: options.svc.clone(), nodes, pooler };
    if let Scenario::Upgrade(size) = scenario {
        return upgrade::run(database, set_up, &size).await;
    }
    let cluster = TestCluster::new(database, set_up).await?;
    match scenario {
        Scenario::Order(size) => order::run(&cluster, &size).await,
        Scenario::Once(size) => once::run(&cluster, &size).await,
        Scenario::Stopped(size) => stopped::run(&cluster, &size).await,
        Scenario::Wake(size) => wake::run(&cluster, &size).await,
        Scenario::Revoked(size) => revoked::run(&cluster, &size).await,
        Scenario::Shared(size) => shared::run(&cluster, &size).await,
        Scenario::Cut(size) => cut::run(&cluster, &size).await,
        Scenario::Restart(size) => restart::run(&cluster, &size).await,
        Scenario::Promoted(size) => promoted::run(&cluster, &size).await,
        Scenario::Throughput(size) => throughput::run(&cluster, &size).await,
        Scenario::Upgrade(_) | Scenario::Serve(_) => Err("this does not run on a cluster".into()),
    }
}
