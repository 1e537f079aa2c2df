//! The database itself.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use crate::values;

/// `svc db …`
#[derive(Clone, Debug, Subcommand)]
pub enum DbCommand {
    /// Bring the schema up to date.
    ///
    /// Every other command and the server do so too when they start; several at once are safe.
    #[command(after_help = "Example:\n  svc db migrate --database-url sqlite:///var/lib/svc/svc.db")]
    Migrate,
    /// Copy everything from one database to another, such as from SQLite to PostgreSQL.
    ///
    /// All tenants with everything of theirs, their clocks and their numbers. Keys, ids and cursors of clients stay
    /// good. The target must hold no tenants. Stop the servers first: what they write meanwhile is not copied. Secrets
    /// are copied sealed, so both databases have the same key: set SVC_SECRET_KEY to the source's, which for SQLite is
    /// the content of PATH.key (a new SQLite file gets it beside it by itself).
    ///
    /// At the end both are read and compared, table by table: rows, and a checksum of what is in them. A difference is
    /// a failure. A copy that was broken off goes on with --resume. Request counts of rate limits are not copied.
    #[command(after_help = "Examples:\n  SVC_SECRET_KEY=$(cat svc.db.key) \\\n    \
                      svc db copy sqlite://svc.db postgres://svc:secret@db.internal/svc\n  \
                      svc db copy sqlite://svc.db sqlite://new.db --resume")]
    Copy {
        /// Database to copy from.
        #[arg(value_name = "FROM")]
        from: String,
        /// Database to copy to; a SQLite file is made when missing.
        #[arg(value_name = "TO")]
        to: String,
        /// Go on with a copy from the same database that was broken off.
        #[arg(long)]
        resume: bool,
    },
    /// Check that the database is sound.
    ///
    /// Reads everything in one snapshot, beside a running server, and prints each finding with its table and id: a
    /// damaged file, rows that refer to what is not there, rows that cannot be read, secrets that cannot be opened,
    /// counters behind their numbers, deliveries that are never sent. The exit code is 1 when there is one.
    #[command(
        after_help = "Examples:\n  svc db check\n  svc db check --database-url sqlite:///var/backups/svc.db --json"
    )]
    Check,
    /// Back a SQLite database up to a file.
    ///
    /// The copy is that of one moment, also while a server writes, and readable by its owner only. The key of its
    /// secrets is copied beside it, to FILE.key, unless it comes from SVC_SECRET_KEY: a backup needs both. Nothing is
    /// ever overwritten. To restore, stop the server, put both back, and remove PATH-wal and PATH-shm. For PostgreSQL use
    /// pg_dump, and keep SVC_SECRET_KEY.
    #[command(after_help = "Example:\n  svc db backup /var/backups/svc-2026-03-14.db")]
    Backup {
        /// File to make.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Tell how much the database holds.
    ///
    /// Rows per table, its size, deliveries per state, since when the oldest is pending, and the schema.
    #[command(after_help = "Example:\n  svc db stats --json")]
    Stats,
    /// Delete finished deliveries, their logs and their events, once they are old.
    ///
    /// Age is that of the event. Also deleted are events without deliveries, finished replays, and answers under
    /// Idempotency-Keys and signatures that have expired. What is pending or held stays, with its event. Goes in small
    /// steps beside running servers, which do the same by themselves with their own --retention.
    #[command(after_help = "Examples:\n  svc db prune --retention 90d --dry-run\n  svc db prune --retention 90d")]
    Prune {
        /// How long to keep events.
        #[arg(long, value_parser = values::lifetime, allow_hyphen_values = true, default_value = "30d", env = "SVC_RETENTION", value_name = "DURATION")]
        retention: Duration,
        /// Only count.
        #[arg(long)]
        dry_run: bool,
    },
}
