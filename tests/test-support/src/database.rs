//! The database of a run: a temporary SQLite file, a temporary PostgreSQL server, or the database of a URL.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use svc_core::env::Env;
use svc_core::store::Store;
use svc_core::values::HostPolicy;
use svc_store::{Options, SecretKey};

use crate::Result;
use crate::postgres::{self, Server};

/// The value of `--database-url` that starts a PostgreSQL server for the run.
pub const OWN_SERVER: &str = "postgres";
/// The environment variable of the secret key.
pub(crate) const SECRET_KEY: &str = "SVC_SECRET_KEY";
/// The secret key on PostgreSQL if the environment has none.
const DEFAULT_KEY: [u8; 32] = [0x5e; 32];

/// A database.
#[derive(Debug)]
pub struct Database {
    /// The URL of the database.
    pub url: String,
    server: Option<Server>,
    folder: Option<tempfile::TempDir>,
}

impl Database {
    /// Opens the database of a URL. `postgres` starts a server of its own, and `None` creates a SQLite file.
    pub fn new(url: Option<&str>) -> Result<Self> {
        Self::new_in(Path::new("/tmp"), url)
    }

    /// Opens a database as [`new`](Self::new) does, with its temporary files in `parent`.
    pub fn new_in(parent: &Path, url: Option<&str>) -> Result<Self> {
        let (url, server, folder) = match url {
            Some(OWN_SERVER) => {
                let server = postgres::another_in(parent).ok_or("PostgreSQL is not installed")?;
                (server.database(), Some(server), None)
            }
            Some(url) => (url.to_owned(), None, None),
            None => {
                let folder = tempfile::tempdir_in(parent)?;
                (format!("sqlite://{}", folder.path().join("svc.db").display()), None, Some(folder))
            }
        };
        Ok(Self { url, server, folder })
    }

    /// Returns the PostgreSQL server of this run, to stop and start it.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// Returns the folder of the temporary SQLite file.
    pub fn folder(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().to_owned())
    }

    /// Returns the environment variable that a server on this database needs.
    pub fn variables(&self) -> Option<(&'static str, String)> {
        let is_open = self.url.starts_with("sqlite:") || std::env::var_os(SECRET_KEY).is_some();
        (!is_open).then(|| (SECRET_KEY, DEFAULT_KEY.map(|byte| format!("{byte:02x}")).concat()))
    }

    /// Opens a store on the database, as `svc` does.
    pub async fn open(&self) -> Result<Arc<dyn Store>> {
        let secret_key = self.variables().map(|_| SecretKey::new(DEFAULT_KEY));
        let mut env = Env::system();
        env.webhook_hosts = HostPolicy::AllowPrivate;
        let options = Options { read_connections: 1, write_connections: 2, secret_key, ..Options::default() };
        Ok(svc_store::open_with(&self.url, env, options).await?)
    }
}
