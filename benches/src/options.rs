//! What can be asked for. The program starts itself again in the hidden roles, so that the processor time and
//! the memory of what is measured can be told from its own.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures svc against bare hyper and bare SQL.
#[derive(Debug, Parser)]
#[command(name = "svc-benches", args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Rows in the table that is read from and added to.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) contacts: u32,
    /// Tenants that share them evenly.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tenants: u32,
    /// Kept-alive connections, and jobs at once for the store.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    /// Length of a round.
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Rounds of each contender, in turns; medians are printed.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Only these, in this order; otherwise all.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<Subject>,
    /// Deliveries that are pending when the sender of `deliver` starts.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) pending: u32,
    /// Attempts that the aged database of `aged` has behind it, each with about 1 KB of deliveries and events.
    #[arg(long, default_value_t = 5_000_000)]
    pub(crate) attempts: u32,
    /// Where the seeded database is kept for the next run.
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
}

/// One block of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// GET of one contact.
    Get,
    /// GET of the newest 50 contacts.
    List,
    /// POST of a contact, with its event and its delivery.
    Post,
    /// What POST writes, without HTTP.
    Commit,
    /// From the commit to the receiver.
    Deliver,
    /// What years of use cost; only when it is asked for.
    Aged,
    /// POSTs and their deliveries at once, as fast as they go.
    Pipe,
    /// GET of one contact, on PostgreSQL.
    PgGet,
    /// GET of the newest 50 contacts, on PostgreSQL.
    PgList,
    /// POST of a contact, with its event and its delivery, on PostgreSQL.
    PgPost,
}

impl Subject {
    /// Whether it is measured on PostgreSQL.
    pub(crate) fn is_postgres(self) -> bool {
        matches!(self, Self::PgGet | Self::PgList | Self::PgPost)
    }
}

/// What a child process does.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Serves the API.
    #[command(hide = true)]
    ServeOurs {
        /// Its database: a file, or the URL of one on PostgreSQL.
        database: PathBuf,
        /// Also delivers.
        #[arg(long)]
        sending: bool,
        /// Counts requests, against limits that nobody reaches.
        #[arg(long)]
        counting: bool,
    },
    /// Posts one request as often as it can.
    #[command(hide = true)]
    PostBare,
    /// Serves one answer to every request.
    #[command(hide = true)]
    ServeBare,
    /// Commits as much as it can.
    #[command(hide = true)]
    Commit {
        /// How.
        by: Committer,
        /// Into which database.
        file: PathBuf,
        /// For how long.
        seconds: u64,
        /// Jobs at once.
        at_once: u32,
    },
}

/// Who commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Committer {
    /// A loop of bare SQL, one commit for each request's rows.
    Each,
    /// A loop of bare SQL, one commit for the rows of as many requests as there are connections.
    Groups,
    /// The store.
    Ours,
}

impl fmt::Display for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Each => "each",
            Self::Groups => "groups",
            Self::Ours => "ours",
        })
    }
}
