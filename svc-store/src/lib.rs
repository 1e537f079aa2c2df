//! svc-core's [`Store`] on a database: the only crate that knows a driver.
//!
//! - `sql` is the binding layer: parameters, cells and statements, the same for every database.
//! - `table` is the form that serves the rows of every resource; `contacts`, `invoices` and the others name
//!   their columns and filters; `tenants`, `keys` and `outbox` hold the rest of the SQL.
//! - `sqlite` is what is particular to SQLite: its threads, its types, its errors.
//! - `postgres` is what is particular to PostgreSQL: its connections, its types, its errors, its notifications.
//! - `maintenance` is work on a whole database: copying, checking, backing up.
//! - `dialect` is what differs between the two in SQL.
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
//! SQL is written once, with `$1`, `$2`, … in the order of their first use, which every database takes.

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

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL names no database that is supported.
    #[error(
        "{0} is no database URL that is supported; use sqlite://PATH, such as sqlite://svc.db, or \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    InvalidUrl(String),
    /// The database is away, or is not one of ours.
    #[error("cannot open the database {url}: {source}")]
    Unavailable {
        /// Which one, without its password.
        url: String,
        /// What it said.
        source: StoreError,
    },
}

/// How a store works. The defaults are sound for a node of two to eight cores.
#[derive(Clone, Debug)]
pub struct Options {
    /// PostgreSQL: connections for reading, 4 by default. Each serves many requests at once.
    pub read_connections: usize,
    /// PostgreSQL: connections for writing, 12 by default: as many tenants can write at the same time. Together with
    /// those for reading and one for notifications, times the nodes, they must stay below its `max_connections`.
    pub write_connections: usize,
    /// PostgreSQL: how long a request waits for a connection before it fails, 10 s by default.
    pub patience: Duration,
    /// PostgreSQL: whether this process may end right after a write, as a command does. The senders of the nodes are then
    /// told by the commit itself and not after it; that costs commits that come at the same time a wait for each other.
    pub is_short_lived: bool,
    /// Seals secrets at rest, in place of the key from the environment.
    pub secret_key: Option<SecretKey>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            read_connections: 4,
            write_connections: 12,
            patience: Duration::from_secs(10),
            is_short_lived: false,
            secret_key: None,
        }
    }
}

/// Opens the database that `url` names, and brings its schema up to date.
///
/// `sqlite://PATH` is made when missing. Secrets are sealed with the key in the environment variable `SVC_SECRET_KEY`
/// (64 hex digits), or else with the one in `PATH.key` beside the database, which is made when missing and belongs
/// into every backup.
///
/// `postgres://USER:PASSWORD@HOST:PORT/DATABASE` needs PostgreSQL 13 or newer, a direct connection or a pooler that
/// keeps sessions, and `SVC_SECRET_KEY`, the same for every node. `sslmode` is `disable`, `prefer` (the default),
/// `require`, `verify-ca` or `verify-full`; `sslrootcert=PATH` names the authorities. Must be called within a Tokio
/// runtime, which runs the store's tasks.
///
/// # Errors
/// [`OpenError`].
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

/// [`open`], with other settings than the defaults.
///
/// # Errors
/// [`OpenError`].
pub async fn open_with(url: &str, env: Env, options: Options) -> Result<Arc<dyn Store>, OpenError> {
    let Options { read_connections, write_connections, patience, is_short_lived, secret_key } = options;
    if is_postgres(url) {
        let settings = postgres::Settings { read_connections, write_connections, patience, is_short_lived };
        let store = PostgresStore::open(url, env, secret_key, &settings).await;
        return Ok(Arc::new(store.map_err(|error| not_opened(url, error))?));
    }
    let path = sqlite_path(url)?;
    let store = SqliteStore::open_sealed(&path, env, secret_key).map_err(|source| unavailable(url, source))?;
    Ok(Arc::new(store))
}

/// Brings the schema up to date and returns the names of the migrations that were applied now.
///
/// # Errors
/// [`OpenError`].
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

/// The file of `sqlite://PATH`: relative as written, absolute with a third slash.
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
