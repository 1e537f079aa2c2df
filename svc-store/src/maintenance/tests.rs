//! Tests of maintenance. Those with PostgreSQL run only where it is installed.

mod backups;
mod checks;
mod copies;
mod data;
mod schemas;
mod sizes;

use std::path::PathBuf;
use std::sync::Arc;

use svc_core::env::Env;
use svc_core::store::{Access, Store};
use svc_test_support::postgres::server;

use super::open::{self, OpenDatabase};
use crate::maintenance_connection::Opening;
use crate::sql::Sql;
use crate::{MaintenanceError, Options, open_with};

/// A folder with SQLite databases.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn url(&self, name: &str) -> String {
        format!("sqlite://{}", self.path(name).display())
    }

    /// Creates a database with rows in every table.
    async fn filled(&self, name: &str) -> String {
        let url = self.url(name);
        data::fill(&*store(&url).await).await;
        url
    }
}

async fn store(url: &str) -> Arc<dyn Store> {
    crate::open(url, Env::system()).await.unwrap()
}

/// Changes a database directly.
async fn tamper(url: &str, statement: &str) {
    let mut database = open::existing(url, &Env::system(), Opening::Migrate).await.unwrap();
    let mut tx = database.connection.begin(Access::Write).await.unwrap();
    let sql: &mut dyn Sql = &mut *tx;
    sql.execute(statement, &[]).await.unwrap_or_else(|error| panic!("{error}: {statement}"));
    tx.commit().await.unwrap();
}

/// Opens a PostgreSQL database with the key of a SQLite file, as a test cannot set environment variables.
async fn on_server(url: &str, like: &str) -> OpenDatabase {
    let path = like.strip_prefix("sqlite://").unwrap();
    let key = crate::vault::key_for(path.as_ref(), &Env::system(), false).unwrap();
    open::with_key(url, Opening::Create, key, String::new(), &Env::system()).await.unwrap()
}
