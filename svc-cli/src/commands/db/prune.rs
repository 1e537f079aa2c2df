//! Deletes what has had its day.

use std::time::Duration;

use serde_json::json;
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::Timestamp;
use svc_core::webhooks::retention::{self, Positions, STEP};

use crate::exit::Failure;
use crate::output::{Outcome, Table};
use crate::times::moment;

/// After each step, so that other writes come between.
const PAUSE: Duration = Duration::from_millis(10);
/// How long a server keeps answers under their Idempotency-Keys, unless it was told otherwise.
const SHORTEST_MEMORY: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn run(store: &dyn Store, keep: Duration, dry: bool) -> Result<Outcome, Failure> {
    let now = store.env().now();
    let before = now.minus(keep);
    // A client may still repeat a request whose answer is younger than that.
    let recorded_before = now.minus(keep.max(SHORTEST_MEMORY));
    let mut positions = Positions::new();
    let dropped = retention::sweep(store, &mut positions, before, dry, || tokio::time::sleep(PAUSE)).await?;
    let expired = if dry {
        let count = store.read("prune.count", move |tx| {
            Box::pin(async move { Ok(tx.count_request_records(recorded_before, now).await?) })
        });
        count.await?
    } else {
        drop_expired(store, recorded_before, now).await?
    };
    let rows = [
        ("delivery attempts", dropped.attempts),
        ("deliveries", dropped.deliveries),
        ("events", dropped.events),
        ("replays", dropped.replays),
        ("kept answers and used signatures", expired),
    ];
    let table = Table::new(["WHAT", "ROWS"], &rows, |(what, rows)| [(*what).to_owned(), rows.to_string()]);
    let done = if dry { "Would delete" } else { "Deleted" };
    let text = format!("{done} what is older than {}:\n\n{}", moment(before), table.to_text());
    let view = json!({
        "dry_run": dry,
        "before": before,
        "attempts": dropped.attempts,
        "deliveries": dropped.deliveries,
        "events": dropped.events,
        "replays": dropped.replays,
        "answers_and_signatures": expired,
    });
    Outcome::new(&view, text)
}

async fn drop_expired(store: &dyn Store, recorded_before: Timestamp, now: Timestamp) -> Result<u64, Error> {
    let mut dropped = 0;
    loop {
        let step = store.write("prune", move |tx| {
            // Of each of the two.
            Box::pin(async move { Ok(tx.delete_request_records(recorded_before, now, STEP / 2).await?) })
        });
        match step.await? {
            0 => return Ok(dropped),
            rows => dropped += rows,
        }
        tokio::time::sleep(PAUSE).await;
    }
}
