//! Copies everything from one database to another, of whatever kinds.
//!
//! The source is read in one consistent snapshot, table by table in batches. Each batch is one transaction of the
//! target, together with the position of how far the copy has come, so a copy that was killed can be resumed. Secrets are
//! copied sealed, so both databases have the same key. At the end both are read once more and compared.

use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::Access;

use super::MaintenanceError;
use super::connection::{MaintenanceConnection, Transaction};
use super::copy_position::{CopyPosition, put_setting, setting};
use super::digest::{Digest, digest};
use super::open::{self, OpenDatabase};
use super::table_reader::{TableReader, params};
use super::tables::{TABLES, TableInfo};
use crate::sql::{Row, Sql};
use crate::vault::CHECK_SETTING;

/// Names a database, so that a copy is resumed from where it began. Made when one is first copied.
const IDENTITY: &str = "database_id";
const CURSOR_KEY: &str = "cursor_key";

/// What a copy does to a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Its rows are copied.
    Copy,
    /// Both sides are read and compared.
    Compare,
}

/// How far a copy has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// What is done.
    pub phase: Phase,
    /// To which table.
    pub table: &'static str,
    /// Rows of it that are done.
    pub done: u64,
    /// Rows that it has; while comparing, those of both sides.
    pub total: u64,
}

/// A table on both sides, after the copy.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    /// Its name.
    pub table: &'static str,
    /// What the source holds.
    pub source: Digest,
    /// What the target holds.
    pub target: Digest,
}

impl Comparison {
    /// Whether both hold the same rows.
    pub fn is_equal(&self) -> bool {
        self.source == self.target
    }
}

/// What came of a copy.
#[derive(Clone, Debug)]
pub struct CopyReport {
    /// Rows that were copied now; those that an earlier run had copied are not among them.
    pub copied: u64,
    /// Every table on both sides.
    pub tables: Vec<Comparison>,
}

impl CopyReport {
    /// Whether both databases hold the same.
    pub fn is_equal(&self) -> bool {
        self.tables.iter().all(Comparison::is_equal)
    }
}

/// Copies all tenants and everything of theirs from the database at `from` to the one at `to`, and compares both.
///
/// `to` must hold no tenant, unless `resume` is set and it was begun by a copy from the same database. `on_progress` is called
/// batch by batch. Servers on either should be stopped: what they change meanwhile is not copied, or is in the way.
///
/// # Errors
/// [`MaintenanceError::Refused`] when `to` holds something else or has another key for its secrets, or when the two
/// are one. A copy that failed can be resumed.
pub async fn copy(
    from: &str,
    to: &str,
    resume: bool,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<CopyReport, MaintenanceError> {
    let env = Env::system();
    let source = open::existing(from, &env).await?;
    let target = open::target(to, &env, &source).await?;
    between(source, target, resume, &env, on_progress).await
}

pub(super) async fn between(
    mut source: OpenDatabase,
    mut target: OpenDatabase,
    resume: bool,
    env: &Env,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<CopyReport, MaintenanceError> {
    let identity = identity(&mut *source.connection, env).await?;
    if identity_of(&mut *target.connection).await?.as_deref() == Some(identity.as_slice()) {
        return Err(MaintenanceError::Refused("Source and target are the same database.".to_owned()));
    }
    let mut position = match began(&mut target, &identity, resume).await? {
        Some(position) => position,
        None => begin(&mut source, &mut target, &identity, env).await?,
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

async fn identity_of(connection: &mut dyn MaintenanceConnection) -> Result<Option<Vec<u8>>, StoreError> {
    setting(&mut *connection.begin(Access::Read).await?, IDENTITY).await
}

/// The name of a database, made when it has none.
async fn identity(connection: &mut dyn MaintenanceConnection, env: &Env) -> Result<[u8; 32], StoreError> {
    if let Some(known) = identity_of(connection).await?.and_then(|bytes| bytes.try_into().ok()) {
        return Ok(known);
    }
    let new: [u8; 32] = env.bytes();
    let mut tx = connection.begin(Access::Write).await?;
    put_setting(&mut *tx, IDENTITY, &new).await?;
    tx.commit().await?;
    Ok(new)
}

/// The position of the copy that began this target; `None` when it is empty.
async fn began(
    target: &mut OpenDatabase,
    identity: &[u8; 32],
    resume: bool,
) -> Result<Option<CopyPosition>, MaintenanceError> {
    let refused = |reason: &str| Err(MaintenanceError::Refused(reason.to_owned()));
    let mut tx = target.connection.begin(Access::Read).await?;
    match CopyPosition::read(&mut *tx).await? {
        Some(position) if position.source != CopyPosition::new(identity).source => {
            refused("The target was begun by a copy of another database; name an empty one.")
        }
        Some(_) if !resume => refused(
            "The target was begun by an earlier copy of this database; --resume goes on where that ended, or name an \
             empty one.",
        ),
        Some(position) => Ok(Some(position)),
        None if count(&mut *tx, "tenants").await? > 0 => refused("The target has tenants already; name an empty one."),
        None => Ok(None),
    }
}

/// Gives the target what the two have in common: the key of cursors, so that those of clients stay good, and the
/// check of the key of secrets.
async fn begin(
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

/// Copies what is left of a table, and moves the position on to the next.
async fn copy_table(
    snapshot: &mut dyn Transaction,
    target: &mut dyn MaintenanceConnection,
    table: &'static TableInfo,
    position: &mut CopyPosition,
    on_progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<u64, MaintenanceError> {
    let insert = insert(table);
    let total = count(snapshot, table.name).await?;
    let before = count(&mut *target.begin(Access::Read).await?, table.name).await?;
    let mut reader = TableReader::new(table, position.after.take());
    let mut copied = 0;
    loop {
        on_progress(Progress { phase: Phase::Copy, table: table.name, done: before + copied, total });
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
) -> Result<Comparison, StoreError> {
    let total = count(source, table.name).await? + count(target, table.name).await?;
    let mut tell = |done| on_progress(Progress { phase: Phase::Compare, table: table.name, done, total });
    let here = digest(source, table, &mut tell).await?;
    let there = digest(target, table, &mut |done| tell(here.rows + done)).await?;
    Ok(Comparison { table: table.name, source: here, target: there })
}

/// How many rows a table has.
pub(super) async fn count(sql: &mut dyn Sql, table: &'static str) -> Result<u64, StoreError> {
    let mut rows = 0;
    let mut each = |row: &dyn Row| {
        rows = crate::sql::Cells::new(row).take(table, "count(*)")?;
        Ok(())
    };
    sql.query(&format!("SELECT count(*) FROM {table}"), &[], &mut each).await?;
    Ok(rows)
}
