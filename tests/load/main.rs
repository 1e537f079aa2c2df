//! Mixed traffic at a fixed rate against a real server for any length of time: reads, lists, writes, and their
//! deliveries to an endpoint.
//!
//! ```text
//! cargo run --profile dist -p svc-tests --bin load -- --minutes 30 [--rate 400] [--database-url URL|postgres]
//! ```
//!
//! Each request is sent at its scheduled time, whether or not earlier ones have completed, and its latency counts
//! from that time. A stalled server is thus charged for every request that it delays. The lag of a delivery counts
//! from the response to the change that caused it.
//!
//! The program prints a line for each interval and one for the whole run. It exits with 1 if a response was wrong, a
//! change was not delivered, or memory grew: if the median of the last quarter of the run exceeds that of the second
//! quarter by more than 5 % and 2 MB. Memory is not judged in runs of less than ten minutes, because caches are still
//! filling.

mod fixture;
mod run;
mod stats;
mod traffic;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use svc_server::program::config::Config;
use svc_test_support::node;

/// Mixed traffic at a fixed rate against a real server.
#[derive(Debug, Parser)]
#[command(name = "load", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    role: Option<Role>,
}

/// The options of a run.
#[derive(Debug, Args)]
struct Options {
    /// Length of the run in minutes.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Requests per second: 50 % GETs, 20 % lists, 20 % POSTs, 10 % PATCHes.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// URL of the database, to which new tenants are added. `postgres` starts a PostgreSQL server for the run. The
    /// default is a temporary SQLite file.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Number of tenants, each with one subscription.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    tenants: u32,
    /// Number of contacts of each tenant at the start.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    contacts: u32,
    /// The server's --retention. With a short time such as `30s`, the server deletes old events during the run.
    #[arg(long, value_name = "DURATION", default_value = "30d")]
    retention: String,
    /// Length of an interval, after which a line is printed.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    every: Duration,
    /// The server to test, instead of the one built into this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// What the program does as its own child process.
#[derive(Debug, Subcommand)]
enum Role {
    /// Runs the server.
    #[command(hide = true)]
    Serve(Box<Config>),
}

fn main() -> ExitCode {
    let Cli { options, role } = Cli::parse();
    if let Some(Role::Serve(config)) = role {
        return node::serve(*config);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(Into::into);
    let violations = match runtime.and_then(|runtime| runtime.block_on(run::run(&options))) {
        Ok(violations) => violations,
        Err(error) => vec![error.to_string()],
    };
    let mut out = std::io::stdout().lock();
    for violation in &violations {
        // A closed pipe must not change the exit code.
        let _ = writeln!(out, "VIOLATION: {violation}");
    }
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
