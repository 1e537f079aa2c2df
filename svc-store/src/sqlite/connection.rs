//! A connection to a SQLite file.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, OptionalExtension as _, ffi};
use svc_core::error::{Error, StoreError};
use svc_core::store::{StoreResult, UnitOfWork};
use svc_core::values::{TenantId, Timestamp};

use super::QueuedWork;
use super::access::{explained, immutable_uri, is_unchangeable};
use super::migrate::Migrator;
use super::read_limit::ReadLimit;
use crate::accounts::tenants::store_clocks;
use crate::column::{CellError, Param, Row, Value};
use crate::dialect::Dialect;
use crate::locked_tenants::LockedTenants;
use crate::migrations::{self, ExpectedSchema};
use crate::new_file::with_suffix;
use crate::slow_reads::{RunningRead, too_slow};
use crate::sql::{EachRow, Sql, SqlTx, StoreContext};
use crate::unfinished::{self, check_before_open, check_has_tables, check_log};
use crate::vault::Vault;

/// How long to wait for the write of another process, such as the CLI while the server is running.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two attempts to write. A process that writes one transaction after the other, such as an import, leaves the
/// others a millisecond or two between them, which the pauses of SQLite's own timeout, of 100 ms, rarely meet.
const BUSY_PAUSE: Duration = Duration::from_millis(1);

/// Says whether a write that another process keeps out tries again, after how many attempts. Without one it fails at once.
pub(super) type BusyHandler = Option<fn(i32) -> bool>;

/// Tries again after a pause, until the time is over.
pub(super) fn pause_while_busy(attempts: i32) -> bool {
    std::thread::sleep(BUSY_PAUSE);
    BUSY_PAUSE * attempts.unsigned_abs() < BUSY_TIMEOUT
}

/// The pause between two attempts to switch a new file to write-ahead logging.
const WAL_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// How many bytes of the write-ahead log are rewritten at once.
const CHUNK: usize = 1024 * 1024;

/// How many prepared statements a connection keeps. There are fewer statements than that.
const PREPARED_STATEMENTS: usize = 256;

/// The settings of each connection. With `synchronous = FULL` a commit is on the disk before it is acknowledged. With
/// `NORMAL` a power failure could undo it. Of pages it keeps 4 MB: with more it would keep more of the leaves of the trees,
/// which are seldom used twice; the pages above those of a million contacts take 2 MB.
const SETTINGS: &str = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; \
     PRAGMA trusted_schema = OFF; PRAGMA cache_size = -4000;";

/// A connection to a SQLite file.
pub(crate) struct SqliteConnection(rusqlite::Connection, ReadLimit);

impl SqliteConnection {
    /// Opens a file, which is created if it does not exist. Then only its owner can read it and the files of its
    /// write-ahead log, which get the permissions of the database from SQLite.
    pub(crate) fn open(path: &Path) -> StoreResult<Self> {
        let key_file = check_before_open(path)?;
        check_log(path)?;
        // If this fails and there is no file, SQLite says so. A file that exists is not opened: to close it would release the
        // locks that other connections of this process have on it.
        let _ = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Self::configured(path, flags).map_err(|error| explained(path, error))?;
        check_has_tables(key_file.as_deref(), key_file.is_none() || connection.has_tables()?)?;
        let mode = connection.switch_to_wal().map_err(|error| explained(path, error))?;
        if mode != "wal" {
            return Err(StoreError::Unavailable(format!(
                "the file system does not support a write-ahead log (journal mode {mode}). Use a local disk"
            )));
        }
        Ok(connection)
    }

    /// Switches the file to write-ahead logging. While another process does the same, SQLite may refuse at once, whatever
    /// the busy timeout, so it is attempted again.
    fn switch_to_wal(&self) -> StoreResult<String> {
        let mut waited = Duration::ZERO;
        loop {
            match self.0.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)) {
                Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && waited < BUSY_TIMEOUT => {
                    std::thread::sleep(WAL_RETRY_PAUSE);
                    waited += WAL_RETRY_PAUSE;
                }
                mode => return mode.map_err(store_error),
            }
        }
    }

    fn has_tables(&self) -> StoreResult<bool> {
        let select = "SELECT EXISTS (SELECT 1 FROM sqlite_schema)";
        self.0.query_row(select, [], |row| row.get(0)).map_err(store_error)
    }

    /// Opens a connection on which SQLite refuses writes.
    pub(crate) fn open_read_only(path: &Path) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        check_log(path)?;
        let opened = Self::configured(path, flags).and_then(|connection| {
            connection.batch("PRAGMA query_only = ON")?;
            // Reads from the file, and so needs the write-ahead log.
            connection.has_tables()?;
            connection.1.watch(&connection.0).map_err(store_error)?;
            Ok(connection)
        });
        match opened {
            Err(_) if is_unchangeable(path) => Self::open_immutable(path),
            opened => opened.map_err(|error| explained(path, error)),
        }
    }

    /// Opens a file that nobody changes, such as a backup on a medium that cannot be written to.
    pub(super) fn open_immutable(path: &Path) -> StoreResult<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Self::configured(Path::new(&immutable_uri(path)), flags)?;
        connection.batch("PRAGMA query_only = ON")?;
        connection.1.watch(&connection.0).map_err(store_error)?;
        Ok(connection)
    }

    /// Writes a snapshot of the database to a file that is empty or does not exist.
    pub(crate) fn copy_into(&self, file: &Path) -> StoreResult<()> {
        // `VACUUM INTO` writes to another file only, but counts as a write.
        self.batch("PRAGMA query_only = OFF")?;
        let not_utf8 = || StoreError::Internal(format!("the file name {} is not valid UTF-8", file.display()));
        let name = file.to_str().ok_or_else(not_utf8)?;
        self.0.execute("VACUUM INTO ?1", [name]).map(drop).map_err(store_error)
    }

    fn configured(path: &Path, flags: OpenFlags) -> StoreResult<Self> {
        let connection = rusqlite::Connection::open_with_flags(path, flags).map_err(store_error)?;
        connection.busy_handler(Some(pause_while_busy)).map_err(store_error)?;
        connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
        connection.execute_batch(SETTINGS).map_err(store_error)?;
        // With the query planner stability guarantee, a plan is used for all values of its parameters. Otherwise this build
        // of SQLite would plan a statement again when the values change.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(store_error)?;
        Ok(Self(connection, ReadLimit::default()))
    }

    pub(super) fn set_busy_handler(&self, handler: BusyHandler) -> StoreResult<()> {
        self.0.busy_handler(handler).map_err(store_error)
    }

    /// Applies the missing migrations, and returns their names.
    pub(crate) fn migrate(&mut self, now: Timestamp) -> StoreResult<Vec<String>> {
        let mut migrator = Migrator { connection: self, now };
        migrated(migrations::run(&mut migrator, migrations::SQLITE))
    }

    /// Checks the schema without changing it.
    pub(crate) fn check_schema(&mut self, expected: ExpectedSchema) -> StoreResult<()> {
        let mut migrator = Migrator { connection: self, now: Timestamp::from_micros(0) };
        migrated(migrations::check(&mut migrator, migrations::SQLITE, expected))
    }

    /// Checks that the copy into this database is finished, if there was one.
    pub(super) fn check_copy(&self) -> StoreResult<()> {
        let select = "SELECT value FROM settings WHERE name = ?1";
        let position = self.0.query_row(select, [unfinished::COPY_SETTING], |row| row.get::<_, Vec<u8>>(0)).optional();
        unfinished::check_copy(position.map_err(store_error)?.as_deref())
    }

    pub(crate) fn has_setting(&self, name: &str) -> StoreResult<bool> {
        let select = "SELECT EXISTS (SELECT 1 FROM settings WHERE name = ?1)";
        self.0.query_row(select, [name], |row| row.get(0)).map_err(store_error)
    }

    /// Returns a value that is stored once per database, and stores `fresh` if there is none. One that is there is read without
    /// the lock for writing, so that a database can be opened while another process writes.
    pub(crate) fn setting(&self, name: &str, fresh: [u8; 32]) -> StoreResult<[u8; 32]> {
        let read = || self.0.query_row("SELECT value FROM settings WHERE name = ?1", [name], |row| row.get(0));
        if let Some(stored) = read().optional().map_err(store_error)? {
            return Ok(stored);
        }
        let insert = "INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.0.execute(insert, (name, fresh.as_slice())).map_err(store_error)?;
        // Another process may have stored another one meanwhile.
        read().map_err(store_error)
    }

    /// Runs statements that are separated by `;`.
    pub(super) fn batch(&self, sql: &str) -> StoreResult<()> {
        let mut rest = sql;
        // The statements are cached, as transactions begin and end thousands of times a second.
        while !rest.is_empty() {
            let (statement, tail) = rest.split_once(';').unwrap_or((rest, ""));
            let mut prepared = self.0.prepare_cached(statement.trim()).map_err(store_error)?;
            prepared.raw_execute().map_err(store_error)?;
            rest = tail;
        }
        Ok(())
    }

    pub(super) fn commit(&self) -> Result<(), DurabilityError> {
        self.execute_durable("COMMIT")
    }

    /// Commits a transaction that changes nothing but writes one page. In the write-ahead log it comes directly after the
    /// last commit.
    pub(super) fn write_empty_transaction(&self) -> Result<(), DurabilityError> {
        self.execute_durable("PRAGMA user_version = 0")
    }

    fn execute_durable(&self, sql: &str) -> Result<(), DurabilityError> {
        let done = self.0.prepare_cached(sql).and_then(|mut statement| statement.raw_execute());
        done.map(drop).map_err(DurabilityError::from)
    }

    /// Turns automatic checkpoints off, so that only [`Self::checkpoint`] makes them.
    pub(super) fn disable_autocheckpoint(&self) -> StoreResult<()> {
        self.0.pragma_update(None, "wal_autocheckpoint", 0).map_err(store_error)
    }

    /// Returns the number of pages in the write-ahead log.
    pub(super) fn wal_pages(&self) -> StoreResult<i64> {
        let mut noop = self.0.prepare_cached("PRAGMA wal_checkpoint(NOOP)").map_err(store_error)?;
        noop.query_row([], |row| row.get(1)).map_err(store_error)
    }

    /// Copies the write-ahead log to the database file, up to the oldest snapshot that a reader uses.
    pub(super) fn checkpoint(&self) -> Result<(), DurabilityError> {
        let passive = self.0.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)");
        passive.and_then(|mut passive| passive.query_row([], |_| Ok(()))).map_err(DurabilityError::from)
    }

    /// Rewrites the write-ahead log byte by byte and syncs it, so that everything that can be read from it is on the disk.
    /// No other connection can write in the meantime.
    pub(super) fn rewrite_log(&self, path: &Path) -> StoreResult<()> {
        self.batch("BEGIN IMMEDIATE")?;
        let rewritten = rewrite(&wal_path(path));
        self.batch("ROLLBACK")?;
        rewritten.map_err(|error| {
            StoreError::Unavailable(format!("cannot rewrite the write-ahead log {}: {error}", wal_path(path).display()))
        })
    }

    /// Closes the connection without a checkpoint, even if it is the last one.
    pub(super) fn close_and_keep_log(self) -> StoreResult<()> {
        self.0.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop).map_err(store_error)
    }

    pub(super) fn in_transaction(&self) -> bool {
        !self.0.is_autocommit()
    }

    /// Runs a unit of work, in a write with what is known of the tenants that are locked. It fails if it panics, or if it
    /// awaits anything but its transaction.
    pub(super) fn run(
        &mut self,
        name: &'static str,
        work: &UnitOfWork,
        context: &StoreContext,
        locked: Option<&mut LockedTenants>,
    ) -> Result<(), Error> {
        run_on(&mut self.executor(&context.vault), name, work, context, locked)
    }

    /// Runs a read as [`run`](Self::run) does, for `time` at most and as long as its caller waits. Returns its result, and whether
    /// it was ended before.
    pub(super) fn run_read(
        &mut self,
        read: &mut RunningRead<'_, QueuedWork>,
        queued: &QueuedWork,
        time: Duration,
        context: &StoreContext,
    ) -> (Result<(), Error>, bool) {
        let limit = self.1.clone();
        limit.begin(time, &queued.caller);
        let executor = &mut Executor { connection: &mut self.0, vault: &context.vault, read: Some((read, &limit)) };
        let result = run_on(executor, queued.name, &queued.work, context, None);
        (result, limit.end())
    }

    /// Returns an executor of statements, for the binding layer.
    pub(super) fn executor<'a>(&'a mut self, vault: &'a Vault) -> Executor<'a, 'static> {
        Executor { connection: &mut self.0, vault, read: None }
    }

    /// Stores the clocks of the tenants that a transaction has advanced.
    pub(super) fn store_clocks(&mut self, vault: &Vault, locked: &mut LockedTenants) -> StoreResult<()> {
        store_clocks(locked, &mut self.executor(vault)).now_or_never().unwrap_or_else(|| {
            Err(StoreError::Internal("a clock waits for something other than its connection".to_owned()))
        })
    }

    pub(crate) fn raw(&self) -> &rusqlite::Connection {
        &self.0
    }
}

/// Runs statements on a connection, and encrypts and decrypts secrets.
pub(super) struct Executor<'a, 's> {
    connection: &'a mut rusqlite::Connection,
    vault: &'a Vault,
    /// The read that runs, with its limit.
    read: Option<(&'a mut RunningRead<'s, QueuedWork>, &'a ReadLimit)>,
}

/// Runs a unit of work on an executor.
fn run_on(
    sql: &mut Executor<'_, '_>,
    name: &'static str,
    work: &UnitOfWork,
    context: &StoreContext,
    locked: Option<&mut LockedTenants>,
) -> Result<(), Error> {
    let mut tx = SqlTx { locked, ..SqlTx::new(sql, Dialect::Sqlite, context, &context.delivery_wakeup) };
    let fault = |what| Err(StoreError::Internal(format!("{name} {what}")).into());
    match catch_unwind(AssertUnwindSafe(|| work(&mut tx).now_or_never())) {
        Ok(Some(result)) => result,
        Ok(None) => fault("waits for something other than its store"),
        Err(_) => fault("panicked"),
    }
}

#[async_trait]
impl Sql for Executor<'_, '_> {
    fn read_as(&mut self, account: TenantId) -> StoreResult<()> {
        self.read.as_mut().map_or(Ok(()), |(read, _)| read.read_as(account))
    }

    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> StoreResult<u64> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        bind(&mut statement, params, self.vault)?;
        statement.raw_execute().map(|changed| changed as u64).map_err(store_error)
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> StoreResult<()> {
        // SQLite does not ask while a statement is short, of which a read may have many.
        if let Some((read, limit)) = &self.read
            && limit.is_reached()
        {
            return Err(too_slow(read.name));
        }
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        bind(&mut statement, params, self.vault)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(store_error)? {
            each(&BorrowedRow { row, vault: self.vault })?;
        }
        Ok(())
    }
}

fn bind(statement: &mut rusqlite::Statement<'_>, params: &[Param<'_>], vault: &Vault) -> StoreResult<()> {
    for (index, param) in (1..).zip(params) {
        let (sealed, written);
        let value = match param {
            Param::Null => ValueRef::Null,
            Param::Bool(value) => ValueRef::Integer(i64::from(*value)),
            Param::Int(value) => ValueRef::Integer(*value),
            Param::Time(value) => ValueRef::Integer(value.as_micros()),
            Param::Text(text) => ValueRef::Text(text.as_bytes()),
            Param::Date(date) => {
                written = date.to_string();
                ValueRef::Text(written.as_bytes())
            }
            Param::Bytes(bytes) => ValueRef::Blob(bytes),
            Param::Uuid(id) => ValueRef::Blob(id.as_bytes()),
            Param::Secret(secret) => {
                sealed = vault.seal(secret)?;
                ValueRef::Blob(&sealed)
            }
        };
        statement.raw_bind_parameter(index, ToSqlOutput::Borrowed(value)).map_err(store_error)?;
    }
    Ok(())
}

/// A row that is borrowed from SQLite.
struct BorrowedRow<'r> {
    row: &'r rusqlite::Row<'r>,
    vault: &'r Vault,
}

impl Row for BorrowedRow<'_> {
    fn value(&self, index: usize) -> Result<Value<'_>, CellError> {
        Ok(match self.row.get_ref(index).map_err(store_error)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(value) => Value::Int(value),
            ValueRef::Text(bytes) => {
                Value::Text(std::str::from_utf8(bytes).map_err(|_| invalid_cell(index, "text that is not UTF-8"))?)
            }
            ValueRef::Blob(bytes) => Value::Bytes(bytes),
            ValueRef::Real(_) => return Err(invalid_cell(index, "a floating-point number")),
        })
    }

    fn decrypt(&self, sealed: &[u8]) -> Option<Vec<u8>> {
        self.vault.open(sealed)
    }
}

#[cold]
fn invalid_cell(index: usize, what: &str) -> CellError {
    StoreError::Internal(format!("cell {index} holds {what}")).into()
}

/// Returns the result of migrations, which wait for nothing but their connection.
fn migrated<T>(migration: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
    migration.now_or_never().unwrap_or_else(|| {
        Err(StoreError::Internal("a migration waits for something other than its connection".to_owned()))
    })
}

fn wal_path(path: &Path) -> PathBuf {
    with_suffix(path, "-wal")
}

fn rewrite(file: &Path) -> io::Result<()> {
    let file = match OpenOptions::new().read(true).write(true).open(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let (mut chunk, mut at) = (vec![0; CHUNK], 0);
    loop {
        let read = file.read_at(&mut chunk, at)?;
        if read == 0 {
            return file.sync_data();
        }
        file.write_all_at(&chunk[..read], at)?;
        at += read as u64;
    }
}

/// The error of a commit or a checkpoint.
pub(super) struct DurabilityError {
    code: Option<i32>,
    pub(super) error: StoreError,
}

impl From<rusqlite::Error> for DurabilityError {
    fn from(error: rusqlite::Error) -> Self {
        let code = error.sqlite_error().map(|failure| failure.extended_code);
        Self { code, error: store_error(error) }
    }
}

impl From<StoreError> for DurabilityError {
    fn from(error: StoreError) -> Self {
        Self { code: None, error }
    }
}

impl DurabilityError {
    /// Returns whether everything was written, but may not be on the disk.
    pub(super) fn is_failed_fsync(&self) -> bool {
        self.code == Some(ffi::SQLITE_IOERR_FSYNC)
    }

    /// Returns whether a commit was written only in part, so that it will never be read as a commit.
    pub(super) fn is_incomplete_write(&self) -> bool {
        matches!(self.code, Some(ffi::SQLITE_FULL | ffi::SQLITE_IOERR_WRITE))
    }
}

pub(super) fn store_error(error: rusqlite::Error) -> StoreError {
    let rusqlite::Error::SqliteFailure(failure, _) = &error else {
        return StoreError::Internal(error.to_string());
    };
    match failure.code {
        ErrorCode::DatabaseBusy
        | ErrorCode::DatabaseLocked
        | ErrorCode::CannotOpen
        | ErrorCode::DiskFull
        | ErrorCode::SystemIoFailure
        | ErrorCode::OutOfMemory
        | ErrorCode::PermissionDenied
        | ErrorCode::ReadOnly
        | ErrorCode::NotADatabase
        | ErrorCode::DatabaseCorrupt
        | ErrorCode::FileLockingProtocolFailed => StoreError::Unavailable(error.to_string()),
        ErrorCode::OperationInterrupted => StoreError::TooSlow(error.to_string()),
        ErrorCode::ConstraintViolation => StoreError::Conflict { constraint: error.to_string() },
        _ => StoreError::Internal(error.to_string()),
    }
}
