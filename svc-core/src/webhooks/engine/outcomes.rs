//! Recording outcomes: stores the result of each attempt, schedules retries, and pauses subscriptions that keep failing.

use std::collections::BTreeMap;

use super::attempt::AttemptResult;
use super::batch::{Batch, FailedAttempt};
use super::claim::schedule_next;
use super::policy::Policy;
use super::responses;
use crate::accounts::audit::AuditAction;
use crate::accounts::clocks::advance_clock;
use crate::accounts::operational::{self, OperationalKind};
use crate::error::{Error, StoreError};
use crate::resources::crud;
use crate::store::{Repository, Tx};
use crate::values::TenantId;
use crate::webhooks::deliveries::{Delivery, DeliveryId, DeliveryStatus, WAITS_FOR_ANOTHER};
use crate::webhooks::operational::{DeliveryExhausted, EndpointPaused};
use crate::webhooks::subscriptions::{self, SETTLE_AT_ONCE, SubscriptionId, WebhookSubscription};

/// The HTTP status 410, by which an endpoint says that it will never take the delivery, so there are no retries.
const GONE: i32 = 410;

/// Records the outcomes of a batch and returns the attempts that failed.
pub(super) async fn record(tx: &mut dyn Tx, policy: &Policy, batch: &Batch) -> Result<Vec<FailedAttempt>, Error> {
    let mut failures = Vec::new();
    let mut report = operational::Report::default();
    let now = tx.env().now();
    let tenant = batch.tenant_id;
    let mut by_endpoint: BTreeMap<SubscriptionId, Vec<&AttemptResult>> = BTreeMap::new();
    for outcome in &batch.outcomes {
        by_endpoint.entry(outcome.delivery.subscription_id).or_default().push(outcome);
    }
    for (id, outcomes) in by_endpoint {
        let subscription = none_if_corrupt(Repository::<WebhookSubscription>::get(tx, tenant, id).await)?;
        let Some(mut subscription) = subscription else { continue };
        let was_paused = subscription.paused_at;
        let ids: Vec<DeliveryId> = outcomes.iter().map(|outcome| outcome.delivery.id).collect();
        let stored = stored_deliveries(tx, tenant, &ids).await?;
        for outcome in outcomes {
            // The lease is the fencing token. The tenant is locked, so it cannot change before the update.
            let holds_lease =
                |stored: &&Delivery| stored.id == outcome.delivery.id && stored.lease == outcome.delivery.lease;
            if let Some(delivery) = stored.iter().find(holds_lease) {
                let failed = record_one(tx, policy, &mut subscription, delivery.clone(), outcome).await?;
                if let Some(failed) = failed.as_ref().filter(|failed| failed.is_last()) {
                    let exhausted = DeliveryExhausted::new(&subscription, failed, now);
                    report.add(OperationalKind::DeliveryExhausted, &exhausted)?;
                }
                failures.extend(failed);
            }
        }
        if subscription.paused_at == was_paused {
            tx.update_delivery_outcome(tenant, &subscription).await?;
        } else {
            report.add(OperationalKind::EndpointPaused, &EndpointPaused::new(tenant, &subscription))?;
            subscriptions::settle(tx, tenant, &mut subscription, SETTLE_AT_ONCE).await?;
            Repository::<WebhookSubscription>::update(tx, tenant, &subscription).await?;
        }
        schedule_next(tx, tenant, &subscription).await?;
    }
    operational::record(tx, tenant, report).await?;
    Ok(failures)
}

/// Treats a row that cannot be read as missing, so that it does not block the outcomes of others.
pub(super) fn none_if_corrupt<T>(row: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match row {
        Err(StoreError::Corrupt { .. }) => Ok(None),
        row => row,
    }
}

/// Returns the deliveries as they are stored, without those that cannot be read.
async fn stored_deliveries(tx: &mut dyn Tx, tenant: TenantId, ids: &[DeliveryId]) -> Result<Vec<Delivery>, Error> {
    match tx.deliveries(tenant, ids).await {
        Err(StoreError::Corrupt { .. }) => {}
        stored => return Ok(stored?),
    }
    let mut readable = Vec::new();
    for id in ids {
        readable.extend(none_if_corrupt(tx.delivery(tenant, *id).await)?);
    }
    Ok(readable)
}

/// Records one outcome, and pauses the subscription if this is the tenth failure in a row. Returns the attempt if it failed.
async fn record_one(
    tx: &mut dyn Tx,
    policy: &Policy,
    subscription: &mut WebhookSubscription,
    mut delivery: Delivery,
    outcome: &AttemptResult,
) -> Result<Option<FailedAttempt>, Error> {
    let AttemptResult { log, retry_after, .. } = outcome;
    let (tenant, lease) = (delivery.tenant_id, delivery.lease);
    let now = tx.env().now();
    let policy = policy.of(subscription);
    let pauses = subscription.record_attempt(outcome, &policy.retry, now);
    if pauses {
        let before = subscription.clone();
        subscription.pause(advance_clock(tx, tenant).await?);
        crud::audit_change(tx, tenant, AuditAction::Pause, Some(&before), Some(subscription)).await?;
    }
    let after_failure = subscription.after_failure(&delivery);
    delivery.failures += u32::from(!log.succeeded());
    let [jitter] = tx.env().bytes();
    let delay = policy.retry.delay(delivery.failures, jitter, *retry_after).filter(|_| log.status != GONE);
    delivery.record_outcome(log, delay, now, after_failure);
    tx.update_delivery(&delivery, lease).await?;
    release_next(tx, &delivery).await?;
    let log = responses::bounded(tx, tenant, subscription, &delivery, log).await?;
    tx.insert_attempt(tenant, delivery.id, &log).await?;
    if log.succeeded() {
        return Ok(None);
    }
    let host = subscription.url.host().to_owned();
    Ok(Some(FailedAttempt { delivery, host, error: log.error, has_paused: pauses }))
}

/// Makes the next delivery of the same record due, if one waits for a delivery that has ended.
async fn release_next(tx: &mut dyn Tx, ended: &Delivery) -> Result<(), Error> {
    let Some(order_key) = ended.order_key.filter(|_| ended.status != DeliveryStatus::Pending) else { return Ok(()) };
    let Some(next) = tx.first_ordered(ended.tenant_id, ended.subscription_id, order_key).await? else { return Ok(()) };
    let next = none_if_corrupt(tx.delivery(ended.tenant_id, next).await)?;
    if let Some(mut next) = next.filter(|next| next.next_attempt_at == Some(WAITS_FOR_ANOTHER)) {
        next.next_attempt_at = Some(tx.env().now());
        tx.update_delivery(&next, next.lease).await?;
    }
    Ok(())
}
