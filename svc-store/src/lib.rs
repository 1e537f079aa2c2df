//! svc-core's [`Store`] on a database: the only crate that knows a driver.
//!
//! - `sql` is the binding layer, and `column` says how values are stored: the same for every database.
//! - `record` has the macro by which each table names its columns once, and the statements that follow from that.
//! - `accounts`, `resources` and `webhooks` have a file per table, with its columns and the rest of its SQL. Their names are
//!   those of svc-core's modules and of its repository traits.
//! - `repository` implements the generic repository of every resource.
//! - `sqlite` is specific to SQLite: its threads, types and errors.
//! - `postgres` is specific to PostgreSQL: its connections, types, errors and notifications.
//! - `dialect` has the differences between the two in SQL.
//! - `migrations` are the versions of the schema, and the runner that applies them.
//! - `maintenance` works on whole databases: copying, checking, backing up, measuring.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use svc_core::env::Env;
//! use svc_core::accounts::tenants;
//! # let dir = tempfile::tempdir()?;
//! # let url = format!("sqlite://{}", dir.path().join("svc.db").display());
//! let store = svc_store::open(&url, Env::system()).await?;
//! let tenants = store.read("example", |tx| Box::pin(async move { Ok(tx.tenants().await?) })).await?;
//! assert!(tenants.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! SQL is written once, with `$1`, `$2`, … numbered in the order of their first use, which both databases accept.

mod accounts;
mod bounded_queue;
mod column;
mod dialect;
mod maintenance;
mod migrations;
mod postgres;
mod record;
mod repository;
mod resources;
mod sql;
mod sqlite;
#[cfg(test)]
mod statements;
mod vault;
mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::Store;

pub use self::maintenance::{
    Backup, CheckReport, Comparison, CopyReport, DbStats, Digest, Finding, MaintenanceError, Phase, Progress,
};
pub use self::maintenance::{backup, check, copy, stats};
use self::postgres::{OpenFailure, PostgresStore};
pub use self::sqlite::SqliteStore;
pub use self::vault::SecretKey;

/// The error when a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is not that of a supported database.
    #[error(
        "{0} is not a supported database URL; use sqlite://PATH, such as sqlite://svc.db, or \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    InvalidUrl(String),
    /// The database is not available, is not one of this service, or has a schema of another version.
    #[error("cannot open the database {url}: {source}")]
    Unavailable {
        /// The URL, without its password.
        url: String,
        /// The cause.
        source: StoreError,
    },
}

/// Options of a store. The defaults suit a node with two to eight cores.
#[derive(Clone, Debug)]
pub struct Options {
    /// PostgreSQL: the number of connections for reading, 4 by default. Each serves many requests at once.
    pub read_connections: usize,
    /// PostgreSQL: the number of connections for writing, 12 by default: as many tenants can write at the same time. A node
    /// uses two more connections, for notifications and for request counts. The sum over all nodes must stay below
    /// PostgreSQL's `max_connections`.
    pub write_connections: usize,
    /// PostgreSQL: how long a transaction waits for a connection before it fails, 10 s by default.
    pub acquire_timeout: Duration,
    /// PostgreSQL: whether this process may end right after a write, as a command does. The senders of other nodes are then
    /// notified by the commit itself instead of after it, for which concurrent commits wait for each other.
    pub is_short_lived: bool,
    /// The key that encrypts secrets at rest, in place of the key from the environment.
    pub secret_key: Option<SecretKey>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            read_connections: 4,
            write_connections: 12,
            acquire_timeout: Duration::from_secs(10),
            is_short_lived: false,
            secret_key: None,
        }
    }
}

/// Opens the database that `url` names, and migrates its schema to the version of this program.
///
/// The file of `sqlite://PATH` is created when it is missing. Secrets are encrypted with the key in the environment
/// variable `SVC_SECRET_KEY` (64 hex digits), or else with the one in `PATH.key` beside the database. That file is created
/// with the database, and belongs in every backup.
///
/// `postgres://USER:PASSWORD@HOST:PORT/DATABASE` needs PostgreSQL 13 or newer, a direct connection or a pooler that
/// keeps sessions, and `SVC_SECRET_KEY` with the same value on every node. `sslmode` is `disable`, `prefer` (the default),
/// `require`, `verify-ca` or `verify-full`; `sslrootcert=PATH` names a file with the trusted authorities. Call it within a Tokio
/// runtime, which runs the tasks of the store.
///
/// # Errors
/// [`OpenError`] when the URL is invalid, or the database cannot be opened or migrated.
///
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

/// Opens a database as [`open`] does, with options.
///
/// # Errors
/// [`OpenError`] when the URL is invalid, or the database cannot be opened or migrated.
pub async fn open_with(url: &str, env: Env, options: Options) -> Result<Arc<dyn Store>, OpenError> {
    let Options { read_connections, write_connections, acquire_timeout, is_short_lived, secret_key } = options;
    if is_postgres(url) {
        let settings = postgres::Settings { read_connections, write_connections, acquire_timeout, is_short_lived };
        let store = PostgresStore::open(url, env, secret_key, &settings).await;
        return Ok(Arc::new(store.map_err(|error| not_opened(url, error))?));
    }
    let path = sqlite_path(url)?;
    let store = SqliteStore::open_sealed(&path, env, secret_key).map_err(|source| unavailable(url, source))?;
    Ok(Arc::new(store))
}

/// Migrates the schema to the version of this program, and returns the names of the migrations that were applied.
///
/// # Errors
/// [`OpenError`] when the URL is invalid, or the database cannot be opened or migrated.
pub async fn migrate(url: &str) -> Result<Vec<String>, OpenError> {
    if is_postgres(url) {
        return postgres::migrate(url).await.map_err(|error| not_opened(url, error));
    }
    let path = sqlite_path(url)?;
    sqlite::migrate(&path).map_err(|source| unavailable(url, source))
}

fn is_postgres(url: &str) -> bool {
    url.starts_with("postgres://") || url.starts_with("postgresql://")
}

fn not_opened(url: &str, error: OpenFailure) -> OpenError {
    match error {
        OpenFailure::Url(error) => OpenError::InvalidUrl(format!("postgres://… ({error})")),
        OpenFailure::Store(source) => unavailable(&postgres::without_password(url), source),
    }
}

fn unavailable(url: &str, source: StoreError) -> OpenError {
    OpenError::Unavailable { url: url.to_owned(), source }
}

/// Returns the file of `sqlite://PATH`: relative as written, absolute with a third slash.
fn sqlite_path(url: &str) -> Result<PathBuf, OpenError> {
    let path = url.strip_prefix("sqlite://").or_else(|| url.strip_prefix("sqlite:"));
    match path {
        Some(path) if !path.is_empty() && !path.contains(['?', '#']) => Ok(PathBuf::from(path)),
        // The rest may hold a password.
        _ => Err(OpenError::InvalidUrl(match url.split_once("://") {
            Some((scheme, _)) => format!("{scheme}://…"),
            None => "This".to_owned(),
        })),
    }
}
