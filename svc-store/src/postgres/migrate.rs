//! The schema and the settings of a database. Several nodes may start at once, and each may be killed at any time.

use svc_core::error::StoreError;
use tokio_postgres::{Client, Error};

use super::failure::cannot_connect;

macro_rules! migration {
    ($name:literal) => {
        ($name, include_str!(concat!("../../migrations/postgres/", $name, ".sql")))
    };
}

pub(super) const MIGRATIONS: &[(&str, &str)] = &[
    migration!("0001_init"),
    migration!("0002_rate_limits"),
    migration!("0003_deliveries_by_time"),
    migration!("0004_backlog"),
    migration!("0005_event_actors"),
];

const HAS_TABLE: &str = "SELECT to_regclass('schema_migrations') IS NOT NULL";
const CREATE_TABLE: &str = "CREATE TABLE IF NOT EXISTS schema_migrations \
     (name text COLLATE \"C\" NOT NULL PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())";
/// A migration may take long, and so may waiting for that of another node.
const BEGIN: &str = "BEGIN; SET LOCAL lock_timeout = 0; SET LOCAL statement_timeout = 0; \
     LOCK TABLE schema_migrations IN SHARE ROW EXCLUSIVE MODE";
const NAMES: &str = "SELECT name FROM schema_migrations";
const APPLIED: &str = "INSERT INTO schema_migrations (name) VALUES ($1)";

/// The oldest server that has all that is used.
const OLDEST: u32 = 130_000;

/// Applies what is missing, each migration in a transaction with its row in `schema_migrations`.
pub(super) async fn run(client: &Client) -> Result<Vec<String>, StoreError> {
    check_version(client).await?;
    make_table(client).await.map_err(|error| cannot_connect(&error))?;
    let mut applied = Vec::new();
    for (name, sql) in MIGRATIONS {
        if apply(client, name, sql).await.map_err(|error| cannot_connect(&error))? {
            applied.push((*name).to_owned());
        }
    }
    Ok(applied)
}

async fn check_version(client: &Client) -> Result<(), StoreError> {
    let row = client.query_one("SELECT current_setting('server_version_num')", &[]).await;
    let version: String = row.and_then(|row| row.try_get(0)).map_err(|error| cannot_connect(&error))?;
    match version.parse() {
        Ok(OLDEST..=u32::MAX) => Ok(()),
        _ => Err(StoreError::Unavailable(format!("PostgreSQL 13 or newer is needed, this is {version}"))),
    }
}

/// Two nodes that make a table at once collide in the catalogue, `IF NOT EXISTS` or not; the second look finds it.
async fn make_table(client: &Client) -> Result<(), Error> {
    let has_table = async || client.query_one(HAS_TABLE, &[]).await?.try_get::<_, bool>(0);
    if has_table().await? {
        // Who may not create tables can still work with those that are there.
        return Ok(());
    }
    match client.batch_execute(CREATE_TABLE).await {
        // In one of three ways, so it only counts whether the table is there now.
        Err(_) if has_table().await? => Ok(()),
        made => made,
    }
}

async fn apply(client: &Client, name: &str, sql: &str) -> Result<bool, Error> {
    let known =
        async || Ok::<_, Error>(client.query(NAMES, &[]).await?.iter().any(|row| row.get::<_, &str>(0) == name));
    if known().await? {
        return Ok(false);
    }
    client.batch_execute(BEGIN).await?;
    // Once the lock is held, what other nodes have applied is there to see.
    let ours = !known().await?;
    if ours {
        client.batch_execute(sql).await?;
        client.execute(APPLIED, &[&name]).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(ours)
}

/// A value that is made once per database.
pub(super) async fn setting(client: &Client, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
    let insert = "INSERT INTO settings (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
    let select = "SELECT value FROM settings WHERE name = $1";
    let value = async {
        client.execute(insert, &[&name, &fresh.as_slice()]).await?;
        client.query_one(select, &[&name]).await?.try_get::<_, Vec<u8>>(0)
    };
    let value = value.await.map_err(|error| cannot_connect(&error))?;
    value.try_into().map_err(|_| StoreError::Corrupt {
        table: "settings",
        column: "value",
        reason: format!("{name} has not 32 bytes"),
    })
}
