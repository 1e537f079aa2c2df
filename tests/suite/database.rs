//! The database of a world: a SQLite file, or a PostgreSQL database of its own. The same tests run on both: those of
//! this process on SQLite, and by [`crate::postgres`] once more on PostgreSQL.

use std::path::PathBuf;
use std::sync::{Arc, LazyLock, mpsc};

use svc_core::env::Env;
use svc_core::store::Store;
use svc_postgres_server::Server;
use svc_store::{Options, SecretKey};
use tokio::runtime::Runtime;

/// Says which database this process tests: `postgres`, or else SQLite.
pub(crate) const CHOICE: &str = "SVC_TEST_DATABASE";

/// Where stores have their tasks: a store is opened by tests that cannot wait for it in their own runtime.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().unwrap());

/// A database, which goes with its handle.
pub(crate) struct Database {
    pub(crate) url: String,
    place: Place,
}

enum Place {
    /// Its file is `svc.db`.
    Folder(tempfile::TempDir),
    Server(&'static Server),
}

impl Database {
    /// An empty one.
    pub(crate) fn new() -> Self {
        if std::env::var(CHOICE).as_deref() != Ok("postgres") {
            return Self::in_folder();
        }
        let server = svc_postgres_server::quick_server().unwrap_or_else(|| panic!("PostgreSQL is not installed"));
        Self { url: server.database(), place: Place::Server(server) }
    }

    fn in_folder() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { url: format!("sqlite://{}", folder.path().join("svc.db").display()), place: Place::Folder(folder) }
    }

    /// Another one with the same content; nobody may have this one open.
    pub(crate) fn copy(&self) -> Self {
        match &self.place {
            Place::Folder(_) => {
                let copy = Self::in_folder();
                std::fs::copy(self.path(), copy.path()).unwrap();
                copy
            }
            Place::Server(server) => Self { url: server.copy(&self.url), place: Place::Server(server) },
        }
    }

    /// The file, of SQLite.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.place {
            Place::Folder(folder) => folder.path().join("svc.db"),
            Place::Server(_) => panic!("{} is no file", self.url),
        }
    }

    /// A store on it.
    pub(crate) fn open(&self, env: Env) -> Arc<dyn Store> {
        let url = self.url.clone();
        // Always the same key, so that no randomness goes into it; and few connections, as there are many worlds.
        let secret_key = Some(SecretKey::new([0x5e; 32]));
        let options = Options { read_connections: 1, write_connections: 3, secret_key, ..Options::default() };
        let (opened, store) = mpsc::channel();
        RUNTIME.spawn(async move {
            let _ = opened.send(svc_store::open_with(&url, env, options).await);
        });
        store.recv().unwrap().unwrap()
    }

    /// Makes it whole after its last store has gone, so that it can be copied.
    pub(crate) fn settle(&self) {
        if let Place::Folder(_) = self.place {
            // Connections that close at the same moment may leave the log behind: it is folded into the file here.
            let file = rusqlite::Connection::open(self.path()).unwrap();
            file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Place::Server(server) = self.place {
            server.drop_database(&self.url);
        }
    }
}
