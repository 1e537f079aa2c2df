//! PostgreSQL databases for the tests of this crate.

#![expect(clippy::unwrap_used, reason = "a failure is a panic, as in a test")]

use std::sync::OnceLock;

use svc_postgres_server::quick_server;
use tokio::runtime::Builder;

/// Returns the URL of an empty database with the current schema: a copy of one that was migrated once, as hundreds of
/// databases with all migrations take minutes. PostgreSQL is installed.
pub(crate) fn migrated_database() -> String {
    static ORIGINAL: OnceLock<String> = OnceLock::new();
    let server = quick_server().unwrap();
    let original = ORIGINAL.get_or_init(|| {
        let url = server.database();
        let migrated = url.clone();
        // A runtime of its own, which closes the connection when it ends: a database that is in use cannot be copied.
        let migrate = move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(crate::migrate(&migrated)).unwrap();
        };
        std::thread::spawn(migrate).join().unwrap();
        url
    });
    server.copy(original)
}
