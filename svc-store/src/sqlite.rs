//! The SQLite store: one writer thread with group commit, a checkpointer thread, two reader threads, and two for slow reads.
//!
//! # Threads
//!
//! A unit of work runs on the thread that owns the connection. So its futures are always ready when they are polled, and it
//! costs one handover between threads. More than two reader threads are slower on two cores. A read in place needs no handover:
//! it has a connection of its own, which only one of them has at a time.
//!
//! # Transactions
//!
//! Queued reads share one read transaction, which is short, as a long snapshot would keep the write-ahead log from being
//! checkpointed. Queued writes share one transaction as well, and complete after its durable commit.

mod access;
mod checkpointer;
mod connection;
mod connection_pool;
#[cfg(feature = "maintenance")]
mod maintenance_connection;
mod migrate;
mod read_limit;
mod reader;
mod writer;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;

use async_trait::async_trait;
use svc_core::env::Env;
use svc_core::error::{Error, StoreError};
use svc_core::pages::CursorKey;
use svc_core::store::{Access, Observer, Store, StoreResult, UnitOfWork};
use svc_core::sync::lock;
use svc_core::webhooks::deliveries::DeliveryWakeup;
use tokio::sync::{oneshot, watch};

use self::checkpointer::Checkpointer;
pub(crate) use self::connection::SqliteConnection;
use self::connection::{BusyHandler, pause_while_busy};
use self::connection_pool::ConnectionPool;
#[cfg(feature = "maintenance")]
pub(crate) use self::maintenance_connection::SqliteMaintenance;
use self::reader::Readers;
use crate::check_queue;
use crate::slow_reads::{ReadTimes, SlowReads};
use crate::sql::StoreContext;
use crate::vault::{self, SecretKey, Vault};

const READERS: usize = 2;
/// The threads for slow reads, which seldom have anything to do. One account has one of them at a time.
const SLOW_READERS: usize = 2;

/// A store on a SQLite file.
///
/// [`open`](crate::open) is the usual way to open one. When the store is dropped, its threads finish the queued units of work
/// and end.
pub struct SqliteStore {
    context: Arc<StoreContext>,
    reads: Arc<Queue>,
    writes: Arc<Queue>,
    threads: Vec<JoinHandle<()>>,
    /// The connections, which the threads own: when the last of them ends, they are closed.
    pool: Weak<ConnectionPool>,
    /// Each thread has a receiver until it has ended.
    running: watch::Sender<()>,
}

/// A unit of work in the queue.
struct QueuedWork {
    name: &'static str,
    work: UnitOfWork,
    result_sender: oneshot::Sender<Result<(), Error>>,
    /// Held by the caller of a read as long as it waits.
    caller: Weak<()>,
}

impl QueuedWork {
    /// Returns whether the caller has stopped waiting for the result.
    fn is_abandoned(&self) -> bool {
        self.result_sender.is_closed()
    }

    /// Sends the result to the caller.
    fn complete(self, result: Result<(), Error>) {
        // The closure may hold a handle of the store, which must be dropped before the caller continues.
        drop(self.work);
        let _ = self.result_sender.send(result);
    }
}

/// The queue of units of work that wait for a thread. A thread takes many of them at once, as one group.
struct Queue {
    state: Mutex<State>,
    filled: Condvar,
}

struct State {
    units: VecDeque<QueuedWork>,
    is_open: bool,
    /// How many threads wait and were not woken yet, or more: one that wakes up by itself stays counted. To wake a thread is a
    /// system call, so that is done only while one waits.
    idle: usize,
}

impl State {
    fn take(&mut self, max: usize) -> Vec<QueuedWork> {
        let count = self.units.len().min(max);
        self.units.drain(..count).collect()
    }
}

impl Queue {
    fn new() -> Self {
        Self { state: Mutex::new(State { units: VecDeque::new(), is_open: true, idle: 0 }), filled: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn push(&self, work: QueuedWork) -> StoreResult<()> {
        let mut state = self.lock();
        check_queue(state.is_open, state.units.len())?;
        state.units.push_back(work);
        let is_one_idle = state.idle > 0;
        state.idle -= usize::from(is_one_idle);
        drop(state);
        if is_one_idle {
            self.filled.notify_one();
        }
        Ok(())
    }

    /// Waits for units of work, and takes up to `max`. Returns `None` once the queue is closed and empty.
    fn wait(&self, max: usize) -> Option<Vec<QueuedWork>> {
        let mut state = self.lock();
        while state.units.is_empty() {
            if !state.is_open {
                return None;
            }
            state.idle += 1;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        Some(state.take(max))
    }

    /// Takes up to `max` units of work without waiting.
    fn try_take(&self, max: usize) -> Vec<QueuedWork> {
        self.lock().take(max)
    }

    fn is_closed(&self) -> bool {
        !self.lock().is_open
    }

    fn close(&self) {
        self.lock().is_open = false;
        self.filled.notify_all();
    }
}

fn fail_all(group: Vec<QueuedWork>, error: &StoreError) {
    for queued in group {
        let _ = queued.result_sender.send(Err(error.clone().into()));
    }
}

impl SqliteStore {
    /// Opens a file, and migrates its schema. The file is created if it does not exist, and so is the key file beside it,
    /// unless the environment variable `SVC_SECRET_KEY` is set.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when the file cannot be opened, is not a SQLite database, or its secrets are encrypted
    /// with another key. [`StoreError::SchemaMismatch`] when its schema does not fit this version of the program, and
    /// [`StoreError::Incomplete`] when a restore of the file or a copy into it did not finish.
    pub fn open(path: &Path, env: Env) -> StoreResult<Self> {
        Self::open_with_key(path, env, None)
    }

    /// Opens a file as [`open`](Self::open) does, with this key if there is one.
    pub(crate) fn open_with_key(path: &Path, env: Env, key: Option<SecretKey>) -> StoreResult<Self> {
        Self::open_with(path, env, key, Some(pause_while_busy), ReadTimes::default())
    }

    fn open_with(
        path: &Path,
        env: Env,
        key: Option<SecretKey>,
        busy_handler: BusyHandler,
        times: ReadTimes,
    ) -> StoreResult<Self> {
        let mut first = SqliteConnection::open(path)?;
        first.set_busy_handler(busy_handler)?;
        first.migrate(env.now())?;
        first.check_copy()?;
        let cursor_key = CursorKey::new(first.setting("cursor_key", env.bytes())?);
        let is_new = !first.has_setting(vault::CHECK_SETTING)?;
        let key = match key {
            Some(key) => key,
            None => vault::key_for(path, &env, is_new).map_err(|reason| StoreError::SecretKey(reason.to_string()))?,
        };
        let vault = Vault::new(key, env.clone());
        if first.setting(vault::CHECK_SETTING, vault.check())? != vault.check() {
            let reason = format!(
                "its secrets are encrypted with another key. Set {} to the key that the database was created with, or \
                 restore its key file {}",
                vault::VARIABLE,
                vault::key_file(path).display()
            );
            return Err(StoreError::SecretKey(reason));
        }
        let context = Arc::new(StoreContext::new(env, cursor_key, vault));
        let (reads, writes) = (Arc::new(Queue::new()), Arc::new(Queue::new()));
        let (running, _) = watch::channel(());
        let pool = Arc::new(ConnectionPool::new(path.to_owned(), busy_handler, READERS + SLOW_READERS)?);
        let threads = Vec::new();
        let mut store =
            Self { context: Arc::clone(&context), reads, writes, threads, pool: Arc::downgrade(&pool), running };
        let (queue, slow) = (Arc::clone(&store.reads), Arc::new(SlowReads::new(READERS)));
        let readers = Readers { pool: Arc::clone(&pool), queue, slow, times, context: Arc::clone(&context) };
        let readers = Arc::new(readers);
        for number in 0..READERS {
            let readers = Arc::clone(&readers);
            store.spawn(format!("sqlite-read-{number}"), move || reader::run(&readers, number))?;
        }
        for number in READERS..READERS + SLOW_READERS {
            let readers = Arc::clone(&readers);
            store.spawn(format!("sqlite-slow-{number}"), move || reader::run_slow(&readers, number))?;
        }
        drop(readers);
        let (checkpointer, requests) = Checkpointer::new();
        let pool_of_checkpointer = Arc::clone(&pool);
        store.spawn("sqlite-checkpoint".to_owned(), move || checkpointer::run(&pool_of_checkpointer, &requests))?;
        let queue = Arc::clone(&store.writes);
        first.disable_autocheckpoint()?;
        store.spawn("sqlite-write".to_owned(), move || writer::run(first, &pool, checkpointer, &queue, &context))?;
        Ok(store)
    }

    #[cfg(feature = "sqlx")]
    pub(crate) fn context(&self) -> &StoreContext {
        &self.context
    }

    fn spawn(&mut self, name: String, body: impl FnOnce() + Send + 'static) -> StoreResult<()> {
        let running = self.running.subscribe();
        let thread = std::thread::Builder::new().name(name).spawn(move || {
            body();
            // By now the connection is closed.
            drop(running);
        });
        self.threads.push(thread.map_err(|error| StoreError::Unavailable(error.to_string()))?);
        Ok(())
    }
}

/// Migrates the schema of a file, and returns the names of the migrations that were applied.
pub(crate) fn migrate(path: &Path) -> StoreResult<Vec<String>> {
    SqliteConnection::open(path)?.migrate(Env::system().now())
}

#[async_trait]
impl Store for SqliteStore {
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        let (result_sender, result) = oneshot::channel();
        let queue = match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        };
        // It is dropped with this future, by which a read ends that nobody waits for.
        let caller = Arc::new(());
        queue.push(QueuedWork { name, work, result_sender, caller: Arc::downgrade(&caller) })?;
        result.await.map_err(|_| StoreError::Closed)?
    }

    async fn run_in_place(&self, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        let in_place = {
            let pool = self.pool.upgrade().filter(|_| !self.reads.is_closed()).ok_or(StoreError::Closed)?;
            pool.read_in_place(|connection| reader::run_alone(connection, name, &work, &self.context))?
        };
        match in_place {
            Some(result) => result,
            // Another one is running, so this one is an ordinary read.
            None => self.run(Access::Read, name, work).await,
        }
    }

    fn env(&self) -> &Env {
        &self.context.env
    }

    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        &self.context.delivery_wakeup
    }

    fn check_writable(&self) -> StoreResult<()> {
        if self.writes.is_closed() { Err(StoreError::Closed) } else { Ok(()) }
    }

    async fn close(&self) {
        self.reads.close();
        self.writes.close();
        self.running.closed().await;
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.context.observe(observer);
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.reads.close();
        self.writes.close();
        // If a unit of work held the last handle of the store, this is one of its threads, which must not join itself.
        let current = std::thread::current().id();
        if self.threads.iter().all(|thread| thread.thread().id() != current) {
            for thread in self.threads.drain(..) {
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests;
