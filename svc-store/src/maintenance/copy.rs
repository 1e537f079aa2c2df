//! Copies all data from one database to another. Each may be SQLite or PostgreSQL.
//!
//! The source is read in one consistent snapshot, table by table in batches. Each batch is one transaction of the target,
//! which also stores the position of the copy, so a copy that was interrupted can be resumed. Secrets are copied in encrypted
//! form, so both databases have the same key. At the end both databases are read again and compared.

use svc_core::env::Env;
use svc_core::store::{Access, StoreResult};

use super::MaintenanceError;
use super::copy_position::{CopyPosition, put_setting, setting};
use super::digest::{Digest, digest};
use super::open::{self, OpenDatabase};
use super::table_reader::{TableReader, params};
use super::tables::{TABLES, TableInfo};
use crate::column::Row;
use crate::maintenance_connection::Opening;
use crate::maintenance_connection::{MaintenanceConnection, Transaction};
use crate::sql::Sql;
use crate::vault::CHECK_SETTING;

/// The setting that identifies a database, so that a copy is only resumed from the same source. It is created when the
/// database is first copied.
const IDENTITY: &str = "database_id";
const CURSOR_KEY: &str = "cursor_key";

/// A phase of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The rows of a table are copied.
    Copy,
    /// A table is read in both databases and compared.
    Compare,
}

/// How far a copy has come.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The phase of the copy.
    pub phase: Phase,
    /// The name of the table that is being copied or compared.
    pub table: &'static str,
    /// The number of rows of the table that are done.
    pub done: u64,
    /// The number of rows of the table: in the source while copying, and in both databases together while comparing.
    pub total: u64,
}

/// A table in both databases, after the copy.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Comparison {
    /// The name of the table.
    pub table: &'static str,
    /// The digest of the table in the source.
    pub source: Digest,
    /// The digest of the table in the target.
    pub target: Digest,
}

impl Comparison {
    /// Returns whether the table has the same rows in both databases.
    pub fn is_equal(&self) -> bool {
        self.source == self.target
    }
}

/// The result of a copy.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CopyReport {
    /// The number of rows that this run copied. Rows that an earlier, interrupted run had copied are not included.
    pub copied: u64,
    /// The comparison of every table.
    pub tables: Vec<Comparison>,
}

impl CopyReport {
    /// Returns whether all tables have the same rows in both databases.
    pub fn is_equal(&self) -> bool {
        self.tables.iter().all(Comparison::is_equal)
    }
}

/// Copies all tenants and their data from the database at `from` to the database at `to`, and compares both.
///
/// `to` must not contain tenants, unless `resume` is set and an earlier copy from the same source was interrupted.
/// `on_progress` is called for each batch of rows. Stop the servers of both databases first: changes to the source during the
/// copy are not copied, and changes to the target can make the copy fail.
///
/// # Errors
/// [`MaintenanceError::Refused`] when `to` contains other data, has another key for its secrets, or is the same database as
/// `from`. [`MaintenanceError::Open`] when a database cannot be opened. A copy that failed with another error can be resumed.
pub async fn copy(
    from: &str,
    to: &str,
    resume: bool,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<CopyReport, MaintenanceError> {
    let env = Env::system();
    let source = open::complete(from, &env, Opening::Migrate).await?;
    let target = open::copy_target(to, &env, &source).await?;
    copy_between(source, target, resume, &env, on_progress).await
}

pub(super) async fn copy_between(
    mut source: OpenDatabase,
    mut target: OpenDatabase,
    resume: bool,
    env: &Env,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<CopyReport, MaintenanceError> {
    let identity = identity(&mut *source.connection, env).await?;
    if identity_of(&mut *target.connection).await?.as_deref() == Some(identity.as_slice()) {
        return Err(MaintenanceError::Refused(
            "The source and the target are the same database. Choose another target.".to_owned(),
        ));
    }
    let mut position = match stored_position(&mut target, &identity, resume).await? {
        Some(position) => position,
        None => initialize(&mut source, &mut target, &identity, env).await?,
    };
    let mut snapshot = source.connection.begin(Access::Read).await?;
    let mut copied = 0;
    while let Some(table) = TABLES.get(position.table) {
        copied += copy_table(&mut *snapshot, &mut *target.connection, table, &mut position, on_progress).await?;
    }
    let mut there = target.connection.begin(Access::Read).await?;
    let mut tables = Vec::new();
    for table in TABLES {
        tables.push(compare(&mut *snapshot, &mut *there, table, on_progress).await?);
    }
    there.commit().await?;
    snapshot.commit().await?;
    Ok(CopyReport { copied, tables })
}

async fn identity_of(connection: &mut dyn MaintenanceConnection) -> StoreResult<Option<Vec<u8>>> {
    setting(&mut *connection.begin(Access::Read).await?, IDENTITY).await
}

/// The name of a database, made when it has none.
async fn identity(connection: &mut dyn MaintenanceConnection, env: &Env) -> StoreResult<[u8; 32]> {
    if let Some(known) = identity_of(connection).await?.and_then(|bytes| bytes.try_into().ok()) {
        return Ok(known);
    }
    let new: [u8; 32] = env.bytes();
    let mut tx = connection.begin(Access::Write).await?;
    put_setting(&mut *tx, IDENTITY, &new).await?;
    tx.commit().await?;
    Ok(new)
}

/// Returns the position of the earlier copy into this target. `None` when the target is empty.
async fn stored_position(
    target: &mut OpenDatabase,
    identity: &[u8; 32],
    resume: bool,
) -> Result<Option<CopyPosition>, MaintenanceError> {
    let refused = |reason: &str| Err(MaintenanceError::Refused(reason.to_owned()));
    let mut tx = target.connection.begin(Access::Read).await?;
    match CopyPosition::read(&mut *tx).await? {
        Some(position) if position.source != CopyPosition::new(identity).source => {
            refused("The target contains a copy of another database. Choose an empty target.")
        }
        Some(position) if !resume && position.table >= TABLES.len() => refused(
            "The target contains a finished copy of this database, so there is nothing to continue. Choose an empty target \
             for another copy, or compare both with --resume.",
        ),
        Some(_) if !resume => refused(
            "The target contains an earlier copy of this database. Continue that copy with --resume, or choose an empty \
             target.",
        ),
        Some(position) => Ok(Some(position)),
        None if count(&mut *tx, "tenants").await? > 0 => {
            refused("The target contains accounts already. Choose an empty target.")
        }
        None => Ok(None),
    }
}

/// Copies the settings that both databases must share: the cursor key, so that the cursors of clients remain valid, and the
/// check value of the secret key.
async fn initialize(
    source: &mut OpenDatabase,
    target: &mut OpenDatabase,
    identity: &[u8; 32],
    env: &Env,
) -> Result<CopyPosition, MaintenanceError> {
    let cursor_key = setting(&mut *source.connection.begin(Access::Read).await?, CURSOR_KEY).await?;
    let position = CopyPosition::new(identity);
    let mut tx = target.connection.begin(Access::Write).await?;
    put_setting(&mut *tx, CURSOR_KEY, &cursor_key.unwrap_or_else(|| env.bytes::<32>().to_vec())).await?;
    put_setting(&mut *tx, CHECK_SETTING, &source.check).await?;
    position.write(&mut *tx).await?;
    tx.commit().await?;
    Ok(position)
}

/// Copies the remaining rows of a table, and advances the position to the next table.
async fn copy_table(
    snapshot: &mut dyn Transaction,
    target: &mut dyn MaintenanceConnection,
    table: &'static TableInfo,
    position: &mut CopyPosition,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<u64, MaintenanceError> {
    let insert = insert(table);
    let total = count(snapshot, table.name).await?;
    let already_copied = count(&mut *target.begin(Access::Read).await?, table.name).await?;
    let mut reader = TableReader::new(table, snapshot.dialect(), position.after.take());
    let mut copied = 0;
    loop {
        on_progress(Progress { phase: Phase::Copy, table: table.name, done: already_copied + copied, total });
        let rows = reader.batch(snapshot).await?;
        let mut tx = target.begin(Access::Write).await?;
        for row in &rows {
            tx.pipeline(&insert, &params(table, row)?, None).await?;
        }
        if rows.is_empty() {
            *position = CopyPosition { table: position.table + 1, after: None, ..position.clone() };
        } else {
            position.after = reader.position().cloned();
        }
        position.write(&mut *tx).await?;
        tx.commit().await?;
        if rows.is_empty() {
            return Ok(copied);
        }
        copied += rows.len() as u64;
    }
}

fn insert(table: &TableInfo) -> String {
    let places: Vec<String> = (1..=table.columns.len()).map(|n| format!("${n}")).collect();
    format!("INSERT INTO {} ({}) VALUES ({})", table.name, table.column_names(), places.join(", "))
}

async fn compare(
    source: &mut dyn Transaction,
    target: &mut dyn Transaction,
    table: &'static TableInfo,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> StoreResult<Comparison> {
    let total = count(source, table.name).await? + count(target, table.name).await?;
    let mut report = |done| on_progress(Progress { phase: Phase::Compare, table: table.name, done, total });
    let source = digest(source, table, &mut report).await?;
    let target = digest(target, table, &mut |done| report(source.rows + done)).await?;
    Ok(Comparison { table: table.name, source, target })
}

/// Returns the number of rows of a table.
pub(super) async fn count(sql: &mut dyn Sql, table: &'static str) -> StoreResult<u64> {
    let mut rows = 0;
    let mut each = |row: &dyn Row| {
        rows = crate::sql::Cells::new(row).take(table, "count(*)")?;
        Ok(())
    };
    sql.query(&format!("SELECT count(*) FROM {table}"), &[], &mut each).await?;
    Ok(rows)
}
