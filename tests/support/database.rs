//! The database of a run: a SQLite file that vanishes, a PostgreSQL server that does, or one that was named.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use svc_core::env::Env;
use svc_core::store::Store;
use svc_core::values::HostPolicy;
use svc_postgres_server::Server;
use svc_store::{Options, SecretKey};

use crate::Result;

/// Names a PostgreSQL server that is made for the run.
pub const OWN_SERVER: &str = "postgres";
/// The environment variable with the key of the secrets.
const SECRET_KEY: &str = "SVC_SECRET_KEY";
/// The key of the secrets in PostgreSQL where the environment names none.
const USUAL_KEY: [u8; 32] = [0x5e; 32];

/// A database.
#[derive(Debug)]
pub struct Database {
    /// Where it is.
    pub url: String,
    server: Option<Server>,
    folder: Option<tempfile::TempDir>,
}

impl Database {
    /// The one with this URL; `postgres` alone stands for a server of its own, nothing for a SQLite file.
    ///
    /// # Errors
    /// There is no PostgreSQL on this machine.
    pub fn new(asked: Option<&str>) -> Result<Self> {
        Self::new_in(Path::new("/tmp"), asked)
    }

    /// The same, but what is made for it is made in a folder.
    ///
    /// # Errors
    /// There is no PostgreSQL on this machine.
    pub fn new_in(parent: &Path, asked: Option<&str>) -> Result<Self> {
        let (url, server, folder) = match asked {
            Some(OWN_SERVER) => {
                let server = svc_postgres_server::another_in(parent).ok_or("PostgreSQL is not installed")?;
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

    /// The server that was made for it, to be stopped and started.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    /// The folder of the SQLite file that was made for it.
    pub fn folder(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().to_owned())
    }

    /// What a process on it must have in its environment.
    pub fn variables(&self) -> Option<(&'static str, String)> {
        let is_open = self.url.starts_with("sqlite:") || std::env::var_os(SECRET_KEY).is_some();
        (!is_open).then(|| (SECRET_KEY, USUAL_KEY.map(|byte| format!("{byte:02x}")).concat()))
    }

    /// A store on it, beside the servers: as `svc` is.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn open(&self) -> Result<Arc<dyn Store>> {
        let secret_key = self.variables().map(|_| SecretKey::new(USUAL_KEY));
        let mut env = Env::system();
        env.webhook_hosts = HostPolicy::AllowPrivate;
        let options = Options { read_connections: 1, write_connections: 2, secret_key, ..Options::default() };
        Ok(svc_store::open_with(&self.url, env, options).await?)
    }
}
