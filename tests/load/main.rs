//! Mixed traffic at a fixed rate against a real server, for as long as one likes: reads, lists, writes, and their
//! deliveries to an endpoint.
//!
//! ```text
//! cargo run --release -p svc-tests --bin load -- --minutes 30 [--rate 400] [--database-url URL|postgres]
//! ```
//!
//! Requests are sent at their moments, whether or not those before them were answered, and latencies count from these
//! moments: a server that stalls is charged for all whom it kept waiting. A delivery's lag counts from the answer to
//! the change that caused it. It prints a line for each interval and one for the whole run, and exits 1 when an answer
//! was wrong, a change was not delivered, or memory grew: when the median of the last quarter of the run is over that
//! of the second by more than a twentieth and 2 MB. Runs of less than ten minutes are too short to judge memory, as
//! caches still fill.

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
use svc_tests::node;

/// Mixed traffic at a fixed rate against a real server.
#[derive(Debug, Parser)]
#[command(name = "load", args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    role: Option<Role>,
}

/// The run.
#[derive(Debug, Args)]
struct Options {
    /// How long.
    #[arg(long, default_value_t = 2.0)]
    minutes: f64,
    /// Requests a second: half are GETs, a fifth lists, a fifth POSTs, a tenth PATCHes.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rate: u32,
    /// Database; tenants of its own are added to it. `postgres` alone stands for a PostgreSQL server that is made for
    /// the run. By default a new SQLite file that vanishes.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Tenants, with one subscription each.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    tenants: u32,
    /// Contacts that each has at the start.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..))]
    contacts: u32,
    /// The server's own --retention, to see what deleting costs: `30s` deletes all along what a minute brought.
    #[arg(long, value_name = "DURATION", default_value = "30d")]
    retention: String,
    /// Length of an interval.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    every: Duration,
    /// Another server than the one that is built into this program.
    #[arg(long, value_name = "FILE")]
    server: Option<PathBuf>,
}

/// What the program does as its own child.
#[derive(Debug, Subcommand)]
enum Role {
    /// Is the server.
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
        // A reader that goes away changes nothing about the verdict.
        let _ = writeln!(out, "VIOLATION: {violation}");
    }
    if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
