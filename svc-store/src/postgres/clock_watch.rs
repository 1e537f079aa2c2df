//! Asks the database for its time, and compares it with the clock of this machine ([`DatabaseClock`]): when the store opens, every
//! minute, and when a write has found that the two differ.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use svc_core::env::Clock as _;
use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use svc_core::values::Timestamp;
use tokio::time::{sleep, timeout};
use tokio_postgres::Client;

use super::failure::cannot_connect;
use crate::database_clock::DatabaseClock;

/// How often the clocks are compared.
const INTERVAL: Duration = Duration::from_secs(60);
/// The shortest time between two comparisons, when writes ask for one.
const MIN_INTERVAL: Duration = Duration::from_secs(1);
/// The longest that the database may take to respond. It makes the comparison less exact.
const TIMEOUT: Duration = Duration::from_secs(5);

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

pub(super) struct ClockWatch {
    pub(super) clock: DatabaseClock,
    is_reported: AtomicBool,
}

impl ClockWatch {
    pub(super) fn new(clock: DatabaseClock) -> Self {
        Self { clock, is_reported: AtomicBool::new(false) }
    }

    /// Asks the database for its time, compares it with the clock, and logs when writes stop or go on.
    pub(super) async fn update(&self, client: &Client) -> StoreResult<()> {
        if self.clock.is_simulated() {
            return Ok(());
        }
        let asked_at = Instant::now();
        // In one round trip, so that the database is asked in the middle of it.
        let row = match timeout(TIMEOUT, client.query_typed_one(NOW, &[])).await {
            Ok(row) => row.and_then(|row| row.try_get(0)).map_err(|error| cannot_connect(&error))?,
            Err(_) => return Err(StoreError::Unavailable(format!("no response within {TIMEOUT:?}"))),
        };
        let half = asked_at.elapsed() / 2;
        self.clock.set(Timestamp::from_micros(row), asked_at + half, half);
        let compared = self.clock.compare();
        let was_reported = self.is_reported.swap(compared.is_err(), Ordering::Relaxed);
        match compared {
            Err(error) if !was_reported => tracing::error!(%error, "the clock is wrong"),
            Ok(()) if was_reported => tracing::info!("the clock is right again; this process takes writes"),
            _ => {}
        }
        Ok(())
    }

    /// Compares the clocks every minute, or when a write asks for it, until the connection fails.
    pub(super) async fn run(&self, client: &Client) -> StoreResult<()> {
        loop {
            self.update(client).await?;
            sleep(MIN_INTERVAL).await;
            let _ = timeout(INTERVAL - MIN_INTERVAL, self.clock.requested()).await;
        }
    }
}
