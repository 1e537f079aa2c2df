//! Migrates the schema, and reads the settings of a database.
//!
//! Several nodes may start at the same time, and each may be killed at any time.

use std::time::Duration;

use async_trait::async_trait;
use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Error};

use super::failure::cannot_connect;
use crate::migrations::{self, AppliedMigration, ExpectedSchema, Migration, MigrationTarget};
use crate::unfinished;

/// Rails has a table of this name too, which has no checksums.
const HAS_TABLE: &str = "SELECT EXISTS (SELECT 1 FROM pg_attribute \
     WHERE attrelid = to_regclass('schema_migrations') AND attname = 'checksum' AND NOT attisdropped)";
const CREATE_TABLE: &str = "CREATE TABLE schema_migrations \
     (name text COLLATE \"C\" NOT NULL PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now(), checksum bytea NOT NULL)";
/// A migration may take long, and so may waiting for another node to finish its migration.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
     LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE";
const APPLIED: &str = "SELECT name, checksum FROM schema_migrations ORDER BY name";
const RECORD: &str = "INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)";

/// The most partitions that are made ahead at once.
const MAX_PARTITIONS: u32 = 64;
/// The number of attempts with a table that somebody has locked, and the pause between them.
const BLOCKED_ATTEMPTS: u32 = 5;
const BLOCKED_PAUSE: Duration = Duration::from_secs(1);
/// The message when it stays locked.
const BLOCKED: &str = "Partitions for the next week were not all made, as somebody has locked their tables, such as a backup. Servers \
     make them meanwhile. Run the command again later.";

/// The oldest supported version of the server, as in `server_version_num`.
const MIN_VERSION: u32 = 130_000;

/// Applies the missing migrations, and returns their names.
pub(super) async fn run(client: &Client) -> StoreResult<Vec<String>> {
    apply(client, migrations::POSTGRES).await
}

/// Applies those of these migrations that are missing, and returns their names.
pub(super) async fn apply(client: &Client, migrations: &[Migration]) -> StoreResult<Vec<String>> {
    check_server(client).await?;
    migrations::run(&mut Migrator { client }, migrations).await
}

/// Makes partitions until a week from now, each for as long as it takes: on Citus the upkeep of nodes may be too slow for the time
/// that it may lock a table. A role without the right to do so leaves it to the nodes. Returns what to say of partitions that could
/// not be made, as somebody has locked their tables.
pub(super) async fn make_partitions(client: &Client) -> StoreResult<Option<String>> {
    let made = async {
        client.batch_execute("SET statement_timeout = 0").await?;
        let mut attempts = 0;
        for _ in 0..MAX_PARTITIONS {
            client.execute("SELECT prepare_partition(now(), 1, interval '7 days')", &[]).await?;
            let step = "SELECT done IS NULL, blocked IS NOT NULL FROM step_partitions(now(), '-infinity', 1, interval '7 days')";
            let row = client.query_one(step, &[]).await?;
            let (is_over, is_blocked): (bool, bool) = (row.try_get(0)?, row.try_get(1)?);
            if is_blocked && attempts < BLOCKED_ATTEMPTS {
                attempts += 1;
                tokio::time::sleep(BLOCKED_PAUSE).await;
            } else if is_blocked {
                return Ok(Some(BLOCKED.to_owned()));
            } else if is_over {
                break;
            }
        }
        Ok::<_, Error>(None)
    };
    match made.await {
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Ok(None),
        made => made.map_err(|error| cannot_connect(&error)),
    }
}

/// Checks the schema without changing it.
pub(super) async fn check(client: &Client, expected: ExpectedSchema) -> StoreResult<()> {
    check_server(client).await?;
    migrations::check(&mut Migrator { client }, migrations::POSTGRES, expected).await
}

/// Checks that the copy into this database is finished, if there was one.
pub(super) async fn check_copy(client: &Client) -> StoreResult<()> {
    let select = "SELECT value FROM settings WHERE name = $1";
    let position = async {
        let row = client.query_opt(select, &[&unfinished::COPY_SETTING]).await?;
        row.map(|row| row.try_get::<_, Vec<u8>>(0)).transpose()
    };
    unfinished::check_copy(position.await.map_err(|error| cannot_connect(&error))?.as_deref())
}

/// Checks the version of the server, and that the database can store every text.
async fn check_server(client: &Client) -> StoreResult<()> {
    let asked = "SELECT current_setting('server_version_num'), current_setting('server_encoding')";
    let row = client.query_one(asked, &[]).await;
    let read = |row: tokio_postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?));
    let (version, encoding): (String, String) = row.and_then(read).map_err(|error| cannot_connect(&error))?;
    if !matches!(version.parse(), Ok(MIN_VERSION..=u32::MAX)) {
        return Err(StoreError::Unavailable(format!(
            "PostgreSQL 13 or newer is needed, but the server_version_num is {version}. Upgrade the server"
        )));
    }
    if encoding != "UTF8" {
        return Err(StoreError::Unavailable(format!(
            "the encoding of the database must be UTF8, but it is {encoding}, which has no place for every text. Create one with \
             CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0, and restore a dump of this one into it if it has data"
        )));
    }
    Ok(())
}

/// Returns whether a migration has to be applied again, since PostgreSQL broke it off in favour of another transaction. Nodes that
/// serve requests meanwhile lock the tables in orders of their own.
fn is_deadlock(applied: &Result<(), Error>) -> StoreResult<bool> {
    match applied {
        Ok(()) => Ok(false),
        Err(error) if error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED) => Ok(true),
        Err(error) => Err(cannot_connect(error)),
    }
}

struct Migrator<'c> {
    client: &'c Client,
}

impl Migrator<'_> {
    async fn query_bool(&self, sql: &str) -> Result<bool, Error> {
        self.client.query_one(sql, &[]).await?.try_get(0)
    }

    async fn execute(&self, sql: &str) -> StoreResult<()> {
        self.client.batch_execute(sql).await.map_err(|error| cannot_connect(&error))
    }

    /// Creates the table of migrations if it does not exist.
    ///
    /// When two nodes create it at the same time, one of them fails, so errors are ignored if the table exists afterwards.
    async fn create_table(&self) -> Result<(), Error> {
        if self.query_bool(HAS_TABLE).await? {
            return Ok(());
        }
        match self.client.batch_execute(CREATE_TABLE).await {
            Err(_) if self.query_bool(HAS_TABLE).await? => Ok(()),
            created => created,
        }
    }
}

#[async_trait]
impl MigrationTarget for Migrator<'_> {
    // It takes no lock, so a role that may not create or lock tables can use a database whose schema is up to date.
    async fn peek(&mut self) -> StoreResult<Vec<AppliedMigration>> {
        if self.query_bool(HAS_TABLE).await.map_err(|error| cannot_connect(&error))? {
            self.applied().await
        } else {
            Ok(Vec::new())
        }
    }

    async fn begin(&mut self) -> StoreResult<()> {
        self.create_table().await.map_err(|error| cannot_connect(&error))?;
        self.execute(BEGIN).await
    }

    async fn applied(&mut self) -> StoreResult<Vec<AppliedMigration>> {
        let rows = self.client.query(APPLIED, &[]).await.map_err(|error| cannot_connect(&error))?;
        let read =
            |row: &tokio_postgres::Row| Ok(AppliedMigration { name: row.try_get(0)?, checksum: row.try_get(1)? });
        rows.iter().map(read).collect::<Result<_, Error>>().map_err(|error| cannot_connect(&error))
    }

    async fn apply(&mut self, migration: &Migration) -> StoreResult<()> {
        // Its rollback gives the locks of the attempt back as well, and keeps that of the table of migrations.
        self.execute("SAVEPOINT migration").await?;
        while is_deadlock(&self.client.batch_execute(migration.sql).await)? {
            self.execute("ROLLBACK TO SAVEPOINT migration").await?;
        }
        Ok(())
    }

    async fn record(&mut self, migration: &Migration) -> StoreResult<()> {
        let checksum = migration.checksum();
        let recorded = self.client.execute(RECORD, &[&migration.name, &checksum.as_slice()]).await;
        recorded.map(drop).map_err(|error| cannot_connect(&error))
    }

    async fn commit(&mut self) -> StoreResult<()> {
        self.execute("COMMIT").await
    }

    async fn roll_back(&mut self) {
        // If it fails, the server rolls back when the connection ends.
        let _ = self.execute("ROLLBACK").await;
    }
}

/// Returns a value that is stored once per database, and stores `fresh` if there is none. One that is there is only read, so that
/// a database can be opened where nothing can be written.
pub(super) async fn setting(client: &Client, name: &str, fresh: [u8; 32]) -> StoreResult<[u8; 32]> {
    let insert = "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    let select = "SELECT value FROM settings WHERE name = $1";
    let value = async {
        if let Some(stored) = client.query_opt(select, &[&name]).await? {
            return stored.try_get::<_, Vec<u8>>(0);
        }
        client.execute(insert, &[&name, &fresh.as_slice()]).await?;
        // Another node may have stored another one meanwhile.
        client.query_one(select, &[&name]).await?.try_get(0)
    };
    let value = value.await.map_err(|error| cannot_connect(&error))?;
    value.try_into().map_err(|_| StoreError::Corrupt {
        table: "settings",
        column: "value",
        reason: format!("the setting {name} does not have 32 bytes"),
    })
}
