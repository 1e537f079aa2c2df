//! svc-core's [`Store`] on a database: the only crate that knows a driver.
//!
//! - `sql` is the binding layer: parameters, cells and statements, the same for every database.
//! - `table` is the form that serves the rows of every resource; `contacts`, `invoices` and the others name
//!   their columns and filters; `tenants`, `keys` and `outbox` hold the rest of the SQL.
//! - `sqlite` is what is particular to SQLite: its threads, its types, its errors.
//!
//! SQL is written once, with `$1`, `$2`, … in the order of their first use, which every database takes.

mod bookings;
mod contacts;
mod deliveries;
mod invoices;
mod jobs;
mod keys;
mod outbox;
mod quotes;
mod sql;
mod sqlite;
mod table;
mod tenants;
mod vault;
mod webhooks;

use std::path::PathBuf;
use std::sync::Arc;

use svc_core::env::Env;
use svc_core::store::{Store, StoreError};

pub use self::sqlite::SqliteStore;

/// Why a database cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL names no database that is supported.
    #[error("{0} is no database URL that is supported; use sqlite://PATH, such as sqlite://svc.db")]
    InvalidUrl(String),
    /// The database is away, or is not one of ours.
    #[error("cannot open the database {url}: {source}")]
    Unavailable {
        /// Which one.
        url: String,
        /// What it said.
        source: StoreError,
    },
}

/// Opens the database that `url` names, makes it when missing, and brings its schema up to date. Secrets are sealed
/// with the key in the environment variable `SVC_SECRET_KEY` (64 hex digits), or else with the one in `PATH.key`
/// beside the database, which is made when missing and belongs into every backup.
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
    let path = sqlite_path(url)?;
    let store = SqliteStore::open(&path, env).map_err(|source| unavailable(url, source))?;
    Ok(Arc::new(store))
}

/// Brings the schema up to date and returns the names of the migrations that were applied now.
///
/// # Errors
/// [`OpenError`].
pub async fn migrate(url: &str) -> Result<Vec<String>, OpenError> {
    let path = sqlite_path(url)?;
    sqlite::migrate(&path).map_err(|source| unavailable(url, source))
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
