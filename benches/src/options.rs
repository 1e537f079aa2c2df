//! The command line options. The program starts itself again with the hidden subcommands, so that the processor time
//! and memory of what is measured are separate from its own.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Measures svc against bare hyper, bare SQL and pgbench.
#[derive(Debug, Parser)]
#[command(name = "svc-benches", args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: Options,
    #[command(subcommand)]
    pub(crate) role: Option<Role>,
}

/// What to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Number of contacts in the database.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) contacts: u32,
    /// Number of tenants, which share the contacts evenly.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tenants: u32,
    /// Number of keep-alive connections, and of concurrent transactions for the store.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) connections: u32,
    /// Length of a measuring round in seconds.
    #[arg(long, default_value_t = 5)]
    pub(crate) seconds: u64,
    /// Number of measuring rounds of each contender; contenders alternate, and medians are printed.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Measures these blocks only, in this order. All but `aged`, `scale`, `growth`, `dashboard`,
    /// `worklists`, `filters` and `search` by default.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<Subject>,
    /// Number of pending deliveries when the sender of `deliver` starts.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) pending: u32,
    /// Number of deliveries of the account whose pages `dashboard` measures.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) deliveries: u32,
    /// Number of bookings, of jobs and of invoices of the account whose pages `worklists` measures.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) records: u32,
    /// Number of past attempts in the database of `aged`, each with about 1 KB of deliveries and events.
    #[arg(long, default_value_t = 5_000_000)]
    pub(crate) attempts: u32,
    /// Greatest number of contacts and of deliveries in the databases of `growth`.
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) largest: u32,
    /// File that `growth` draws its table into, as SVG.
    #[arg(long, value_name = "FILE")]
    pub(crate) picture: Option<PathBuf>,
    /// File in which the seeded database is kept for the next run.
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
}

/// A block of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// GET of one contact.
    Get,
    /// GET of one contact by an access token of an app, beside an API key.
    Token,
    /// GET of the newest 50 contacts.
    List,
    /// POST of a contact, with its event and its delivery.
    Post,
    /// The writes of a POST, without HTTP.
    Commit,
    /// Deliveries of a backlog, and the time from a commit to the receiver.
    Deliver,
    /// A database with years of history; measured only if it is named.
    Aged,
    /// POSTs and their deliveries together, at full speed.
    Pipe,
    /// Nine GETs for each POST, with half of the POSTs that the server can answer.
    Mixed,
    /// Figures at the limits of scale; measured only if it is named.
    Scale,
    /// Pages of the dashboard, its live lists and the request log; measured only if it is named.
    Dashboard,
    /// Pages of the dashboard for the work of a business; measured only if it is named.
    Worklists,
    /// What filters and an order of webhook subscriptions cost; measured only if it is named.
    Filters,
    /// Finding records by a text, and what the index costs a POST; measured only if it is named.
    Search,
    /// What operations cost as the database grows; measured only if it is named.
    Growth,
    /// GET of one contact, on PostgreSQL.
    PgGet,
    /// GET of the newest 50 contacts, on PostgreSQL.
    PgList,
    /// POST of a contact, with its event and its delivery, on PostgreSQL.
    PgPost,
}

impl Subject {
    /// Returns whether the block is measured on PostgreSQL.
    pub(crate) fn is_postgres(self) -> bool {
        matches!(self, Self::PgGet | Self::PgList | Self::PgPost)
    }
}

/// What a child process does.
#[derive(Debug, Subcommand)]
pub(crate) enum Role {
    /// Serves the API.
    #[command(hide = true)]
    ServeSvc {
        /// The database: a file, or a PostgreSQL URL.
        database: PathBuf,
        /// Sends deliveries as well.
        #[arg(long)]
        sending: bool,
        /// Counts requests against a rate limit that is never reached.
        #[arg(long)]
        counting: bool,
        /// Brings the index of searches up to date as well.
        #[arg(long)]
        indexing: bool,
    },
    /// Serves the API and the dashboard, and works in the background.
    #[command(hide = true)]
    ServeDashboard {
        /// The database file.
        database: PathBuf,
        /// Keeps the request log.
        #[arg(long)]
        request_log: bool,
    },
    /// Posts one request repeatedly at full speed.
    #[command(hide = true)]
    PostBare,
    /// Serves a fixed response.
    #[command(hide = true)]
    ServeBare,
    /// Commits at full speed.
    #[command(hide = true)]
    Commit {
        /// How to commit.
        by: Committer,
        /// The database file.
        file: PathBuf,
        /// For how many seconds.
        seconds: u64,
        /// Concurrent transactions.
        concurrency: u32,
    },
}

/// How rows are committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Committer {
    /// Bare SQL, one commit for the rows of each request.
    Each,
    /// Bare SQL, one commit for the rows of as many requests as there are connections.
    Groups,
    /// svc's store.
    Svc,
}

impl fmt::Display for Committer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Each => "each",
            Self::Groups => "groups",
            Self::Svc => "svc",
        })
    }
}
