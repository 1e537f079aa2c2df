//! The database of a test: a SQLite file, or a PostgreSQL database of its own. This process runs the tests on SQLite;
//! [`crate::postgres`] runs them again on PostgreSQL.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock, OnceLock, mpsc};

use svc_core::env::Env;
use svc_core::store::Store;
use svc_store::{Options, SecretKey};
use svc_test_support::postgres::{Server, TEST_DATABASE};
use tokio::runtime::Runtime;

/// The runtime of the stores' tasks. Tests without an async runtime of their own open stores too.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// The database that every distributed one is a copy of.
static DISTRIBUTED: OnceLock<Database> = OnceLock::new();

/// A database that is removed when its handle is dropped.
pub(crate) struct Database {
    pub(crate) url: String,
    place: Place,
}

enum Place {
    /// The folder of the file `svc.db`.
    Folder(tempfile::TempDir),
    Server {
        server: &'static Server,
        original: Option<String>,
    },
}

impl Database {
    /// Creates an empty database.
    pub(crate) fn new() -> Self {
        let quick_server =
            || svc_test_support::postgres::quick_server().unwrap_or_else(|| panic!("PostgreSQL is not installed"));
        match std::env::var(TEST_DATABASE).as_deref() {
            Ok("postgres") => {
                let server = quick_server();
                Self { url: server.database(), place: Place::Server { server, original: None } }
            }
            Ok("citus") => DISTRIBUTED.get_or_init(|| Self::distributed(quick_server())).copy(),
            _ => Self::in_folder(),
        }
    }

    /// Creates a database with the tables of svc, distributed as on Citus.
    fn distributed(server: &'static Server) -> Self {
        let url = server.database();
        let distribute = {
            let url = url.clone();
            async move {
                svc_store::migrate(&url).await.unwrap();
                let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
                let connection = tokio::spawn(connection);
                client.batch_execute(svc_test_support::postgres::DISTRIBUTE).await.unwrap();
                drop(client);
                connection.await.unwrap().unwrap();
            }
        };
        let (done, finished) = mpsc::channel();
        RUNTIME.spawn(async move {
            distribute.await;
            let _ = done.send(());
        });
        finished.recv().unwrap();
        Self { url, place: Place::Server { server, original: None } }
    }

    fn in_folder() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { url: format!("sqlite://{}", folder.path().join("svc.db").display()), place: Place::Folder(folder) }
    }

    /// Creates a database with the same content. No store may have the original open.
    pub(crate) fn copy(&self) -> Self {
        match &self.place {
            Place::Folder(_) => {
                let copy = Self::in_folder();
                std::fs::copy(self.path(), copy.path()).unwrap();
                copy
            }
            Place::Server { server, .. } => {
                let original = Some(self.url.clone());
                Self { url: server.copy(&self.url), place: Place::Server { server, original } }
            }
        }
    }

    /// Returns the path of the SQLite file.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.place {
            Place::Folder(folder) => folder.path().join("svc.db"),
            Place::Server { .. } => panic!("{} is not a file", self.url),
        }
    }

    /// Opens a store on the database.
    pub(crate) fn open(&self, env: Env) -> Arc<dyn Store> {
        let url = self.url.clone();
        // A fixed secret key keeps random bytes out of the database. Few connections, because many tests run at once.
        let secret_key = Some(SecretKey::new([0x5e; 32]));
        let options = Options { read_connections: 1, write_connections: 3, secret_key, ..Options::default() };
        let (opened, store) = mpsc::channel();
        RUNTIME.spawn(async move {
            let _ = opened.send(svc_store::open_with(&url, env, options).await);
        });
        store.recv().unwrap().unwrap()
    }

    /// Prepares a database for [`Database::copy`] after its last store was closed.
    pub(crate) fn settle(&self) {
        if let Place::Folder(_) = self.place {
            // Connections that close at the same moment may leave the write-ahead log behind, so it is checkpointed
            // here.
            let file = rusqlite::Connection::open(self.path()).unwrap();
            file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Place::Server { server, original: Some(original) } = &self.place {
            server.give_back(original, &self.url);
        }
    }
}
