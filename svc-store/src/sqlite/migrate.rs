//! Migrates the schema of a file.
//!
//! Several processes may open the file at the same time, and each may be killed at any time.

use async_trait::async_trait;
use rusqlite::OptionalExtension as _;
use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use svc_core::values::Timestamp;

use super::connection::{SqliteConnection, store_error};
use crate::migrations::{AppliedMigration, Migration, MigrationTarget};

const CREATE_TABLE: &str = "CREATE TABLE schema_migrations \
     (name TEXT NOT NULL PRIMARY KEY, applied_at INTEGER NOT NULL, checksum BLOB NOT NULL) STRICT";
/// Other programs, such as Rails, have a table of this name too, with other columns or another key.
const HAS_TABLE: &str = "SELECT count(*) = 2 FROM pragma_table_info('schema_migrations') \
     WHERE name = 'checksum' OR (name = 'name' AND pk = 1)";
const APPLIED: &str = "SELECT name, checksum FROM schema_migrations ORDER BY name";
const RECORD: &str = "INSERT INTO schema_migrations (name, applied_at, checksum) VALUES (?1, ?2, ?3)";
const ORPHAN: &str = "SELECT \"table\" FROM pragma_foreign_key_check";

/// A connection that migrates.
pub(super) struct Migrator<'c> {
    pub(super) connection: &'c mut SqliteConnection,
    pub(super) now: Timestamp,
}

impl Migrator<'_> {
    fn raw(&self) -> &rusqlite::Connection {
        self.connection.raw()
    }

    fn execute(&self, sql: &str) -> StoreResult<()> {
        self.raw().execute_batch(sql).map_err(store_error)
    }

    fn has_table(&self) -> StoreResult<bool> {
        self.raw().query_row(HAS_TABLE, [], |row| row.get(0)).map_err(store_error)
    }

    fn read_applied(&self) -> StoreResult<Vec<AppliedMigration>> {
        let mut select = self.raw().prepare(APPLIED).map_err(store_error)?;
        let rows = select.query_map([], |row| Ok(AppliedMigration { name: row.get(0)?, checksum: row.get(1)? }));
        rows.and_then(Iterator::collect).map_err(store_error)
    }

    fn begin_transaction(&self) -> StoreResult<()> {
        // Foreign keys are off because a migration may drop and recreate a table. They are checked before the commit.
        self.execute("PRAGMA foreign_keys = OFF; BEGIN IMMEDIATE")?;
        if self.has_table()? { Ok(()) } else { self.execute(CREATE_TABLE) }
    }

    fn check_references(&self) -> StoreResult<()> {
        let orphan = self.raw().query_row(ORPHAN, [], |row| row.get::<_, String>(0)).optional();
        match orphan.map_err(store_error)? {
            None => Ok(()),
            Some(table) => Err(StoreError::Internal(format!(
                "after the migrations, rows of {table} refer to missing rows. The migrations were rolled back. Restore a \
                 backup"
            ))),
        }
    }

    fn end(&self) {
        if self.connection.in_transaction() {
            let _ = self.execute("ROLLBACK");
        }
        let _ = self.execute("PRAGMA foreign_keys = ON");
    }
}

#[async_trait]
impl MigrationTarget for Migrator<'_> {
    async fn peek(&mut self) -> StoreResult<Vec<AppliedMigration>> {
        if self.has_table()? { self.read_applied() } else { Ok(Vec::new()) }
    }

    async fn begin(&mut self) -> StoreResult<()> {
        self.begin_transaction().inspect_err(|_| self.end())
    }

    async fn applied(&mut self) -> StoreResult<Vec<AppliedMigration>> {
        self.read_applied()
    }

    async fn apply(&mut self, migration: &Migration) -> StoreResult<()> {
        self.execute(migration.sql)
    }

    async fn record(&mut self, migration: &Migration) -> StoreResult<()> {
        let (at, checksum) = (self.now.as_micros(), migration.checksum());
        self.raw().execute(RECORD, (migration.name, at, checksum.as_slice())).map(drop).map_err(store_error)
    }

    async fn commit(&mut self) -> StoreResult<()> {
        let committed = self.check_references().and_then(|()| self.execute("COMMIT"));
        self.end();
        committed
    }

    async fn roll_back(&mut self) {
        self.end();
    }
}
