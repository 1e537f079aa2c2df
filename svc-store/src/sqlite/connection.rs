//! One connection to a SQLite file.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{ErrorCode, OpenFlags, ffi};
use svc_core::accounts::audit::Actor;
use svc_core::error::{Error, StoreError};
use svc_core::store::UnitOfWork;
use svc_core::values::Timestamp;

use super::Context;
use super::migrate::Migrator;
use crate::dialect::Dialect;
use crate::migrations;
use crate::sql::{EachRow, Param, Row, Sql, SqlTx, Value};
use crate::vault::Vault;

/// How long to wait for another process, such as the CLI beside the server, to end its write.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Between two tries to switch a new file to its write-ahead log.
const WAL_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// Bytes of the log that are written anew at once.
const CHUNK: usize = 1024 * 1024;

/// Statements that stay prepared, per connection: all there are.
const PREPARED_STATEMENTS: usize = 256;

/// A commit is on the disk before it is acknowledged: with `synchronous=NORMAL` a power cut may undo it.
const SETTINGS: &str = "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -16000; \
     PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;";

/// A connection to a SQLite file.
pub(crate) struct Connection(rusqlite::Connection);

impl Connection {
    pub(crate) fn open(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Self::configured(path, flags)?;
        let mode = connection.switch_to_wal()?;
        if mode != "wal" {
            return Err(StoreError::Unavailable(format!("the file system allows no write-ahead log (mode {mode})")));
        }
        Ok(connection)
    }

    /// SQLite may refuse the switch at once, whatever the busy timeout, while another process makes it.
    fn switch_to_wal(&self) -> Result<String, StoreError> {
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

    /// For readers: SQLite itself refuses their writes.
    pub(crate) fn open_read_only(path: &Path) -> Result<Self, StoreError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Self::configured(path, flags)?;
        connection.batch("PRAGMA query_only = ON")?;
        Ok(connection)
    }

    /// Writes the database, as it is at one moment, to a file that is empty or missing.
    pub(crate) fn copy_into(&self, file: &Path) -> Result<(), StoreError> {
        // What it writes is another database, but it counts as writing.
        self.batch("PRAGMA query_only = OFF")?;
        let name = file.to_str().ok_or_else(|| StoreError::Internal("the name of the file is no text".to_owned()))?;
        self.0.execute("VACUUM INTO ?1", [name]).map(drop).map_err(store_error)
    }

    fn configured(path: &Path, flags: OpenFlags) -> Result<Self, StoreError> {
        let connection = rusqlite::Connection::open_with_flags(path, flags).map_err(store_error)?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(store_error)?;
        connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
        connection.execute_batch(SETTINGS).map_err(store_error)?;
        // A plan holds for all values: otherwise SQLite, which is built to look at them, plans anew for each.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(store_error)?;
        Ok(Self(connection))
    }

    pub(super) fn set_busy_timeout(&self, timeout: Duration) -> Result<(), StoreError> {
        self.0.busy_timeout(timeout).map_err(store_error)
    }

    /// Applies the missing migrations, and returns their names.
    pub(crate) fn migrate(&mut self, now: Timestamp) -> Result<Vec<String>, StoreError> {
        let mut migrator = Migrator { connection: self, now };
        let applied = migrations::run(&mut migrator, migrations::SQLITE).now_or_never();
        applied.unwrap_or_else(|| Err(StoreError::Internal("a migration waits for something".to_owned())))
    }

    pub(crate) fn has_setting(&self, name: &str) -> Result<bool, StoreError> {
        let select = "SELECT EXISTS (SELECT 1 FROM settings WHERE name = ?1)";
        self.0.query_row(select, [name], |row| row.get(0)).map_err(store_error)
    }

    /// A value that is made once per database.
    pub(crate) fn setting(&self, name: &str, fresh: [u8; 32]) -> Result<[u8; 32], StoreError> {
        let insert = "INSERT INTO settings (name, value) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        self.0.execute(insert, (name, fresh.as_slice())).map_err(store_error)?;
        let select = "SELECT value FROM settings WHERE name = ?1";
        self.0.query_row(select, [name], |row| row.get(0)).map_err(store_error)
    }

    pub(super) fn batch(&self, sql: &str) -> Result<(), StoreError> {
        let mut rest = sql;
        // Prepared once each: transactions begin and end thousands of times a second.
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

    /// A transaction of nothing but one page as it was. It takes the place in the log behind the last commit.
    pub(super) fn write_empty_transaction(&self) -> Result<(), DurabilityError> {
        self.execute_durable("PRAGMA user_version = 0")
    }

    fn execute_durable(&self, sql: &str) -> Result<(), DurabilityError> {
        let done = self.0.prepare_cached(sql).and_then(|mut statement| statement.raw_execute());
        done.map(drop).map_err(DurabilityError::from)
    }

    /// From now on checkpoints are made by [`Self::checkpoint`] alone.
    pub(super) fn disable_autocheckpoint(&self) -> Result<(), StoreError> {
        self.0.pragma_update(None, "wal_autocheckpoint", 0).map_err(store_error)
    }

    /// How many pages are in the write-ahead log.
    pub(super) fn wal_pages(&self) -> Result<i64, StoreError> {
        let mut noop = self.0.prepare_cached("PRAGMA wal_checkpoint(NOOP)").map_err(store_error)?;
        noop.query_row([], |row| row.get(1)).map_err(store_error)
    }

    /// Brings what is in the log into the main file, as far as no reader needs the file as it is.
    pub(super) fn checkpoint(&self) -> Result<(), DurabilityError> {
        let passive = self.0.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)");
        passive.and_then(|mut passive| passive.query_row([], |_| Ok(()))).map_err(DurabilityError::from)
    }

    /// Makes sure that the log is on the disk as it can be read, for which it is written anew, byte by byte, while
    /// nobody else can write.
    pub(super) fn rewrite_log(&self, path: &Path) -> Result<(), StoreError> {
        self.batch("BEGIN IMMEDIATE")?;
        let written = rewrite(&wal_path(path));
        self.batch("ROLLBACK")?;
        written.map_err(|error| StoreError::Unavailable(format!("the log cannot be written anew: {error}")))
    }

    /// Closes it and leaves the log as it is, also if nobody else has the file open.
    pub(super) fn close_and_keep_log(self) -> Result<(), StoreError> {
        self.0.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).map(drop).map_err(store_error)
    }

    pub(super) fn in_transaction(&self) -> bool {
        !self.0.is_autocommit()
    }

    /// Runs a job to its end. Nothing that it awaits may wait, and a panic is its failure only.
    pub(super) fn run(&mut self, name: &'static str, job: &UnitOfWork, context: &Context) -> Result<(), Error> {
        let Context { env, cursor_key, delivery_wakeup, vault, .. } = context;
        let sql = &mut self.executor(vault);
        let mut tx = SqlTx { sql, env, cursor_key, delivery_wakeup, dialect: Dialect::Sqlite, actor: Actor::System };
        let fault = |what| Err(StoreError::Internal(format!("{name} {what}")).into());
        match catch_unwind(AssertUnwindSafe(|| job(&mut tx).now_or_never())) {
            Ok(Some(result)) => result,
            Ok(None) => fault("waits for something other than its store"),
            Err(_) => fault("panicked"),
        }
    }

    /// The connection for the binding layer.
    pub(super) fn executor<'a>(&'a mut self, vault: &'a Vault) -> Executor<'a> {
        Executor { connection: &mut self.0, vault }
    }

    pub(crate) fn raw(&self) -> &rusqlite::Connection {
        &self.0
    }
}

/// A connection while a job has it.
pub(super) struct Executor<'a> {
    connection: &'a mut rusqlite::Connection,
    vault: &'a Vault,
}

#[async_trait]
impl Sql for Executor<'_> {
    async fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        bind(&mut statement, params, self.vault)?;
        statement.raw_execute().map(|changed| changed as u64).map_err(store_error)
    }

    async fn query(&mut self, sql: &str, params: &[Param<'_>], each: EachRow<'_>) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached(sql).map_err(store_error)?;
        bind(&mut statement, params, self.vault)?;
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next().map_err(store_error)? {
            each(&BorrowedRow { row, vault: self.vault })?;
        }
        Ok(())
    }
}

fn bind(statement: &mut rusqlite::Statement<'_>, params: &[Param<'_>], vault: &Vault) -> Result<(), StoreError> {
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
                sealed =
                    vault.seal(secret).ok_or_else(|| StoreError::Internal("a secret cannot be sealed".to_owned()))?;
                ValueRef::Blob(&sealed)
            }
        };
        statement.raw_bind_parameter(index, ToSqlOutput::Borrowed(value)).map_err(store_error)?;
    }
    Ok(())
}

/// A row while SQLite lends it out.
struct BorrowedRow<'r> {
    row: &'r rusqlite::Row<'r>,
    vault: &'r Vault,
}

impl Row for BorrowedRow<'_> {
    fn value(&self, index: usize) -> Result<Value<'_>, StoreError> {
        let odd = |what: &str| StoreError::Internal(format!("cell {index} holds {what}"));
        Ok(match self.row.get_ref(index).map_err(store_error)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(value) => Value::Int(value),
            ValueRef::Text(bytes) => {
                Value::Text(std::str::from_utf8(bytes).map_err(|_| odd("text that is not UTF-8"))?)
            }
            ValueRef::Blob(bytes) => Value::Bytes(bytes),
            ValueRef::Real(_) => return Err(odd("a floating-point number")),
        })
    }

    fn secret(&self, index: usize) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(match self.value(index)? {
            Value::Bytes(sealed) => self.vault.open(sealed),
            _ => None,
        })
    }
}

fn wal_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
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

/// Why something durable failed.
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

impl DurabilityError {
    /// Whether all was written, but perhaps did not reach the disk.
    pub(super) fn is_failed_fsync(&self) -> bool {
        self.code == Some(ffi::SQLITE_IOERR_FSYNC)
    }

    /// Whether a commit was cut short, so that nobody will ever take it for one.
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
        ErrorCode::ConstraintViolation => StoreError::Conflict { constraint: error.to_string() },
        _ => StoreError::Internal(error.to_string()),
    }
}
