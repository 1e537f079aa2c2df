//! The delivery engine, without I/O: which attempts are to be made, and what follows from their outcomes.
//!
//! Every subscription that has something to send has one *turn*: the time from which it may be picked. Picking
//! goes by turn, so an endpoint with a backlog goes behind the others each time it was picked, whatever the
//! length of its backlog. Each endpoint has a *window*, the number of attempts that may be in flight: small at
//! first, growing with each success, one after a failure, so that an endpoint that comes back is not flooded.
//!
//! A driver takes a [`due_work`] in a read job, lets [`InFlight::plan`] make of it one round per tenant, carries each
//! [`batch`] out in a write job, and makes the attempts that it returns. What was leased and never ended is due again
//! when its lease ends. It looks every few seconds at least, so that a clock that jumps is noticed: leases that end
//! by a jump get more time.

mod plan;

use std::collections::BTreeMap;
use std::time::Duration;

use uuid::Uuid;

use crate::accounts::audit::Actor;
use crate::env::time_of_id;
use crate::error::{Error, StoreError};
use crate::resources::crud::{self, advance_clock};
use crate::store::{DueDelivery, Repository, Tx};
use crate::values::{Secret, TenantId, Timestamp, WebhookUrl};
use crate::webhooks::deliveries::{AttemptLog, Delivery, DeliveryStatus, RetrySchedule};
use crate::webhooks::events::Event;
use crate::webhooks::replays;
use crate::webhooks::signatures;
use crate::webhooks::subscriptions::WebhookSubscription;

use self::plan::{Action, Selection};
pub use self::plan::{Batch, DueWork, InFlight, poll};

/// How long an endpoint waits whose window is full. An outcome brings its turn back earlier; should none come, as
/// when its sender is gone, this is how long the others of its deliveries wait.
const FULL_WINDOW_DELAY: Duration = Duration::from_secs(2);
/// How long an endpoint waits of which something cannot be read.
const CORRUPT_ROW_DELAY: Duration = Duration::from_secs(60);

/// How deliveries are made.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The deadline of an attempt.
    pub timeout: Duration,
    /// The waits before retries.
    pub retry: RetrySchedule,
    /// Most attempts in flight; one tenant gets half of them at most.
    pub concurrency: usize,
}

impl Default for Policy {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), retry: RetrySchedule::default(), concurrency: 2048 }
    }
}

impl Policy {
    /// How long a lease holds: well past the deadline, so that a slow endpoint never causes a repeat.
    pub fn lease(&self) -> Duration {
        self.timeout * 2 + Duration::from_secs(10)
    }
}

/// An attempt to be made.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The delivery, with its lease.
    pub delivery: Delivery,
    /// What is delivered.
    pub event: Event,
    /// Where to.
    pub url: WebhookUrl,
    /// Keys of its signatures, the newest first.
    pub secrets: Vec<Secret>,
}

/// What an attempt came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The delivery as the attempt had it.
    pub delivery: Delivery,
    /// What happened.
    pub log: AttemptLog,
    /// What the endpoint asked for by `Retry-After`, on 429 and 503.
    pub retry_after: Option<Duration>,
}

impl Attempt {
    /// The body: `event`, `data`, `delivered_at`, `tenant_id`.
    pub fn body(&self, now: Timestamp) -> Vec<u8> {
        format!(
            r#"{{"event":"{}","data":{},"delivered_at":"{now}","tenant_id":"{}"}}"#,
            self.event.kind, self.event.data, self.event.tenant_id
        )
        .into_bytes()
    }

    /// The headers that sign and name the delivery, besides `Content-Type` and `User-Agent`.
    pub fn headers(&self, now: Timestamp, body: &[u8]) -> [(&'static str, String); 7] {
        let (id, timestamp) = (self.delivery.id.to_string(), now.as_seconds().to_string());
        let standard = |secret| signatures::standard_webhook_signature(secret, &id, &timestamp, body);
        let standard: Vec<String> = self.secrets.iter().map(standard).collect();
        let own = self.secrets.first().map(|newest| signatures::webhook_signature(newest, body));
        [
            ("x-svc-event", self.event.kind.as_str().to_owned()),
            ("x-svc-signature", own.unwrap_or_default()),
            ("x-svc-delivery", id.clone()),
            ("x-svc-attempt", self.delivery.attempts.to_string()),
            ("webhook-signature", standard.join(" ")),
            ("webhook-id", id),
            ("webhook-timestamp", timestamp),
        ]
    }
}

/// Stores the outcomes of a round and begins its attempts: a write job. It concerns one tenant and holds the
/// tenant's row, as every write does, so rounds of different tenants never wait for each other. Outcomes whose lease
/// is not held any more are dropped.
///
/// # Errors
/// [`Error::Store`]; nothing has happened then.
pub async fn run_batch(tx: &mut dyn Tx, policy: &Policy, batch: &Batch) -> Result<BatchResult, Error> {
    tx.act_as(Actor::Sender);
    tx.lock_tenant(batch.tenant_id).await?;
    let paused = record(tx, policy, batch).await?;
    if batch.replays {
        match replays::step(tx, batch.tenant_id).await {
            // It cannot even be read; it stops nobody else.
            Err(Error::Store(StoreError::Corrupt { .. })) => {}
            stepped => drop(stepped?),
        }
    }
    Ok(BatchResult { attempts: claim(tx, policy, batch).await?, paused })
}

/// What a round came to.
#[derive(Debug, Default)]
pub struct BatchResult {
    /// Attempts to be made now.
    pub attempts: Vec<Attempt>,
    /// Subscriptions that were paused.
    pub paused: Vec<Uuid>,
}

async fn claim(tx: &mut dyn Tx, policy: &Policy, batch: &Batch) -> Result<Vec<Attempt>, Error> {
    let now = tx.env().now();
    let mut attempts = Vec::new();
    for Selection { subscription, action } in batch.selections.iter().copied() {
        let claimed = match action {
            Action::Claim { most, running } => {
                claim_at(tx, policy, batch, subscription, (most, running), &mut attempts).await
            }
            Action::Defer(wait) => {
                Ok(tx.schedule_endpoint(batch.tenant_id, subscription, now.checked_add(wait)).await?)
            }
        };
        match claimed {
            // What is damaged stops nobody else; it is looked at again now and then.
            Err(Error::Store(StoreError::Corrupt { .. })) => {
                tx.schedule_endpoint(batch.tenant_id, subscription, now.checked_add(CORRUPT_ROW_DELAY)).await?;
            }
            claimed => claimed?,
        }
    }
    Ok(attempts)
}

/// Begins what is due at one endpoint, if its window has room.
async fn claim_at(
    tx: &mut dyn Tx,
    policy: &Policy,
    batch: &Batch,
    id: Uuid,
    (most, running): (usize, usize),
    attempts: &mut Vec<Attempt>,
) -> Result<(), Error> {
    let (tenant, now) = (batch.tenant_id, tx.env().now());
    let Some(subscription) =
        Repository::<WebhookSubscription>::get(tx, tenant, id).await?.filter(WebhookSubscription::sends)
    else {
        // It was deleted or disabled since: what is left of it is held.
        tx.hold_deliveries(tenant, id).await?;
        return Ok(tx.schedule_endpoint(tenant, id, None).await?);
    };
    // After a failure one at a time, whoever saw it fail.
    let most = if subscription.consecutive_failures > 0 { most.min(1_usize.saturating_sub(running)) } else { most };
    if most == 0 {
        return Ok(tx.schedule_endpoint(tenant, id, now.checked_add(FULL_WINDOW_DELAY)).await?);
    }
    let lease_ends = now.checked_add(policy.lease()).unwrap_or(now);
    let lease = tx.env().id(lease_ends);
    let due = tx.due_deliveries(tenant, id, now, u32::try_from(most).unwrap_or(u32::MAX)).await?;
    for DueDelivery { mut delivery, event } in due {
        let before = delivery.lease;
        // Once per lease, so that what a crash left behind is never put off for good.
        if batch.clock_jump_grace_until.is_some() && before.map(time_of_id) == delivery.next_attempt_at {
            delivery.next_attempt_at = batch.clock_jump_grace_until;
            tx.update_delivery(&delivery, before).await?;
            continue;
        }
        delivery.begin(lease, lease_ends);
        tx.update_delivery(&delivery, before).await?;
        let (url, secrets) = (subscription.url.clone(), subscription.secrets(now));
        attempts.push(Attempt { delivery, event, url, secrets });
    }
    schedule_next(tx, tenant, id, now).await
}

/// Gives an endpoint its next turn: when its next delivery is due, but behind those who wait already.
async fn schedule_next(tx: &mut dyn Tx, tenant: TenantId, subscription: Uuid, now: Timestamp) -> Result<(), Error> {
    let due = tx.next_delivery_due(tenant, subscription).await?;
    Ok(tx.schedule_endpoint(tenant, subscription, due.map(|due| due.max(now))).await?)
}

/// Returns the subscriptions that were paused.
async fn record(tx: &mut dyn Tx, policy: &Policy, batch: &Batch) -> Result<Vec<Uuid>, Error> {
    let mut paused = Vec::new();
    let tenant = batch.tenant_id;
    let mut by_endpoint: BTreeMap<Uuid, Vec<&Outcome>> = BTreeMap::new();
    for outcome in &batch.outcomes {
        by_endpoint.entry(outcome.delivery.subscription_id).or_default().push(outcome);
    }
    for (id, outcomes) in by_endpoint {
        let subscription = readable(Repository::<WebhookSubscription>::get(tx, tenant, id).await)?;
        let Some(mut subscription) = subscription else { continue };
        let was_paused = subscription.paused_at;
        let ids: Vec<Uuid> = outcomes.iter().map(|outcome| outcome.delivery.id).collect();
        let stored = stored(tx, tenant, &ids).await?;
        for outcome in outcomes {
            // Nobody else can have changed it: the tenant is held.
            let same = |stored: &&Delivery| stored.id == outcome.delivery.id && stored.lease == outcome.delivery.lease;
            if let Some(delivery) = stored.iter().find(same) {
                record_one(tx, policy, &mut subscription, delivery.clone(), outcome).await?;
            }
        }
        if subscription.paused_at == was_paused {
            tx.update_delivery_outcome(tenant, &subscription).await?;
        } else {
            Repository::<WebhookSubscription>::update(tx, tenant, &subscription).await?;
            tx.hold_deliveries(tenant, id).await?;
            paused.push(id);
        }
        let now = tx.env().now();
        schedule_next(tx, tenant, id, now).await?;
    }
    Ok(paused)
}

/// What is damaged stops nobody else's outcomes; its own are as if it were gone.
fn readable<T>(row: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match row {
        Err(StoreError::Corrupt { .. }) => Ok(None),
        row => row,
    }
}

/// Deliveries as they are stored. One that is damaged is left out, and stops none of the others.
async fn stored(tx: &mut dyn Tx, tenant: TenantId, ids: &[Uuid]) -> Result<Vec<Delivery>, Error> {
    match tx.deliveries(tenant, ids).await {
        Err(StoreError::Corrupt { .. }) => {}
        stored => return Ok(stored?),
    }
    let mut sound = Vec::new();
    for id in ids {
        sound.extend(readable(tx.delivery(tenant, *id).await)?);
    }
    Ok(sound)
}

/// Stores one outcome; the failure that is one too many pauses the subscription.
async fn record_one(
    tx: &mut dyn Tx,
    policy: &Policy,
    subscription: &mut WebhookSubscription,
    mut delivery: Delivery,
    outcome: &Outcome,
) -> Result<(), Error> {
    let Outcome { log, retry_after, .. } = outcome;
    let (tenant, lease) = (delivery.tenant_id, delivery.lease);
    let ended = log.started_at.checked_add(Duration::from_millis(log.duration_ms.into())).unwrap_or(log.started_at);
    if subscription.record_attempt(log, ended) {
        let before = subscription.clone();
        subscription.pause(advance_clock(tx, tenant).await?);
        crud::audit_change(tx, tenant, "pause", Some(&before), Some(subscription)).await?;
    }
    // What was held meanwhile waits for its replay, also if the subscription is enabled again.
    let taking = subscription.sends() && delivery.status == DeliveryStatus::Pending;
    delivery.failures += u32::from(!log.succeeded());
    let [jitter] = tx.env().bytes();
    let wait = policy.retry.wait(delivery.failures, jitter, *retry_after);
    delivery.end(log, wait, tx.env().now(), taking);
    tx.update_delivery(&delivery, lease).await?;
    Ok(tx.insert_attempt(tenant, delivery.id, log).await?)
}

#[cfg(test)]
mod tests;
