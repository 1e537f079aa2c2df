//! A write whose event many subscriptions want, while their endpoints keep up.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::{emit, middle, open, tenant_with_subscriptions};
use crate::error::Result;
use crate::table;

const SUBSCRIPTIONS: [u32; 4] = [0, 10, 100, super::MAX_SUBSCRIPTIONS];
/// Writes for each number of subscriptions.
const WRITES: usize = 101;
/// What is left when all deliveries have succeeded.
const DELIVER: &str = "UPDATE deliveries SET status = 'succeeded', attempts = 1, next_attempt_at = NULL
    WHERE next_attempt_at IS NOT NULL;
    DELETE FROM endpoint_schedule";

/// Measures how long a write takes, each in a commit of its own.
pub(super) async fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("svc.db");
    let svc = open(&file)?;
    let connection = Connection::open(&file)?;
    let mut alone = Duration::ZERO;
    for subscriptions in SUBSCRIPTIONS {
        let tenant = tenant_with_subscriptions(&svc, subscriptions).await?;
        let mut taken = Vec::with_capacity(WRITES);
        for _ in 0..WRITES {
            connection.execute_batch(DELIVER)?;
            let started = Instant::now();
            emit(&svc, tenant, 1).await?;
            taken.push(started.elapsed());
        }
        let taken = middle(taken);
        if subscriptions == 0 {
            alone = taken;
        }
        let added = taken.saturating_sub(alone);
        table::print_line(&format!(
            "fan-out: {subscriptions:>5} subscriptions: {taken:>7.2?} a write, {added:>7.2?} more"
        ))?;
    }
    Ok(())
}
