//! `svc webhook test`: sends a test event and waits for the result of its first attempt.

use std::time::Duration;

use svc_core::platform::{Delivery, DeliveryDetails, WebhookTest, operations};
use svc_core::values::{EventKind, TenantId};
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use tokio::time::{Instant, sleep};

use crate::commands::{delivery, lookup};
use crate::exit::{Exit, Failure};
use crate::ids::Target;
use crate::output::{Outcome, plain};
use crate::service::{CallResult, Service};
use crate::times::span;

/// The interval at which the delivery is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The interval of a server elsewhere, which has rate limits.
const POLL_INTERVAL_OF_SERVER: Duration = Duration::from_secs(1);

pub(super) async fn run(
    service: &Service,
    target: &Target,
    kind: Option<EventKind>,
    timeout: Duration,
) -> Result<Outcome, Failure> {
    let found = lookup::find::<WebhookSubscription>(service, &target.id, &target.account).await?;
    let sent = found.call(service, &operations::TEST_WEBHOOK, WebhookTest { kind }).await?;
    let record = first_attempt(service, found.tenant_id, &sent, timeout).await?;
    let failure = failure(&record, timeout).map(|error| Failure::new(Exit::Failed, error));
    // Nothing was sent, so there is nothing to show.
    if let Some(failure) = failure.as_ref().filter(|_| record.delivery.attempts == 0) {
        return Err(failure.clone());
    }
    let introduction =
        format!("Sent a {} test event to webhook {} at {}.\n\n", sent.event, found.id, found.record.url.as_str());
    Ok(delivery::report(&record, &introduction)?.with_failure(failure))
}

/// Returns the delivery once its first attempt has finished, or in its current status when the timeout is over.
async fn first_attempt(
    service: &Service,
    account: TenantId,
    sent: &Delivery,
    timeout: Duration,
) -> CallResult<DeliveryDetails> {
    let started = Instant::now();
    let interval = if service.is_server() { POLL_INTERVAL_OF_SERVER } else { POLL_INTERVAL };
    loop {
        let record = service.call(&operations::GET_DELIVERY, (account, sent.id), ()).await?;
        let finished = !record.log.is_empty() || record.delivery.status != DeliveryStatus::Pending;
        let left = timeout.saturating_sub(started.elapsed());
        if finished || left.is_zero() {
            return Ok(record);
        }
        sleep(interval.min(left)).await;
    }
}

/// Returns why the test failed, if it did.
fn failure(record: &DeliveryDetails, timeout: Duration) -> Option<String> {
    let Delivery { id, status, attempts, .. } = record.delivery;
    let timeout = span(timeout);
    match record.log.first() {
        Some(log) if log.succeeded() => None,
        Some(log) => {
            let reason = log.error.as_deref().unwrap_or("the response status is not 2xx");
            Some(format!("The attempt failed: {}.", plain(reason)))
        }
        None if status == DeliveryStatus::Held => {
            Some("The webhook was disabled or paused before the first attempt, so the delivery is held.".to_owned())
        }
        None if attempts == 0 => Some(format!(
            "No server made an attempt within {timeout}. Check that a server is running on this database. The delivery \
             stays pending; run `svc delivery show {id}` to see its result."
        )),
        None => Some(format!(
            "The attempt did not finish within {timeout}. Run `svc delivery show {id}` to see its result."
        )),
    }
}
