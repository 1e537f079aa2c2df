//! `svc webhook test`: sends an event that tells of nothing, and waits for what comes of its first attempt.

use std::time::Duration;

use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::EventKind;
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus};
use svc_core::webhooks::subscriptions::{self, WebhookSubscription};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::HINT;
use crate::commands::delivery::{self, Record};
use crate::commands::lookup;
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::output::{Outcome, plain};
use crate::times::span;

/// Between two looks at the delivery: the server writes down what came of an attempt, and tells nobody.
const LOOK_EVERY: Duration = Duration::from_millis(100);

pub(super) async fn run(
    store: &dyn Store,
    id: Uuid,
    kind: Option<EventKind>,
    timeout: Duration,
) -> Result<Outcome, Failure> {
    let (subscription, sent) = send(store, id, kind).await.or_not_found("webhook", id, HINT)?;
    let record = first_attempt(store, &sent, timeout).await?;
    let said = format!("Tested webhook {id} at {} with {}.\n\n", subscription.url.as_str(), sent.kind);
    let failure = failure(&record, timeout).map(|error| Failure::new(Exit::Failed, error));
    Ok(delivery::report(&record, &said)?.with_failure(failure))
}

async fn send(store: &dyn Store, id: Uuid, kind: Option<EventKind>) -> Result<(WebhookSubscription, Delivery), Error> {
    let (tenant, subscription) = lookup::find(store, id).await?;
    let send = store.write("webhook.test", move |tx| Box::pin(subscriptions::send_test(tx, tenant, id, kind)));
    Ok((subscription, send.await?))
}

/// The delivery once its first attempt has ended, or as it is when the time is up.
async fn first_attempt(store: &dyn Store, sent: &Delivery, timeout: Duration) -> Result<Record, Error> {
    let began = Instant::now();
    loop {
        let record = delivery::read(store, sent.tenant_id, sent.id).await?;
        let over = !record.log.is_empty() || record.delivery.status != DeliveryStatus::Pending;
        let left = timeout.saturating_sub(began.elapsed());
        if over || left.is_zero() {
            return Ok(record);
        }
        sleep(LOOK_EVERY.min(left)).await;
    }
}

/// Why the test failed, if it did.
fn failure(record: &Record, timeout: Duration) -> Option<String> {
    let Delivery { id, status: state, attempts, .. } = record.delivery;
    let timeout = span(timeout);
    match record.log.first() {
        Some(log) if log.succeeded() => None,
        Some(log) => {
            let reason = log.error.as_deref().unwrap_or("it was not answered with 2xx");
            Some(format!("The attempt failed: {}.", plain(reason)))
        }
        None if state == DeliveryStatus::Held => {
            Some("The webhook was disabled or paused before an attempt was made, so the delivery is held.".to_owned())
        }
        None if attempts == 0 => Some(format!(
            "No server has picked it up within {timeout}; is one running on this database? The delivery stays \
             pending, and `svc delivery show {id}` tells what comes of it."
        )),
        None => Some(format!(
            "The attempt has not ended within {timeout}; `svc delivery show {id}` tells what comes of it."
        )),
    }
}
