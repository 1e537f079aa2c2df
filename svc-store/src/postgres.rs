//! PostgreSQL: transactions on pipelined connections, for several nodes on one database.
//!
//! Each task owns a connection, takes units of work from a queue, and connects again when the connection is lost. A read
//! task runs all waiting units of work concurrently in one snapshot; a write task runs one at a time, each in a transaction
//! of its own. A commit that adds due deliveries notifies the other nodes by `NOTIFY`.

mod connection;
mod request_counts;
mod failure;
mod unit_of_work;
mod maintenance_connection;
mod migrate;
mod notifications;
mod queue;
mod reader;
mod transaction;
mod connect_options;
mod tls;
mod values;
mod writer;

use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use svc_core::env::Env;
use svc_core::error::{Error, StoreError};
use svc_core::resources::pages::CursorKey;
use svc_core::store::{Access, Observer, RequestCounts, Store, UnitOfWork};
use svc_core::sync::lock;
use svc_core::webhooks::deliveries::DeliveryWakeup;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use self::connection::Connection;
use self::request_counts::PostgresRequestCounts;
pub(crate) use self::maintenance_connection::PostgresMaintenance;
use self::queue::{Queue, QueuedWork};
pub(crate) use self::connect_options::without_password;
use self::connect_options::{Role, ConnectOptions};
use crate::vault::{self, SecretKey, Vault};

/// The pause between two attempts to connect: the first, and the longest.
const MIN_PAUSE: Duration = Duration::from_millis(50);
const MAX_PAUSE: Duration = Duration::from_secs(1);
/// How often the queues are searched for units of work that have waited too long.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// A store on a PostgreSQL database. Dropping it ends its tasks once the waiting units of work are done.
pub(crate) struct PostgresStore {
    shared: Arc<Shared>,
    counts: PostgresRequestCounts,
    background_tasks: Vec<AbortHandle>,
}

/// What the tasks have in common.
struct Shared {
    env: Env,
    cursor_key: CursorKey,
    delivery_wakeup: Arc<DeliveryWakeup>,
    vault: Vault,
    connect_options: ConnectOptions,
    reads: Queue,
    writes: Queue,
    /// Whether notifications are sent with commits, as the process may end right after them.
    is_short_lived: bool,
    /// Signals the task that sends notifications.
    notifications: Arc<Notify>,
    /// Why the last attempt to connect failed. `None` while the database is available.
    connect_error: Mutex<Option<String>>,
    observer: OnceLock<Arc<dyn Observer>>,
}

/// Options of the store.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) read_connections: usize,
    pub(crate) write_connections: usize,
    pub(crate) acquire_timeout: Duration,
    pub(crate) is_short_lived: bool,
}

/// The error when a database cannot be opened: its URL is invalid, or it failed.
pub(crate) enum OpenFailure {
    Url(String),
    Store(StoreError),
}

impl From<StoreError> for OpenFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl PostgresStore {
    pub(crate) async fn open(
        url: &str,
        env: Env,
        key: Option<SecretKey>,
        settings: &Settings,
    ) -> Result<Self, OpenFailure> {
        let connect_options = ConnectOptions::parse(url).map_err(OpenFailure::Url)?;
        let key = match key {
            Some(key) => key,
            None => SecretKey::from_environment().map_err(|reason| StoreError::Unavailable(reason.to_string()))?,
        };
        let first = Connection::open(&connect_options, Role::Write).await?;
        migrate::run(&first.client).await?;
        let cursor_key = CursorKey::new(migrate::setting(&first.client, "cursor_key", env.bytes()).await?);
        let vault = Vault::new(key, env.clone());
        if migrate::setting(&first.client, vault::CHECK_SETTING, vault.check()).await? != vault.check() {
            let reason = format!("its secrets were sealed with another key; set {} to the right one", vault::VARIABLE);
            return Err(StoreError::Unavailable(reason).into());
        }
        let shared = Arc::new(Shared {
            env,
            cursor_key,
            delivery_wakeup: Arc::default(),
            vault,
            connect_options,
            reads: Queue::new(),
            writes: Queue::new(),
            is_short_lived: settings.is_short_lived,
            notifications: Arc::default(),
            connect_error: Mutex::default(),
            observer: OnceLock::new(),
        });
        for _ in 0..settings.read_connections.max(1) {
            tokio::spawn(reader::run(Arc::clone(&shared)));
        }
        let mut first = Some(first);
        for _ in 0..settings.write_connections.max(1) {
            tokio::spawn(writer::run(Arc::clone(&shared), first.take()));
        }
        let notifications = tokio::spawn(notifications::run(Arc::clone(&shared)));
        let clock = tokio::spawn(fail_expired(Arc::clone(&shared), settings.acquire_timeout));
        let counts = PostgresRequestCounts::start(Arc::clone(&shared));
        Ok(Self { shared, counts, background_tasks: vec![notifications.abort_handle(), clock.abort_handle()] })
    }
}

/// Migrates the schema of a database, and returns the names of the migrations that were applied.
pub(crate) async fn migrate(url: &str) -> Result<Vec<String>, OpenFailure> {
    let connect_options = ConnectOptions::parse(url).map_err(OpenFailure::Url)?;
    let connection = Connection::open(&connect_options, Role::Write).await?;
    Ok(migrate::run(&connection.client).await?)
}

#[async_trait]
impl Store for PostgresStore {
    async fn run(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
        let (waiting, answered) = QueuedWork::new(name, job);
        self.shared.queue(access).push(waiting)?;
        let lost = |_| StoreError::Unavailable("the store is shutting down".to_owned());
        answered.await.map_err(lost)?
    }

    fn env(&self) -> &Env {
        &self.shared.env
    }

    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        &self.shared.delivery_wakeup
    }

    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        Some(&self.counts)
    }

    /// The first observer stays.
    fn observe(&self, observer: Arc<dyn Observer>) {
        let _ = self.shared.observer.set(observer);
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.shared.reads.close();
        self.shared.writes.close();
        self.background_tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Shared {
    fn queue(&self, access: Access) -> &Queue {
        match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        }
    }

    fn report_group(&self, access: Access, jobs: usize) {
        if let Some(observer) = self.observer.get() {
            observer.group(access, jobs);
        }
    }

    fn report_retry(&self, job: &'static str) {
        if let Some(observer) = self.observer.get() {
            observer.retry(job);
        }
    }

    /// Queues a unit of work again whose connection was lost.
    fn requeue(&self, access: Access, job: QueuedWork, error: StoreError) {
        self.report_retry(job.name());
        self.queue(access).requeue(job, error);
    }

    /// Waits until there is a unit of work, then for a connection. `None` once the store is closed and nothing waits.
    async fn connection(&self, access: Access) -> Option<Connection> {
        let queue = self.queue(access);
        let role = match access {
            Access::Read => Role::Read,
            Access::Write => Role::Write,
        };
        let mut pause = MIN_PAUSE;
        // A unit of work that another task has taken meanwhile needs no second connection.
        while queue.filled().await {
            match Connection::open(&self.connect_options, role).await {
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

    /// Stores whether the database is available, and returns whether it was unavailable before.
    fn set_connect_error(&self, error: Option<String>) -> bool {
        std::mem::replace(&mut *lock(&self.connect_error), error).is_some()
    }

    /// Returns a random pause between half of `pause` and all of it, so that tasks that failed together do not retry together.
    fn jittered(&self, pause: Duration) -> Duration {
        let [random] = self.env.bytes();
        pause / 2 + pause / 2 * u32::from(random) / 255
    }
}

fn fail_all(jobs: Vec<QueuedWork>, error: &StoreError) {
    for job in jobs {
        job.answer(Err(error.clone().into()));
    }
}

/// Refuses units of work that have waited too long for a connection: the database is not available, or is overloaded.
async fn fail_expired(shared: Arc<Shared>, acquire_timeout: Duration) {
    loop {
        tokio::time::sleep(EXPIRY_CHECK_INTERVAL.min(acquire_timeout)).await;
        for queue in [&shared.reads, &shared.writes] {
            let late = queue.take_expired(acquire_timeout);
            if !late.is_empty() {
                let error = lock(&shared.connect_error).clone();
                let reason = error.unwrap_or_else(|| "all connections are busy".to_owned());
                fail_all(late, &StoreError::Unavailable(format!("no connection within {acquire_timeout:?}: {reason}")));
            }
        }
    }
}

#[cfg(test)]
mod tests;
