//! Bounds what is kept of responses. Of each subscription and day (UTC), the newest attempts keep the bodies of their
//! responses, so that a busy endpoint does not fill the disk with them.
//!
//! Bodies are deleted in the order of the events. A subscription remembers how many bodies of the day are kept, and up to
//! which delivery they were deleted.

use std::time::Duration;

use crate::env::first_id_at;
use crate::error::Error;
use crate::store::{DeletedResponses, Tx};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, Delivery};
use crate::webhooks::subscriptions::WebhookSubscription;

/// The number of attempts of a subscription and a day whose response bodies are always kept.
pub(super) const KEPT: u32 = 10_000;
/// The number of deliveries whose response bodies are deleted at once.
pub(super) const STEP: u32 = 100;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns what is logged of an attempt. Deletes older response bodies if there are too many, and leaves the body out if
/// that was not enough.
pub(super) async fn bounded(
    tx: &mut dyn Tx,
    tenant: TenantId,
    subscription: &mut WebhookSubscription,
    delivery: &Delivery,
    log: &AttemptLog,
) -> Result<AttemptLog, Error> {
    let mut log = log.clone();
    if log.response_body.as_deref().is_none_or(str::is_empty) {
        return Ok(log);
    }
    let today = first_id_at(start_of_day(tx.env().now())).into();
    let (mut deleted_until, mut kept) = match subscription.responses_deleted_until {
        Some(until) if until >= today => (until, subscription.responses_kept),
        _ => (today, 0),
    };
    if kept >= KEPT + STEP {
        let DeletedResponses { responses, last } =
            tx.delete_responses(tenant, subscription.id, deleted_until, STEP).await?;
        kept = kept.saturating_sub(responses);
        deleted_until = last.unwrap_or(deleted_until);
    }
    // A delivery in the range that is done, such as a retry of an old event, could not be found again.
    let is_done = (today..=deleted_until).contains(&delivery.id);
    if kept >= KEPT + STEP || is_done {
        log.response_body = None;
        log.response_truncated = true;
    } else {
        kept += 1;
    }
    (subscription.responses_deleted_until, subscription.responses_kept) = (Some(deleted_until), kept);
    Ok(log)
}

fn start_of_day(now: Timestamp) -> Timestamp {
    let day = i64::try_from(DAY.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(now.as_micros() - now.as_micros().rem_euclid(day))
}
