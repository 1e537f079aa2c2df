//! Retention of events that many subscriptions got.

use std::time::Instant;

use rusqlite::Connection;
use svc_core::webhooks::retention::{self, Positions};

use super::{emit, open, tenant_with_subscriptions};
use crate::error::Result;
use crate::table;

/// As many deliveries in each run.
const DELIVERIES: u32 = 100_000;
const SUBSCRIPTIONS: [u32; 3] = [10, 100, super::MAX_SUBSCRIPTIONS];
/// Events in one commit.
const EVENTS: u32 = 100;

/// Measures how long a sweep takes that deletes everything, without the pauses between its steps.
pub(super) async fn run() -> Result<()> {
    for subscriptions in SUBSCRIPTIONS {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("svc.db");
        let svc = open(&file)?;
        let tenant = tenant_with_subscriptions(&svc, subscriptions).await?;
        let mut events = DELIVERIES / subscriptions;
        while events > 0 {
            let commit = events.min(EVENTS);
            emit(&svc, tenant, commit).await?;
            events -= commit;
        }
        // Pending deliveries would stay.
        Connection::open(&file)?.execute("UPDATE deliveries SET status = 'succeeded', next_attempt_at = NULL", [])?;
        let (mut positions, now) = (Positions::new(), svc.store().env().now());
        let started = Instant::now();
        let deleted = retention::sweep(&**svc.store(), &mut positions, now, false, || async {}).await?;
        let taken = started.elapsed();
        if deleted.deliveries != u64::from(DELIVERIES) {
            return Err(format!("the sweep deleted {deleted:?}").into());
        }
        let each = taken / DELIVERIES;
        table::print_line(&format!(
            "retention: {DELIVERIES} deliveries of events with {subscriptions} each: {taken:.2?}, {each:.1?} a delivery"
        ))?;
    }
    Ok(())
}
