//! The command line options.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use svc_server::program::config::Config;

/// Kills the server repeatedly under load and checks that no acknowledged write is lost.
#[derive(Debug, Parser)]
#[command(name = "crash", args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// The options of a run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often the server is killed and started again.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Repeats the requests and the times of the kills of an earlier run.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// URL of the database, to which new tenants are added. `postgres` starts a PostgreSQL server for the run. The
    /// default is a temporary SQLite file.
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Number of tenants, each with five subscriptions.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tenants: u32,
    /// Number of clients per tenant, each with one request in progress.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: u32,
    /// The longest time that the server runs before it is killed.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = humantime::parse_duration)]
    pub(crate) longest: Duration,
    /// Timeout of a delivery attempt. An attempt in progress at a kill is tried again after twice this time plus ten
    /// seconds.
    #[arg(long, value_name = "DURATION", default_value = "1500ms", value_parser = humantime::parse_duration)]
    pub(crate) webhook_timeout: Duration,
    /// Makes the disk fail for a while in each round. Then the server recovers, is killed, or loses its power.
    #[arg(long, value_enum)]
    pub(crate) faults: Option<Faults>,
    /// The server to kill, instead of the one built into this program.
    #[arg(long, value_name = "FILE")]
    pub(crate) server: Option<PathBuf>,
}

/// How the disk fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Faults {
    /// fsync fails, for all files or for checkpoints only (SQLite on Linux; needs a C compiler).
    Fsync,
    /// A write is cut short, and the next one fails with ENOSPC (SQLite on Linux; needs a C compiler).
    NoSpace,
    /// The disk is full: the database is on a small file system in memory (needs root, or sudo without a password).
    DiskFull,
}

/// What the program does as its own child process.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Runs the server.
    #[command(hide = true)]
    Serve(Box<Config>),
}
