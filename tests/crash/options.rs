//! What can be asked for.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use svc_server::program::config::Config;

/// Kills the server under load and checks that nothing was lost.
#[derive(Debug, Parser)]
#[command(name = "crash", args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// The run.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often the server is killed.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Repeats the requests and the moments of an earlier run.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Database; tenants of its own are added to it. `postgres` alone stands for a PostgreSQL server that is made for
    /// the run. By default a new SQLite file that vanishes.
    #[arg(long, value_name = "URL")]
    pub(crate) database_url: Option<String>,
    /// Tenants, with five subscriptions each.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tenants: u32,
    /// Clients of each tenant, each with one request under way.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: u32,
    /// The longest time that the server runs before it is killed.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = humantime::parse_duration)]
    pub(crate) longest: Duration,
    /// Deadline of an attempt. What was under way at a kill is due again after twice as long and ten seconds.
    #[arg(long, value_name = "DURATION", default_value = "1500ms", value_parser = humantime::parse_duration)]
    pub(crate) webhook_timeout: Duration,
    /// The disk fails for a while in each round, before the server goes on, is killed, or loses its power.
    #[arg(long, value_enum)]
    pub(crate) faults: Option<Faults>,
    /// Another program to kill than the server that is built into this one.
    #[arg(long, value_name = "FILE")]
    pub(crate) server: Option<PathBuf>,
}

/// What goes wrong with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Faults {
    /// fsync fails, of all files or in checkpoints alone (SQLite, Linux; needs a C compiler).
    Fsync,
    /// Each write is cut short, and the next one refused (the same).
    NoSpace,
    /// It is really full: the database lies on a small one in memory (needs root, or sudo that does not ask).
    DiskFull,
}

/// What the program does as its own child.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Is the server.
    #[command(hide = true)]
    Serve(Box<Config>),
}
