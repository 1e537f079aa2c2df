//! Counts requests for rate limits across all nodes, in an unlogged table and on a connection of its own.
//!
//! One statement adds all queued counts, so a request costs a share of a round trip and no write to PostgreSQL's
//! write-ahead log. When the server crashes, the table is empty afterwards and all windows start again. While there is no
//! connection, each call fails at once, and the node counts its requests in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use svc_core::error::StoreError;
use svc_core::store::{CountChange, RequestCounts, RequestWindow, StoreResult};
use svc_core::values::Timestamp;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use uuid::Uuid;

use super::Shared;
use super::connect_options::Role;
use super::connection::PostgresConnection;
use super::failure::TransactionFailure;
use super::values::{Argument, Received};
use crate::sql::Cells;

/// The most calls that one statement serves.
const MAX_BATCH: usize = 512;
/// The most calls that can wait.
const QUEUE_CAPACITY: usize = 16_384;
/// The longest that a statement may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// The shortest time between two attempts to connect.
const RECONNECT_INTERVAL: Duration = Duration::from_secs(1);
/// How often ended windows are deleted.
const CLEANUP_INTERVAL: Duration = Duration::from_secs(60);

/// Adds counts to windows, and starts windows. The rows are sorted, so that nodes do not deadlock. A window has ended if it
/// started at or before `$5`. It is also replaced if it started after `$6`, as the clock of a node was wrong then. A row that takes
/// counts back starts no window, and no window has less than none.
const ADD: &str = "INSERT INTO request_windows AS w (subject, bucket, started, used) \
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::integer[]) AS c (subject, bucket, started, used) \
     WHERE c.used >= 0 OR EXISTS (SELECT FROM request_windows o WHERE o.subject = c.subject AND o.bucket = c.bucket) \
     ON CONFLICT (subject, bucket) DO UPDATE SET \
     started = CASE WHEN w.started <= $5 OR w.started > $6 THEN excluded.started ELSE w.started END, \
     used = greatest(\
     CASE WHEN w.started <= $5 OR w.started > $6 THEN 0 ELSE greatest(w.used, 0) END + excluded.used, 0) \
     RETURNING w.subject, w.bucket, w.started, w.used";
const DELETE_ENDED: &str = "DELETE FROM request_windows WHERE started < $1";

const TABLE: &str = "request_windows";

#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[ADD, DELETE_ENDED];

/// A call of [`RequestCounts::add`] that waits for its result.
struct QueuedCall {
    changes: Vec<CountChange>,
    window: Duration,
    result_sender: oneshot::Sender<StoreResult<Vec<RequestWindow>>>,
}

/// Sends calls to the task that counts.
pub(super) struct PostgresRequestCounts(mpsc::Sender<QueuedCall>);

impl PostgresRequestCounts {
    /// Returns a handle and its task, which ends when the handle is dropped.
    pub(super) fn new(shared: Arc<Shared>) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (sender, calls) = mpsc::channel(QUEUE_CAPACITY);
        (Self(sender), run(shared, calls))
    }
}

#[async_trait]
impl RequestCounts for PostgresRequestCounts {
    async fn add(&self, changes: &[CountChange], window: Duration) -> StoreResult<Vec<RequestWindow>> {
        let (result_sender, result) = oneshot::channel();
        let call = QueuedCall { changes: changes.to_vec(), window, result_sender };
        self.0.try_send(call).map_err(|error| match error {
            TrySendError::Full(_) => StoreError::Unavailable(format!("{QUEUE_CAPACITY} requests wait to be counted")),
            TrySendError::Closed(_) => StoreError::Closed,
        })?;
        result.await.map_err(|_| StoreError::Closed)?
    }
}

async fn run(shared: Arc<Shared>, mut calls: mpsc::Receiver<QueuedCall>) {
    let mut batch = Vec::new();
    let mut connection: Option<PostgresConnection> = None;
    let mut last_attempt = None::<Instant>;
    let mut cleaned_up_at = Instant::now();
    while calls.recv_many(&mut batch, MAX_BATCH).await > 0 {
        let may_connect = last_attempt.is_none_or(|at| at.elapsed() >= RECONNECT_INTERVAL);
        if connection.as_ref().is_none_or(PostgresConnection::is_closed) && may_connect {
            last_attempt = Some(Instant::now());
            connection = PostgresConnection::open(&shared.connect_options, Role::Volatile).await.ok();
        }
        let added = match &connection {
            Some(connection) => with_timeout(add(connection, &shared, &batch)).await,
            None => Err(StoreError::Unavailable("there is no connection for request counts".to_owned())),
        };
        // After an error the connection is closed, as its responses may still arrive later.
        connection = connection.filter(|_| added.is_ok());
        match added {
            Ok(windows) => {
                for (call, windows) in batch.drain(..).zip(windows) {
                    let _ = call.result_sender.send(Ok(windows));
                }
            }
            Err(error) => {
                for call in batch.drain(..) {
                    let _ = call.result_sender.send(Err(error.clone()));
                }
            }
        }
        if let Some(open) = connection.as_ref().filter(|_| cleaned_up_at.elapsed() >= CLEANUP_INTERVAL) {
            cleaned_up_at = Instant::now();
            let ended = Argument::Time(shared.context.env.now().minus(CLEANUP_INTERVAL * 2));
            if let Err(error) = with_timeout(query(open, DELETE_ENDED, [ended])).await {
                tracing::debug!(%error, "ended rate-limit windows were not deleted");
                connection = None;
            }
        }
    }
}

async fn with_timeout<T>(query: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
    let timed_out = |_| StoreError::Unavailable(format!("no response within {TIMEOUT:?}"));
    timeout(TIMEOUT, query).await.map_err(timed_out)?
}

/// The subject and the bucket of a window.
type WindowKey = (Uuid, &'static str);

/// Adds the sum of all changes. Returns for each call the windows as they were after its own changes.
async fn add(
    connection: &PostgresConnection,
    shared: &Shared,
    batch: &[QueuedCall],
) -> StoreResult<Vec<Vec<RequestWindow>>> {
    let mut sums: BTreeMap<WindowKey, (Timestamp, i32)> = BTreeMap::new();
    for change in batch.iter().flat_map(|call| &call.changes) {
        let sum = sums.entry((change.subject, change.bucket)).or_insert((change.at, 0));
        sum.1 = sum.1.saturating_add(change.by);
    }
    let length = batch.iter().map(|call| call.window).max().unwrap_or_default();
    let now = shared.context.env.now();
    let arguments = [
        Argument::Array(sums.keys().map(|(subject, _)| Argument::Uuid(*subject)).collect()),
        Argument::Array(sums.keys().map(|(_, bucket)| Argument::Text((*bucket).to_owned())).collect()),
        Argument::Array(sums.values().map(|(at, _)| Argument::Time(*at)).collect()),
        Argument::Array(sums.values().map(|(_, by)| Argument::Int((*by).into())).collect()),
        Argument::Time(now.minus(length)),
        Argument::Time(now.checked_add(length).unwrap_or(now)),
    ];
    let mut windows: BTreeMap<WindowKey, RequestWindow> = BTreeMap::new();
    for row in query(connection, ADD, arguments).await? {
        let row = Received { row: &row, vault: &shared.context.vault };
        let mut cells = Cells::new(&row);
        let subject: Uuid = cells.take(TABLE, "subject")?;
        let bucket: String = cells.take(TABLE, "bucket")?;
        let started: Timestamp = cells.take(TABLE, "started")?;
        let used: i32 = cells.take(TABLE, "used")?;
        let mut of_subject = sums.range((subject, "")..).take_while(|((other, _), _)| *other == subject);
        if let Some((name, (_, by))) = of_subject.find(|((_, name), _)| *name == bucket) {
            // The window as it was before the first of these calls.
            windows.insert(*name, RequestWindow { started, used: u32::try_from(used - by).unwrap_or(0) });
        }
    }
    let mut after = |change: &CountChange| {
        // The counts that were taken back had no window.
        let window = windows.entry((change.subject, change.bucket));
        let window = window.or_insert(RequestWindow { started: change.at, used: 0 });
        window.used = window.used.saturating_add_signed(change.by);
        *window
    };
    let each = batch.iter().map(|call| call.changes.iter().map(&mut after).collect());
    Ok(each.collect())
}

pub(super) async fn query(
    connection: &PostgresConnection,
    sql: &str,
    arguments: impl IntoIterator<Item = Argument, IntoIter: ExactSizeIterator> + Send,
) -> StoreResult<Vec<tokio_postgres::Row>> {
    let done = async {
        let statement = match connection.prepared(sql) {
            Some(statement) => statement,
            None => connection.prepare(sql).await?,
        };
        connection.client.query_raw(&statement, arguments).await?.try_collect().await
    };
    done.await.map_err(|error| TransactionFailure::of(&error).error)
}
