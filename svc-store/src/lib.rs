//! Stores svc's data in SQLite or PostgreSQL.
//!
//! This crate implements [`Store`], svc-core's interface to a database, and is the only crate that depends on a database
//! driver. [`open`] returns a store for a database URL. [`copy`], [`check`], [`backup`] and [`stats`] work on whole
//! databases, and are what the commands of `svc db` call.
//!
//! # Examples
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use svc_core::env::Env;
//! use svc_core::prelude::*;
//! # let dir = tempfile::tempdir()?;
//! # let url = format!("sqlite://{}", dir.path().join("svc.db").display());
//! let svc = Svc::new(svc_store::open(&url, Env::system()).await?);
//! let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await?;
//! assert_eq!(svc.accounts().list(None, 10).await?, [tenant]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Features
//!
//! - `sqlite` and `postgres`, both on by default: the databases. One that is left out is not compiled.
//! - `sqlx` runs operations of svc inside a transaction of the application, or on its pool: see the module `sqlx`.
//! - `maintenance`, on by default, needs both: [`copy`], [`check`], [`backup`] and [`stats`].
//!
//! # Modules
//!
//! SQL is written once, with the parameters `$1`, `$2`, … numbered in the order of their first use, which both databases
//! accept.
//!
//! - `sql` is the binding layer: parameters, rows and cells. `column` defines how each Rust type is stored. Both are the
//!   same for every database.
//! - `table` has the macro by which each table names its columns once, and what follows from that: its statements, and the
//!   repository of every resource.
//! - `search` has the texts by which records are found.
//! - `accounts`, `resources` and `webhooks` have a file per table, with its columns and the rest of its SQL. Their names are
//!   those of svc-core's modules and of its repository traits.
//! - `sqlite` has the threads, types and errors of SQLite.
//! - `postgres` has the connections, types, errors and notifications of PostgreSQL.
//! - `dialect` has the differences between the two in SQL, and `database_clock` the time of a database that has a clock.
//! - `migrations` has the versions of the schema, and the runner that applies them.
//! - `vault` encrypts secrets before they are stored.
//! - `new_file` creates files that are complete under their names, and `unfinished` detects databases that are not.
//! - `maintenance` works on whole databases: it copies, checks, backs up and measures them.
//!
//! # Tables
//!
//! Ids are UUIDv7 with the microseconds in them, so they sort like `created_at`. On SQLite, what the API lists is clustered on
//! `(tenant_id, id)`: one tree serves GET by id and "newest first". Contacts and subscriptions, which can be deleted, have
//! `live` before the id, so lists never walk over deleted rows. Contacts that were never changed have one index by email, as
//! the orders of their creation and of their change are the same; those that were changed have one for each.
//!
//! Events, deliveries and the logs of attempts are appended to pages that all tenants share, since the cost of a write is the
//! pages that it touches. The id of a delivery is made for the time of its event, of which a tenant has one in a microsecond,
//! so the deliveries of an event are a range of ids. The deliveries of an endpoint are in two indexes: the pending ones, which
//! are few, and those that have ended. A list of both merges them.
//!
//! The planner's statistics of SQLite are fixed in the migrations, and the planner settings of a PostgreSQL connection make
//! plans depend on the schema alone. Tests read the plan of every list.

#![cfg_attr(
    not(feature = "maintenance"),
    expect(dead_code, reason = "what a part that is left out alone uses; with all features nothing is unused")
)]

mod accounts;
mod column;
mod database_clock;
mod dialect;
mod locked_tenants;
#[cfg(feature = "maintenance")]
mod maintenance;
#[cfg(feature = "maintenance")]
mod maintenance_connection;
mod migrations;
mod new_file;
#[cfg(feature = "postgres")]
mod postgres;
mod resources;
mod search;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod slow_reads;
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(feature = "sqlx")]
pub mod sqlx;
#[cfg(test)]
mod statements;
mod table;
#[cfg(all(test, feature = "postgres"))]
mod test_databases;
mod unfinished;
mod vault;
mod webhooks;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::{Store, StoreResult};

#[cfg(feature = "maintenance")]
pub use self::maintenance::{
    Backup, CheckReport, Comparison, CopyReport, DbStats, Digest, Finding, MaintenanceError, Phase, Progress,
};
#[cfg(feature = "maintenance")]
pub use self::maintenance::{backup, check, copy, stats};
#[cfg(feature = "postgres")]
pub use self::postgres::PostgresStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteStore;
pub use self::vault::SecretKey;

/// The error when a database cannot be opened.
///
/// Its text contains the URL without its password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is malformed, or names a kind of database that is not supported. The text is the scheme of the URL, and
    /// the reason if there is one. It never contains the rest of the URL, which may include a password.
    #[error(
        "{0} is not a supported database URL; use sqlite://PATH, such as sqlite://svc.db, or \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    InvalidUrl(String),
    /// The URL is that of a database which this crate was built without. The text is the name of the missing feature.
    #[error("this program cannot open the database, as svc-store was built without its feature {0:?}")]
    MissingFeature(&'static str),
    /// There is no SQLite file at this path, and [`Options::create_missing`] is `false`.
    #[error("there is no database at {}", .0.display())]
    NotFound(PathBuf),
    /// The folder that the SQLite file is to be in does not exist.
    #[error("the folder {} does not exist; create it, or choose another path for the database", .0.display())]
    NoFolder(PathBuf),
    /// The database cannot be reached or read, its secrets are encrypted with another key, its schema does not fit this
    /// version of the program, or it is not complete.
    #[error("cannot open the database {url}: {source}")]
    Unavailable {
        /// The URL, without its password.
        url: String,
        /// The cause.
        source: StoreError,
    },
}

/// Options of a store, for [`open_with`].
///
/// The defaults suit a server with two to eight cores. SQLite uses `create_missing` and `secret_key` only.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether a SQLite file that does not exist is created. The default is `true`. With `false`, opening it fails with
    /// [`OpenError::NotFound`], so that a mistyped path is noticed.
    pub create_missing: bool,
    /// The number of PostgreSQL connections for reading. The default is 4, and the minimum is 1. A connection runs the
    /// reads of up to 64 requests at once. Half of them, two at most, are for reads that take long, of which each account has one
    /// at a time.
    pub read_connections: usize,
    /// The number of PostgreSQL connections for writing. The default is 12, and the minimum is 1. Each connection runs one
    /// transaction at a time. While all are busy, waiting writes of several tenants share transactions.
    ///
    /// A store opens two more connections, for notifications and for the request counts of rate limits. The sum over all
    /// nodes must stay below PostgreSQL's `max_connections`.
    pub write_connections: usize,
    /// Whether PostgreSQL's planner is told to read every list from its index, whatever its statistics say. With `None`, the
    /// default, it is, except on Citus, which has no such plans for queries of several servers.
    pub planner_settings: Option<bool>,
    /// How long a transaction waits for a PostgreSQL connection before it fails with
    /// [`StoreError::Unavailable`]. The default is 10 s.
    pub acquire_timeout: Duration,
    /// Whether this process may exit right after a write, as a command-line tool does. The default is `false`.
    ///
    /// A commit that adds due deliveries wakes the webhook senders of the other PostgreSQL nodes. A long-running process
    /// notifies them after the commit. A short-lived process notifies them in the transaction itself, which makes
    /// concurrent commits wait for each other.
    pub is_short_lived: bool,
    /// The key that encrypts secrets at rest. With `None`, the default, it is read from the environment or from the key
    /// file, as described at [`open`].
    pub secret_key: Option<SecretKey>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            create_missing: true,
            read_connections: 4,
            write_connections: 12,
            planner_settings: None,
            acquire_timeout: Duration::from_secs(10),
            is_short_lived: false,
            secret_key: None,
        }
    }
}

/// Opens the database at `url`, and migrates its schema to the version of this program.
///
/// # SQLite
/// The URL is `sqlite://PATH`, or `sqlite:///PATH` for an absolute path. The file is created if it does not exist, but not
/// its folder.
///
/// Secrets are encrypted with the key in the environment variable `SVC_SECRET_KEY` (64 hex digits). If it is not set, the
/// key is in the file `PATH.key` beside the database. That file is created right after the schema of a new database. Include
/// it in every backup. A database that is missing or has no tables although it has a key file is refused, as its restore did
/// not finish.
///
/// # PostgreSQL
/// The URL is `postgres://USER:PASSWORD@HOST:PORT/DATABASE`. The server must be PostgreSQL 13 or newer. Connect to it
/// directly, or through a pooler in session mode. `SVC_SECRET_KEY` must be set to the same value on every node. Call this
/// function within a Tokio runtime, which runs the tasks of the store.
///
/// The parameter `sslmode` is `disable`, `prefer` (the default), `require`, `verify-ca` or `verify-full`, and
/// `sslrootcert=PATH` is a file with the trusted certificate authorities.
///
/// # Errors
/// [`OpenError::InvalidUrl`] when the URL is invalid, [`OpenError::NoFolder`] when the folder of a SQLite file does not
/// exist, and [`OpenError::Unavailable`] when the database cannot be opened or migrated, or is not complete.
///
/// # Examples
/// ```
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let dir = tempfile::tempdir()?;
/// let url = format!("sqlite://{}", dir.path().join("svc.db").display());
/// let store = svc_store::open(&url, svc_core::env::Env::system()).await?;
/// # let _ = store;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub async fn open(url: &str, env: Env) -> Result<Arc<dyn Store>, OpenError> {
    open_with(url, env, Options::default()).await
}

/// Opens a database as [`open`] does, with the given options.
///
/// # Errors
/// Returns the errors of [`open`], and [`OpenError::NotFound`] when the file does not exist and
/// [`Options::create_missing`] is `false`.
pub async fn open_with(url: &str, env: Env, options: Options) -> Result<Arc<dyn Store>, OpenError> {
    if is_postgres(url) {
        #[cfg(feature = "postgres")]
        return Ok(Arc::new(PostgresStore::open(url, env, options).await?));
        #[cfg(not(feature = "postgres"))]
        return Err(OpenError::MissingFeature("postgres"));
    }
    let path = sqlite_path(url)?;
    check_path(&path, options.create_missing)?;
    #[cfg(feature = "sqlite")]
    return open_sqlite(url, &path, env, options.secret_key);
    #[cfg(not(feature = "sqlite"))]
    return Err(OpenError::MissingFeature("sqlite"));
}

#[cfg(feature = "sqlite")]
fn open_sqlite(url: &str, path: &Path, env: Env, key: Option<SecretKey>) -> Result<Arc<dyn Store>, OpenError> {
    let store = SqliteStore::open_with_key(path, env, key);
    Ok(Arc::new(store.map_err(|source| unavailable(url, source))?))
}

/// Migrates the schema of the database at `url` to the version of this program, and returns the names of the migrations
/// that were applied. The list is empty when the schema was up to date.
///
/// [`open`] migrates the schema as well. All migrations are applied in one transaction, and several processes may call
/// this function at the same time.
///
/// # Errors
/// Returns the errors of [`open`].
pub async fn migrate(url: &str) -> Result<Vec<String>, OpenError> {
    migrate_and_report(url).await.map(|report| report.applied)
}

/// The effect of [`migrate_and_report`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MigrationReport {
    /// The names of the migrations that were applied.
    pub applied: Vec<String>,
    /// The step that could not be done, and what to do about it, in whole sentences for the operator. The schema is up to date nevertheless.
    pub note: Option<String>,
}

/// Does what [`migrate`] does, and also says what of the upkeep that belongs to it could not be done.
///
/// # Errors
/// Returns the errors of [`open`].
pub async fn migrate_and_report(url: &str) -> Result<MigrationReport, OpenError> {
    if is_postgres(url) {
        #[cfg(feature = "postgres")]
        return postgres::migrate(url).await;
        #[cfg(not(feature = "postgres"))]
        return Err(OpenError::MissingFeature("postgres"));
    }
    let path = sqlite_path(url)?;
    check_path(&path, true)?;
    #[cfg(feature = "sqlite")]
    return sqlite::migrate(&path)
        .map(|applied| MigrationReport { applied, note: None })
        .map_err(|source| unavailable(url, source));
    #[cfg(not(feature = "sqlite"))]
    return Err(OpenError::MissingFeature("sqlite"));
}

/// Returns the path of the key file beside a SQLite database if other users of the machine may read or change it.
///
/// Returns `None` if the database has no such file, or if `SVC_SECRET_KEY` is used in its place. Programs warn about it:
/// a person who can read the key and the database can read every secret.
pub fn exposed_key_file(url: &str) -> Option<PathBuf> {
    if is_postgres(url) { None } else { vault::exposed_key_file(&sqlite_path(url).ok()?) }
}

/// Returns the path in a SQLite URL, or `None` for any other URL.
pub fn sqlite_file(url: &str) -> Option<PathBuf> {
    sqlite_path(url).ok()
}

/// Makes the path in a SQLite URL absolute, so that the URL holds in every folder. Returns any other URL as it is.
///
/// # Examples
/// ```
/// assert_eq!(svc_store::absolute_url("sqlite:///var/lib/svc.db"), "sqlite:///var/lib/svc.db");
/// assert!(svc_store::absolute_url("sqlite://svc.db").starts_with("sqlite:///"));
/// assert_eq!(svc_store::absolute_url("postgres://svc@db/svc"), "postgres://svc@db/svc");
/// ```
pub fn absolute_url(url: &str) -> String {
    match sqlite_path(url).map(std::path::absolute) {
        Ok(Ok(path)) => format!("sqlite://{}", path.display()),
        _ => url.to_owned(),
    }
}

/// The most units of work that can wait. It is far more than there are connections: beyond it the service is overloaded.
const QUEUE_CAPACITY: usize = 16_384;

/// Checks that a queue in which so many units of work wait takes another one.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn check_queue(is_open: bool, waiting: usize) -> StoreResult<()> {
    if !is_open {
        return Err(StoreError::Closed);
    }
    if waiting >= QUEUE_CAPACITY {
        return Err(StoreError::Unavailable(format!("the queue is full: {QUEUE_CAPACITY} transactions are waiting")));
    }
    Ok(())
}

/// Checks that a SQLite file exists, or with `create_missing` that it can be created.
fn check_path(path: &Path, create_missing: bool) -> Result<(), OpenError> {
    if path.exists() {
        return Ok(());
    }
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.exists() => {
            Err(OpenError::NoFolder(folder.to_owned()))
        }
        _ if create_missing => Ok(()),
        _ => Err(OpenError::NotFound(path.to_owned())),
    }
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn unavailable(url: &str, source: StoreError) -> OpenError {
    let url = url.to_owned();
    #[cfg(feature = "postgres")]
    let url = postgres::without_password(&url);
    OpenError::Unavailable { url, source }
}

/// Returns the path in `sqlite://PATH`. It is absolute when it starts with a third slash.
fn sqlite_path(url: &str) -> Result<PathBuf, OpenError> {
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
    match path {
        Some(path) if !path.is_empty() && !path.contains(['?', '#']) => Ok(PathBuf::from(path)),
        // Only the scheme is shown, as the rest may contain a password.
        _ => Err(OpenError::InvalidUrl(match url.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://…"),
            None => "The given value".to_owned(),
        })),
    }
}
