//! The database itself.

use clap::Subcommand;

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
}
