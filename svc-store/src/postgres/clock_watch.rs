//! Compares the clock of this process with that of the database.
//!
//! The times of a tenant only go forward, so one write with a clock that is years ahead would keep the tenant there. A
//! process whose clock differs by more than [`MAX_SKEW`] therefore takes no writes. The clock is compared when the store
//! opens and every minute. In between, each write compares it with the time of the database that was seen last and the
//! time that has passed since, so a clock that jumps is found before it does harm.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use svc_core::env::Env;
use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use svc_core::sync::lock;
use svc_core::values::Timestamp;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use super::failure::cannot_connect;

/// The largest difference between the clocks with which a process takes writes.
const MAX_SKEW: Duration = Duration::from_secs(10);
/// How often the clocks are compared.
const INTERVAL: Duration = Duration::from_secs(60);
/// The shortest time between two comparisons, when writes ask for one.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The longest that the database may take to respond. It makes the comparison less exact.
const TIMEOUT: Duration = Duration::from_secs(5);

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

/// The last comparison of the clocks.
#[derive(Default)]
pub(super) struct ClockWatch {
    /// `None` for a simulated clock, which is not compared.
    reference: Mutex<Option<Reference>>,
    /// Asks for a comparison before the next minute.
    requested: Notify,
    is_reported: AtomicBool,
}

/// A time of the database, and when it was that time.
#[derive(Clone, Copy)]
struct Reference {
    database: Timestamp,
    seen_at: Instant,
}

impl ClockWatch {
    /// Returns the error of a write if the clock differs too much from that of the database.
    pub(super) fn check(&self, env: &Env) -> StoreResult<()> {
        let checked = self.compare(env);
        if checked.is_err() {
            self.requested.notify_one();
        }
        checked
    }

    fn compare(&self, env: &Env) -> StoreResult<()> {
        let Some(Reference { database, seen_at }) = *lock(&self.reference) else { return Ok(()) };
        let database = database.checked_add(seen_at.elapsed()).unwrap_or(database);
        let now = env.now();
        let skew = now.since(database).max(database.since(now));
        if skew <= MAX_SKEW {
            return Ok(());
        }
        let direction = if now > database { "ahead of" } else { "behind" };
        Err(StoreError::ClockSkew(format!(
            "the clock of this machine shows {now}, {} s {direction} the database's; at most {} s are allowed. Set it, and \
             keep NTP running on both machines",
            skew.as_secs(),
            MAX_SKEW.as_secs()
        )))
    }

    /// Asks the database for its time, compares it with the clock, and logs when writes stop or go on.
    pub(super) async fn update(&self, client: &Client, env: &Env) -> StoreResult<()> {
        if env.is_clock_simulated() {
            return Ok(());
        }
        let asked_at = Instant::now();
        let row = match timeout(TIMEOUT, client.query_one(NOW, &[])).await {
            Ok(row) => row.and_then(|row| row.try_get(0)).map_err(|error| cannot_connect(&error))?,
            Err(_) => return Err(StoreError::Unavailable(format!("no response within {TIMEOUT:?}"))),
        };
        let seen_at = asked_at + asked_at.elapsed() / 2;
        *lock(&self.reference) = Some(Reference { database: Timestamp::from_micros(row), seen_at });
        let compared = self.compare(env);
        let was_reported = self.is_reported.swap(compared.is_err(), Ordering::Relaxed);
        match compared {
            Err(error) if !was_reported => tracing::error!(%error, "the clock is wrong"),
            Ok(()) if was_reported => tracing::info!("the clock is right again; this process takes writes"),
            _ => {}
        }
        Ok(())
    }

    /// Compares the clocks every minute, or when a write asks for it, until the connection fails.
    pub(super) async fn run(&self, client: &Client, env: &Env) -> StoreResult<()> {
        loop {
            self.update(client, env).await?;
            sleep(MIN_INTERVAL).await;
            let _ = timeout(INTERVAL - MIN_INTERVAL, self.requested.notified()).await;
        }
    }

    /// Sets the time of the database that was seen last.
    #[cfg(test)]
    pub(super) fn pretend(&self, database: Timestamp) {
        *lock(&self.reference) = Some(Reference { database, seen_at: Instant::now() });
    }
}
