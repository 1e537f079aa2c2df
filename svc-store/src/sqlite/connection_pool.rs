//! The connections of a store to its file: one per reader thread, shared or slow, one for reads on other threads, the checkpointer's, and
//! the writer's.
//!
//! The writer can close all connections at once, to make SQLite read the write-ahead log again.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};

use svc_core::store::StoreResult;
use svc_core::sync::lock;

use super::connection::{BusyHandler, DurabilityError, SqliteConnection};

pub(super) struct ConnectionPool {
    path: PathBuf,
    busy_handler: BusyHandler,
    /// A thread locks it for a moment before it locks its connection. So a writer that holds it soon gets the connections
    /// of all threads.
    gate: Mutex<()>,
    readers: Vec<Mutex<Option<SqliteConnection>>>,
    /// For reads on the threads that ask for them.
    in_place: Mutex<Option<SqliteConnection>>,
    checkpointer: Mutex<Option<SqliteConnection>>,
}

impl ConnectionPool {
    pub(super) fn new(path: PathBuf, busy_handler: BusyHandler, readers: usize) -> StoreResult<Self> {
        let connections = (0..readers).map(|_| Ok(Mutex::new(Some(SqliteConnection::open_read_only(&path)?))));
        let readers = connections.collect::<StoreResult<_>>()?;
        let in_place = Mutex::new(Some(SqliteConnection::open_read_only(&path)?));
        Ok(Self { path, busy_handler, gate: Mutex::new(()), readers, in_place, checkpointer: Mutex::new(None) })
    }

    /// Calls `work` with the connection of a reader.
    pub(super) fn read<T>(&self, reader: usize, work: impl FnOnce(&mut SqliteConnection) -> T) -> StoreResult<T> {
        drop(lock(&self.gate));
        self.with(lock(&self.readers[reader]), work)
    }

    /// Calls `work` with the connection for reads in place, or returns `None` if that is taken.
    pub(super) fn read_in_place<T>(&self, work: impl FnOnce(&mut SqliteConnection) -> T) -> StoreResult<Option<T>> {
        let free = self.gate.try_lock().ok().and_then(|_| self.in_place.try_lock().ok());
        free.map(|connection| self.with(connection, work)).transpose()
    }

    /// Makes a checkpoint with the connection of the checkpointer. SQLite allows that on one that refuses writes.
    pub(super) fn checkpoint(&self) -> Result<(), DurabilityError> {
        drop(lock(&self.gate));
        self.with(lock(&self.checkpointer), |connection| connection.checkpoint())?
    }

    /// Calls `work` with a connection, which is opened if need be.
    fn with<T>(
        &self,
        mut connection: MutexGuard<'_, Option<SqliteConnection>>,
        work: impl FnOnce(&mut SqliteConnection) -> T,
    ) -> StoreResult<T> {
        let connection = match &mut *connection {
            Some(connection) => connection,
            none => none.insert(SqliteConnection::open_read_only(&self.path)?),
        };
        Ok(work(connection))
    }

    /// Opens a connection for the writer.
    pub(super) fn open(&self) -> StoreResult<SqliteConnection> {
        let connection = SqliteConnection::open(&self.path)?;
        connection.set_busy_handler(self.busy_handler)?;
        connection.disable_autocheckpoint()?;
        Ok(connection)
    }

    /// See [`SqliteConnection::rewrite_log`].
    pub(super) fn rewrite_log(&self, writer: &SqliteConnection) -> StoreResult<()> {
        writer.rewrite_log(&self.path)
    }

    /// Closes all connections, so that SQLite forgets what it knows of the write-ahead log, and opens the writer's again.
    pub(super) fn reopen(&self, writer: SqliteConnection) -> StoreResult<SqliteConnection> {
        let _gate = lock(&self.gate);
        let threads = self.readers.iter().chain([&self.in_place, &self.checkpointer]);
        let mut connections: Vec<_> = threads.map(lock).collect();
        connections.iter_mut().for_each(|connection| **connection = None);
        writer.close_and_keep_log()?;
        self.open()
    }
}
