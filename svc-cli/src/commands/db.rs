//! `svc db`.

mod backup;
mod check;
mod copy;
mod prune;
mod repair_clock;
mod stats;

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use serde_json::json;

use crate::exit::Failure;
use crate::ids::IdArg;
use crate::output::{self, Outcome};
use crate::service::Service;
use crate::session::Session;
use crate::times::span;
use crate::values;

/// Maintain the database: migrate, check, copy, back up, measure and prune it.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc db migrate")]
pub(crate) enum DbCommand {
    /// Bring the schema up to date.
    ///
    /// The server also does this when it starts, and so do all other commands that open the database, except `svc db backup`,
    /// `svc db check` and `svc db stats`. Several processes can do it at the same time.
    #[command(after_help = "Example:\n  svc db migrate --database-url sqlite:///var/lib/svc/svc.db")]
    Migrate,
    /// Copy everything from one database to another, such as from SQLite to PostgreSQL.
    ///
    /// Copies all accounts with all of their data, clocks and number counters, so that the API keys, ids and cursors of
    /// clients remain valid. The request counts of rate limits are not copied. The target database must contain no
    /// accounts. Stop the servers first: changes that they make during the copy are not copied.
    ///
    /// Secrets are copied in encrypted form, so both databases need the same key. Set SVC_SECRET_KEY to the key of the
    /// source, which for SQLite is the content of PATH.key. A new SQLite file gets its key file automatically.
    ///
    /// At the end, the row counts and checksums of all tables are compared, and a difference is a failure. To continue
    /// an interrupted copy, run the command with --resume.
    #[command(after_help = "Examples:\n  SVC_SECRET_KEY=$(cat svc.db.key) \\\n    \
                      svc db copy sqlite://svc.db postgres://svc:secret@db.internal/svc\n  \
                      svc db copy sqlite://svc.db sqlite://new.db --resume")]
    Copy {
        /// URL of the database to copy from.
        #[arg(value_name = "FROM")]
        from: String,
        /// URL of the database to copy to. A SQLite file that does not exist is created.
        #[arg(value_name = "TO")]
        to: String,
        /// Continue an interrupted copy from the same source.
        #[arg(long)]
        resume: bool,
    },
    /// Check the integrity of the database.
    ///
    /// Reads all rows in one snapshot, changes nothing, and can run while servers use the database. A file that is not a
    /// complete database of svc is refused, and so is one with the schema of another version; `svc db migrate` brings an
    /// older one up to date. Each problem is printed with its table and id: a damaged file, references to rows that do not
    /// exist, rows that cannot be read, secrets that cannot be decrypted, number counters that lag behind, deliveries that
    /// would never be sent. The exit code is 1 when there is a problem.
    #[command(
        after_help = "Examples:\n  svc db check\n  svc db check --database-url sqlite:///var/backups/svc.db --json"
    )]
    Check,
    /// Back up a SQLite database to a file.
    ///
    /// The backup is a consistent snapshot, even while a server writes to the database. Only its owner can read it. The
    /// key that encrypts the secrets is copied to FILE.key, unless it comes from SVC_SECRET_KEY. Keep both: the backup
    /// is incomplete without the key. Existing files are never overwritten.
    ///
    /// The files are written as FILE.partial and FILE.key.partial, and get their names when they are complete. Files that a
    /// killed backup has left with these names can be deleted; the next backup to FILE replaces them.
    ///
    /// To restore a backup, stop the server, copy both files back, and delete PATH-wal and PATH-shm. For PostgreSQL,
    /// use pg_dump and keep SVC_SECRET_KEY.
    #[command(after_help = "Example:\n  svc db backup /var/backups/svc-2026-03-14.db")]
    Backup {
        /// File to create.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Set back the clocks of accounts that are ahead of now.
    ///
    /// Each write of an account takes a time after all of its earlier writes. A write under a clock that was ahead took the
    /// account's clock along, so that its new records have times in the future. This command sets such clocks back to now,
    /// or to the time of the account's latest record if that is later: clients that synchronise have seen that time, and
    /// would miss changes with earlier ones. Records keep their times. First set the clock of the machine, then run the
    /// command; servers may run meanwhile. `svc db check` reports these accounts as well.
    #[command(after_help = "Examples:\n  svc db repair-clock\n  \
                      svc db repair-clock --account 8d2f41c07b9e")]
    RepairClock {
        /// Id of the account, or a part of it that no other account has. The default is all accounts.
        #[arg(long, alias = "tenant", value_name = "ID")]
        account: Option<IdArg>,
    },
    /// Show the size and the contents of the database in numbers.
    ///
    /// Shows the rows per table, the size in bytes, the deliveries per status, the age of the oldest pending delivery
    /// and the version of the schema. It changes nothing, so a database with an older schema is refused until `svc db migrate`
    /// has brought it up to date.
    #[command(after_help = "Example:\n  svc db stats --json")]
    Stats,
    /// Delete old deliveries with their logs and events.
    ///
    /// The age of a delivery is the age of its event. Held deliveries are deleted like those that succeeded or failed. Events
    /// without deliveries, finished replays, expired responses stored for Idempotency-Keys and expired request
    /// signatures are also deleted. Pending deliveries stay, with their events. The command deletes in small transactions
    /// and can run while servers use the database. On PostgreSQL it drops whole partitions of events, so the newest of those
    /// that have expired stay until all of their partition have. Servers prune automatically, by their own --retention.
    #[command(after_help = "Examples:\n  svc db prune --retention 90d --dry-run\n  svc db prune --retention 90d")]
    Prune {
        /// How long to keep events, such as 90d.
        #[arg(long, value_parser = values::lifetime, allow_hyphen_values = true, default_value = "30d", env = "SVC_RETENTION", value_name = "DURATION")]
        retention: Duration,
        /// Count what would be deleted, and delete nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

pub(crate) async fn run(session: &Session, command: DbCommand) -> Result<Outcome, Failure> {
    let database = session.database("svc db")?;
    let url = &database.url;
    match command {
        DbCommand::Migrate => {
            let report = svc_store::migrate_and_report(url).await?;
            if let Some(note) = &report.note {
                output::note(note);
            }
            let applied = report.applied;
            let text = match applied.as_slice() {
                [] => "The schema is up to date.".to_owned(),
                names => format!("Applied migrations: {}.", names.join(", ")),
            };
            Outcome::new(&json!({ "applied": applied }), text)
        }
        DbCommand::Check => check::run(url).await,
        DbCommand::Stats => stats::run(url).await,
        DbCommand::Prune { retention, dry_run } => {
            if !dry_run {
                let age = span(retention);
                session
                    .confirm(&format!("Delete finished deliveries older than {age}, with their logs and events?"))?;
            }
            prune::run(&*database.open(false).await?, retention, dry_run).await
        }
        DbCommand::RepairClock { account } => {
            let service = Service::of_database(database.open(false).await?);
            repair_clock::run(&service, account.as_ref()).await
        }
        DbCommand::Backup { file } => backup::run(url, &file).await,
        DbCommand::Copy { from, to, resume } => copy::run(&from, &to, resume).await,
    }
}
