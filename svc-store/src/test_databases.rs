//! PostgreSQL databases for the tests of this crate. PostgreSQL is installed.
//!
//! Each is a copy of one that was prepared once per process, as hundreds of databases with a schema take minutes.

#![expect(clippy::unwrap_used, reason = "a failure is a panic, as in a test")]

use std::sync::OnceLock;

use svc_test_support::postgres::{DISTRIBUTE, quick_server};
use tokio::runtime::Builder;
use tokio_postgres::NoTls;

/// Returns the URL of a database with the current schema and no accounts.
pub(crate) fn migrated_database() -> String {
    static ORIGINAL: OnceLock<String> = OnceLock::new();
    copy(&ORIGINAL, "")
}

/// Returns the URL of a database with distributed tables.
pub(crate) fn distributed_database() -> String {
    static ORIGINAL: OnceLock<String> = OnceLock::new();
    copy(&ORIGINAL, DISTRIBUTE)
}

/// Copies the original, which has the current schema, and what these statements add to it.
fn copy(original: &OnceLock<String>, statements: &str) -> String {
    let server = quick_server().unwrap();
    let prepare = || {
        let url = server.database();
        // A runtime of its own, which closes the connections when it ends: a database that is in use cannot be copied.
        let runtime = || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                crate::migrate(&url).await.unwrap();
                let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
                tokio::spawn(connection);
                client.batch_execute(statements).await.unwrap();
            });
        };
        std::thread::scope(|scope| scope.spawn(runtime).join().unwrap());
        url
    };
    server.copy(original.get_or_init(prepare))
}
