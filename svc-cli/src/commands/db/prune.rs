//! `svc db prune`.

use std::pin::pin;
use std::time::Duration;

use serde_json::json;
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::Timestamp;
use svc_core::webhooks::retention::{self, DeletedCounts, Positions, STEP};

use crate::exit::{Exit, Failure};
use crate::output::{Outcome, Table};
use crate::times::moment;

/// The pause after each transaction, which lets other writes proceed.
const PAUSE: Duration = Duration::from_millis(10);
/// The minimum age of a stored response that is deleted: the server's default for `--idempotency-ttl`.
const MIN_RESPONSE_AGE: Duration = Duration::from_secs(24 * 3600);

pub(super) async fn run(store: &dyn Store, retention: Duration, is_dry_run: bool) -> Result<Outcome, Failure> {
    let now = store.env().now();
    let before = now.minus(retention);
    // A client may still repeat a request whose stored response is younger than this.
    let recorded_before = now.minus(retention.max(MIN_RESPONSE_AGE));
    let mut positions = Positions::new();
    let mut deleted = DeletedCounts::default();
    let mut interrupted = pin!(tokio::signal::ctrl_c());
    let interruption = loop {
        let mut swept = DeletedCounts::default();
        let pause = || tokio::time::sleep(PAUSE);
        let sweep = retention::sweep_counting(store, &mut positions, before, is_dry_run, pause, &mut swept);
        let is_interrupted = tokio::select! {
            biased;
            _ = &mut interrupted => true,
            done = sweep => done.map(|()| false)?,
        };
        deleted += swept;
        if is_interrupted {
            let reason = "Interrupted. Run the same command again to delete the rest.";
            break Some(Failure::new(Exit::Failed, reason));
        }
        // A sweep drops some partitions at most.
        if swept.partitions == 0 {
            break None;
        }
    };
    let expired = if interruption.is_some() {
        0
    } else if is_dry_run {
        let count = store.read("prune.count", (recorded_before, now), async |tx, &(recorded_before, now)| {
            Ok(tx.count_request_records(recorded_before, now).await?)
        });
        count.await?
    } else {
        delete_expired(store, recorded_before, now).await?
    };
    let rows = [
        ("delivery attempts", deleted.attempts),
        ("deliveries", deleted.deliveries),
        ("events", deleted.events),
        ("replays", deleted.replays),
        ("partitions of PostgreSQL, with all their rows", deleted.partitions),
        ("stored responses and used signatures", expired),
    ];
    let table = Table::new(["DATA", "ROWS"], &rows, |(what, rows)| [(*what).to_owned(), rows.to_string()]);
    let verb = if is_dry_run { "Would delete" } else { "Deleted" };
    let text = format!("{verb} data older than {}:\n\n{}", moment(before), table.to_text());
    let view = json!({
        "dry_run": is_dry_run,
        "before": before,
        "attempts": deleted.attempts,
        "deliveries": deleted.deliveries,
        "events": deleted.events,
        "replays": deleted.replays,
        "partitions": deleted.partitions,
        "responses_and_signatures": expired,
    });
    Ok(Outcome::new(&view, text)?.with_failure(interruption))
}

async fn delete_expired(store: &dyn Store, recorded_before: Timestamp, now: Timestamp) -> Result<u64, Error> {
    let mut deleted = 0;
    loop {
        let step = store.write("prune", (recorded_before, now), async |tx, &(recorded_before, now)| {
            Ok(tx.delete_request_records(recorded_before, now, STEP / 2).await?)
        });
        match step.await? {
            0 => return Ok(deleted),
            rows => deleted += rows,
        }
        tokio::time::sleep(PAUSE).await;
    }
}
