//! The PostgreSQL store: pipelined transactions, for several nodes on one database.
//!
//! # Tasks
//!
//! Each read or write task owns one connection. It takes units of work from a queue, and reconnects when the connection is
//! lost. A read task runs all queued reads concurrently in one snapshot; up to half of them, two at most, are for reads that
//! take long (`slow_reads`). A write task runs a unit of work, and in the same
//! transaction those that wait for the same tenant. Units of work that wait for a connection longer than the acquire timeout
//! fail.
//!
//! # Retries
//!
//! A unit of work runs again after a serialization failure or a deadlock, and once more when its connection was lost before
//! the commit was sent. When the connection is lost during the commit, the caller gets [`StoreError::OutcomeUnknown`].
//!
//! # Notifications
//!
//! A commit that adds due deliveries wakes the webhook senders of the other nodes with `NOTIFY`.
//!
//! # Clocks
//!
//! Units of work get the time of the database, on every node alike. A process whose clock differs from it by more than ten
//! seconds takes no writes (`database_clock`, `clock_watch`).

mod clock_watch;
mod connect_options;
mod connection;
mod failure;
#[cfg(feature = "maintenance")]
mod maintenance_connection;
mod migrate;
mod notifications;
mod queue;
mod reader;
mod request_counts;
mod servers;
mod session_check;
mod tls;
mod transaction;
mod values;
mod writer;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use svc_core::env::Env;
use svc_core::error::{Error, StoreError};
use svc_core::pages::CursorKey;
use svc_core::store::{Access, AccountServers, Observer, RequestCounts, Store, StoreResult, UnitOfWork};
use svc_core::sync::lock;
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::DeliveryWakeup;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use self::clock_watch::ClockWatch;
pub(crate) use self::connect_options::without_password;
use self::connect_options::{ConnectOptions, Role};
use self::connection::PostgresConnection;
#[cfg(feature = "maintenance")]
pub(crate) use self::maintenance_connection::PostgresMaintenance;
use self::queue::{Queue, QueuedWork};
use self::request_counts::PostgresRequestCounts;
use self::servers::{CitusServers, Places, ServerLoad};
#[cfg(feature = "sqlx")]
pub(crate) use self::{
    failure::error_of_code,
    notifications::NOTIFY,
    transaction::{MAX_DURATION, too_long},
    values::{Argument, arguments, read_cell},
    writer::MAX_RUNS,
};
use crate::database_clock::DatabaseClock;
use crate::slow_reads::{ReadTimes, RunningRead, SlowReads, too_many};
use crate::sql::StoreContext;
use crate::vault::{self, SecretKey, Vault};
use crate::{MigrationReport, OpenError, Options};

/// How long a statement of a read may take on a connection that reads share.
const SHARED: Duration = Duration::from_millis(250);
/// The most connections for slow reads.
const SLOW_READERS: usize = 2;
/// The first pause between two attempts to connect. It doubles up to [`MAX_PAUSE`].
const MIN_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two attempts to connect.
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// How often the queues are checked for units of work that have waited too long.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A store on a PostgreSQL database.
///
/// [`open`](crate::open) is the usual way to open one. When the store is dropped, its tasks finish the queued units of work
/// and end.
pub struct PostgresStore {
    shared: Arc<Shared>,
    counts: PostgresRequestCounts,
    /// Those of a database on Citus.
    servers: Option<CitusServers>,
    background_tasks: Vec<AbortHandle>,
    /// Each read and write task has a receiver until it has ended.
    running: watch::Sender<()>,
    /// Each of the other tasks has one.
    running_background: watch::Sender<()>,
}

/// The state that all tasks of a store share.
struct Shared {
    context: StoreContext,
    connect_options: ConnectOptions,
    reads: Queue,
    slow: SlowReads<QueuedWork>,
    read_times: ReadTimes,
    writes: Queue,
    clock_watch: ClockWatch,
    /// Whether notifications are sent in the transaction, because the process may exit right after the commit.
    is_short_lived: bool,
    /// Tells the notification task to notify the other nodes.
    notifications: Arc<Notify>,
    /// The servers that accounts are on, and what each holds of the connections for reads and for writes. On Citus alone.
    places: Places,
    read_load: Option<ServerLoad>,
    write_load: Option<ServerLoad>,
    /// The turn of reads that ask all servers.
    of_all_servers: Arc<Semaphore>,
    /// How long a unit of work waits for a connection.
    acquire_timeout: Duration,
    /// The error of the last attempt to connect. `None` while the database is available.
    connect_error: Mutex<Option<String>>,
}

impl PostgresStore {
    /// Connects to the database at `url`, and migrates its schema; see [`open_with`](crate::open_with).
    ///
    /// # Errors
    /// Those of [`open`](crate::open).
    pub async fn open(url: &str, env: Env, options: Options) -> Result<Self, OpenError> {
        let connect_options = connect_options(url)?;
        let read_times = ReadTimes { shared: SHARED, ..ReadTimes::default() };
        Self::connect(connect_options, env, options, read_times).await.map_err(|source| crate::unavailable(url, source))
    }

    #[cfg(feature = "sqlx")]
    pub(crate) fn context(&self) -> &StoreContext {
        &self.shared.context
    }

    /// Wakes the senders of all processes, after a commit on a connection of the application.
    #[cfg(feature = "sqlx")]
    pub(crate) fn notify_senders(&self) {
        self.shared.context.delivery_wakeup.notify();
        self.shared.notifications.notify_one();
    }

    /// Waits before a transaction on a connection of the application runs again.
    #[cfg(feature = "sqlx")]
    pub(crate) async fn pause_after_conflict(&self, runs: u32) {
        tokio::time::sleep(self.shared.jittered(writer::PAUSE * runs)).await;
    }

    async fn connect(
        connect_options: ConnectOptions,
        env: Env,
        options: Options,
        read_times: ReadTimes,
    ) -> StoreResult<Self> {
        let key = match options.secret_key {
            Some(key) => key,
            None => SecretKey::from_environment().map_err(|reason| StoreError::SecretKey(reason.to_string()))?,
        };
        let First { connection: first, connect_options, is_distributed } =
            open_first(connect_options, options.planner_settings).await?;
        migrate::run(&first.client).await?;
        migrate::check_copy(&first.client).await?;
        let cursor_key = CursorKey::new(migrate::setting(&first.client, "cursor_key", env.bytes()).await?);
        let vault = Vault::new(key, env.clone());
        if migrate::setting(&first.client, vault::CHECK_SETTING, vault.check()).await? != vault.check() {
            let reason = format!(
                "its secrets are encrypted with another key. Set {} to the key that the database was created with",
                vault::VARIABLE
            );
            return Err(StoreError::SecretKey(reason));
        }
        let database_clock = DatabaseClock::new(env.clone());
        let clock_watch = ClockWatch::new(database_clock.clone());
        clock_watch.update(&first.client).await?;
        let mut context = StoreContext::new(env.with_clock(database_clock.clone()), cursor_key, vault);
        (context.is_distributed, context.database_clock) = (is_distributed, Some(database_clock));
        context.is_by_hand = options.is_short_lived;
        let places = Places::default();
        let load = |connections: usize| is_distributed.then(|| ServerLoad::new(Arc::clone(&places), connections));
        let mut writes = Queue::new(options.write_connections.max(1));
        if is_distributed {
            writes = writes.of_several_servers();
        }
        let (readers, slow_readers) = readers(options.read_connections);
        let mut connect_options = connect_options;
        if slow_readers > 0 {
            connect_options.read_times = Some(read_times);
        }
        let shared = Arc::new(Shared {
            read_load: load(options.read_connections.max(1)),
            write_load: load(options.write_connections.max(1)),
            places: Arc::clone(&places),
            of_all_servers: Arc::new(Semaphore::new(1)),
            acquire_timeout: options.acquire_timeout,
            context,
            connect_options,
            reads: Queue::new(readers),
            slow: SlowReads::new(readers),
            read_times,
            writes,
            clock_watch,
            is_short_lived: options.is_short_lived,
            notifications: Arc::default(),
            connect_error: Mutex::default(),
        });
        let ((running, _), (running_background, _)) = (watch::channel(()), watch::channel(()));
        for _ in 0..readers {
            spawn(&running, reader::run(Arc::clone(&shared)));
        }
        for _ in 0..slow_readers {
            spawn(&running, reader::run_slow(Arc::clone(&shared)));
        }
        let mut first = Some(first);
        for _ in 0..options.write_connections.max(1) {
            spawn(&running, writer::run(Arc::clone(&shared), first.take()));
        }
        let (counts, counting) = PostgresRequestCounts::new(Arc::clone(&shared));
        let mut background_tasks = vec![
            spawn(&running_background, notifications::run(Arc::clone(&shared))),
            spawn(&running_background, fail_expired(Arc::clone(&shared), options.acquire_timeout)),
            spawn(&running_background, counting),
        ];
        let servers = is_distributed.then(|| {
            let (servers, remember) = CitusServers::new(Arc::clone(&shared));
            // A process that is about to exit sends nothing.
            if !options.is_short_lived {
                background_tasks.push(spawn(&running_background, remember));
            }
            servers
        });
        Ok(Self { shared, counts, servers, background_tasks, running, running_background })
    }

    pub(crate) fn check_open(&self) -> StoreResult<()> {
        if self.shared.writes.is_closed() { Err(StoreError::Closed) } else { Ok(()) }
    }
}

/// Spawns a task that has a receiver of `running` until it has ended.
fn spawn(running: &watch::Sender<()>, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
    let running = running.subscribe();
    let task = async move {
        task.await;
        drop(running);
    };
    tokio::spawn(task).abort_handle()
}

fn connect_options(url: &str) -> Result<ConnectOptions, OpenError> {
    ConnectOptions::parse(url).map_err(|error| OpenError::InvalidUrl(format!("postgres://… ({error})")))
}

/// The first connection of a process, for writing, and what was learned from it.
struct First {
    connection: PostgresConnection,
    /// The options of all connections.
    connect_options: ConnectOptions,
    /// Whether the database is on Citus.
    is_distributed: bool,
}

/// Opens the first connection. Without a choice of the operator, the planner is left alone on Citus: it has no generic plan of a
/// query of several servers that has a parameter in `LIMIT`.
async fn open_first(mut connect_options: ConnectOptions, planner_settings: Option<bool>) -> StoreResult<First> {
    connect_options.steers_plans = planner_settings.unwrap_or(true);
    let mut connection = PostgresConnection::open(&connect_options, Role::Write).await?;
    session_check::check(&connection, &connect_options).await?;
    let is_distributed = connection.has_citus().await?;
    if is_distributed && planner_settings.is_none() {
        connect_options.steers_plans = false;
        connection = PostgresConnection::open(&connect_options, Role::Write).await?;
    }
    Ok(First { connection, connect_options, is_distributed })
}

/// Migrates the schema of a database, and says what was done.
pub(crate) async fn migrate(url: &str) -> Result<MigrationReport, OpenError> {
    let connect_options = connect_options(url)?;
    let migrated = async {
        let first = open_first(connect_options, None).await?;
        let applied = migrate::run(&first.connection.client).await?;
        let note = migrate::make_partitions(&first.connection.client).await?;
        Ok(MigrationReport { applied, note })
    };
    migrated.await.map_err(|source| crate::unavailable(url, source))
}

#[async_trait]
impl Store for PostgresStore {
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        if access == Access::Write {
            self.check_writable()?;
        }
        let asks_all = self.servers.is_some() && access == Access::Read && servers::asks_all(name);
        let turn = match asks_all {
            true => Some(self.shared.turn_of_all_servers().await?),
            false => None,
        };
        let (queued, result) = QueuedWork::new(name, work);
        self.shared.queue(access).push(queued.with_turn(turn))?;
        result.await.map_err(|_| StoreError::Closed)?
    }

    fn env(&self) -> &Env {
        &self.shared.context.env
    }

    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        &self.shared.context.delivery_wakeup
    }

    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        Some(&self.counts)
    }

    fn servers(&self) -> Option<&dyn AccountServers> {
        self.servers.as_ref().map(|servers| servers as &dyn AccountServers)
    }

    fn check_writable(&self) -> StoreResult<()> {
        self.check_open()?;
        self.shared.context.check_clock()
    }

    async fn close(&self) {
        self.shared.reads.close();
        self.shared.writes.close();
        self.running.closed().await;
        self.background_tasks.iter().for_each(AbortHandle::abort);
        self.running_background.closed().await;
    }

    fn observe(&self, observer: Arc<dyn Observer>) {
        self.shared.context.observe(observer);
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.shared.reads.close();
        self.shared.writes.close();
        self.background_tasks.iter().for_each(AbortHandle::abort);
    }
}

/// Returns how many connections the reads of all accounts share, and how many are for slow reads. With one there are none.
fn readers(connections: usize) -> (usize, usize) {
    let slow = (connections / 2).min(SLOW_READERS);
    ((connections - slow).max(1), slow)
}

impl Shared {
    /// Returns what a read that begins on a shared connection knows of the slow ones.
    fn running_read(&self, name: &'static str) -> RunningRead<'_, QueuedWork> {
        RunningRead::new(name, self.connect_options.read_times.map(|_| &self.slow))
    }

    /// Waits for the turn of a read that asks all servers, no longer than for a connection.
    async fn turn_of_all_servers(&self) -> StoreResult<OwnedSemaphorePermit> {
        let time = self.acquire_timeout;
        match timeout(time, Arc::clone(&self.of_all_servers).acquire_owned()).await {
            Ok(turn) => turn.map_err(|_| StoreError::Closed),
            Err(_) => {
                let reason = format!("no connection within {time:?}: another read of all servers has not ended");
                Err(StoreError::Unavailable(reason))
            }
        }
    }

    /// Has a read run again among the slow ones of its account.
    fn add_slow(&self, account: Option<TenantId>, work: QueuedWork) {
        let name = work.name();
        if let Err(work) = self.slow.add(account, name, work) {
            work.complete(Err(too_many(name).into()));
        }
    }

    fn queue(&self, access: Access) -> &Queue {
        match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        }
    }

    /// Queues a unit of work again after its connection was lost.
    fn requeue(&self, access: Access, work: QueuedWork, error: StoreError) {
        self.context.report_retry(work.name());
        self.queue(access).requeue(work, error);
    }

    /// Waits for a queued unit of work, and then connects. Returns `None` once the store is closed and the queue is empty.
    async fn connection(&self, access: Access) -> Option<PostgresConnection> {
        let queue = self.queue(access);
        let role = match access {
            Access::Read => Role::Read,
            Access::Write => Role::Write,
        };
        let mut pause = MIN_PAUSE;
        // If another task has taken the unit of work in the meantime, no connection is needed.
        while queue.wait_until_filled().await {
            match PostgresConnection::open(&self.connect_options, role).await {
                Ok(connection) => {
                    if self.set_connect_error(None) {
                        tracing::info!("the database is available again");
                    }
                    return Some(connection);
                }
                Err(error) => {
                    if !self.set_connect_error(Some(error.to_string())) {
                        tracing::warn!(%error, "the database is not available");
                    }
                    if queue.is_closed() {
                        fail_all(queue.take(usize::MAX), &error);
                    }
                }
            }
            tokio::time::sleep(self.jittered(pause)).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
        None
    }

    /// Records the result of an attempt to connect, and returns whether the one before it had failed.
    fn set_connect_error(&self, error: Option<String>) -> bool {
        std::mem::replace(&mut *lock(&self.connect_error), error).is_some()
    }

    /// Returns a random duration between half of `pause` and `pause`, so that tasks that failed together do not retry
    /// together.
    fn jittered(&self, pause: Duration) -> Duration {
        let [random] = self.context.env.bytes();
        pause / 2 + pause / 2 * u32::from(random) / 255
    }
}

fn fail_all(units: Vec<QueuedWork>, error: &StoreError) {
    for work in units {
        work.complete(Err(error.clone().into()));
    }
}

/// Fails the units of work that have waited for a connection longer than `acquire_timeout`.
async fn fail_expired(shared: Arc<Shared>, acquire_timeout: Duration) {
    loop {
        tokio::time::sleep(EXPIRY_CHECK_INTERVAL.min(acquire_timeout)).await;
        for queue in [&shared.reads, &shared.writes] {
            let expired = queue.take_expired(acquire_timeout);
            if !expired.is_empty() {
                let error = lock(&shared.connect_error).clone();
                let reason = error.unwrap_or_else(|| "all connections are busy".to_owned());
                fail_all(
                    expired,
                    &StoreError::Unavailable(format!("no connection within {acquire_timeout:?}: {reason}")),
                );
            }
        }
    }
}

#[cfg(test)]
mod tests;
