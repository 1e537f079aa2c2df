//! The delivery engine, without I/O: which attempts are to be made, and what follows from their outcomes.
//!
//! Every subscription that has something to send has one *turn*: the time from which it may be picked. Picking
//! goes by turn, so an endpoint with a backlog goes behind the others each time it was picked, whatever the
//! length of its backlog. Each endpoint has a *window*, the number of attempts that may be in flight: small at
//! first, growing with each success, one after a failure, so that an endpoint that comes back is not flooded.
//!
//! A driver calls [`step`] inside a write job, with the outcomes that have come since, and makes the attempts
//! that it returns. What was leased and never ended is due again when its lease ends. It takes a step every few
//! seconds at least, so that a clock that jumps is noticed: leases that end by a jump get more time.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use crate::deliveries::{AttemptLog, Delivery, DeliveryState, RetrySchedule};
use crate::env::time_of_id;
use crate::error::Error;
use crate::events::Event;
use crate::replays;
use crate::resource::tick;
use crate::signing;
use crate::store::{Rows, StoreError, Tx};
use crate::types::{Secret, TenantId, Timestamp, WebhookUrl};
use crate::webhooks::Subscription;

/// Attempts in flight to an endpoint that nothing is known of.
const FIRST_WINDOW: usize = 4;
/// Most attempts in flight to one endpoint.
const LARGEST_WINDOW: usize = 64;
/// Endpoints that one step looks at, at most.
const ENDPOINTS_PER_STEP: u32 = 128;
/// How long an endpoint waits whose tenant has its share in flight.
const SHARE_PAUSE: Duration = Duration::from_millis(100);
/// How long an endpoint waits whose row cannot be read.
const DAMAGED_PAUSE: Duration = Duration::from_secs(60);
/// Steps follow each other faster than this; if not, the clock has jumped, or nearly stood still.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Windows that are remembered before idle ones are forgotten.
const REMEMBERED: usize = 10_000;

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
            self.event.kind, self.event.data, self.event.tenant
        )
        .into_bytes()
    }

    /// The headers that sign and name the delivery, besides `Content-Type` and `User-Agent`.
    pub fn headers(&self, now: Timestamp, body: &[u8]) -> [(&'static str, String); 7] {
        let (id, timestamp) = (self.delivery.id.to_string(), now.as_seconds().to_string());
        let standard = |secret| signing::standard_webhook_signature(secret, &id, &timestamp, body);
        let standard: Vec<String> = self.secrets.iter().map(standard).collect();
        let own = self.secrets.first().map(|newest| signing::webhook_signature(newest, body));
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

/// What is in flight from this process.
#[derive(Debug, Default)]
pub struct InFlight {
    endpoints: HashMap<Uuid, Lane>,
    tenants: HashMap<TenantId, usize>,
    total: usize,
    looked_at: Option<Timestamp>,
    wary_until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    running: usize,
    window: usize,
}

impl InFlight {
    /// Attempts in flight.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Notes that a step is taken. Until the returned time, leases that have ended may be those of attempts that
    /// still run: the last step is so long ago that the clock must have jumped.
    fn look(&mut self, now: Timestamp, policy: &Policy) -> Option<Timestamp> {
        if self.looked_at.is_some_and(|last| now.since(last) > LONGEST_PAUSE) {
            self.wary_until = now.checked_add(policy.lease());
        }
        self.looked_at = Some(now);
        self.wary_until = self.wary_until.filter(|until| now < *until);
        self.wary_until
    }

    /// How many more attempts may begin: of an endpoint, of its tenant, and in all.
    fn room(&self, policy: &Policy, subscription: &Subscription, tenant: TenantId, claimed: &Claimed) -> Room {
        let lane = self.endpoints.get(&subscription.id);
        let total = self.total + claimed.total;
        let window = match lane.map_or(FIRST_WINDOW, |lane| lane.window) {
            _ if subscription.consecutive_failures > 0 => 1,
            // The second half is not for many that may all be slow.
            window if window <= FIRST_WINDOW && total >= policy.concurrency / 2 => 1,
            window => window,
        };
        let running = lane.map_or(0, |lane| lane.running) + claimed.of(subscription.id);
        let of_tenant = self.tenants.get(&tenant).copied().unwrap_or_default() + claimed.of(tenant.0);
        Room {
            endpoint: window.saturating_sub(running),
            tenant: (policy.concurrency / 2).max(1).saturating_sub(of_tenant),
            total: policy.concurrency.saturating_sub(total),
        }
    }

    /// Notes attempts that begin.
    pub fn begin(&mut self, attempts: &[Attempt]) {
        for Attempt { delivery, .. } in attempts {
            let lane = self.endpoints.entry(delivery.subscription);
            lane.or_insert(Lane { running: 0, window: FIRST_WINDOW }).running += 1;
            *self.tenants.entry(delivery.tenant).or_default() += 1;
            self.total += 1;
        }
    }

    /// Notes an attempt that has ended.
    pub fn end(&mut self, outcome: &Outcome) {
        let delivery = &outcome.delivery;
        self.total = self.total.saturating_sub(1);
        if let Some(running) = self.tenants.get_mut(&delivery.tenant) {
            *running = running.saturating_sub(1);
            if *running == 0 {
                self.tenants.remove(&delivery.tenant);
            }
        }
        if let Some(lane) = self.endpoints.get_mut(&delivery.subscription) {
            lane.running = lane.running.saturating_sub(1);
            lane.window = if outcome.log.succeeded() { (lane.window + 1).min(LARGEST_WINDOW) } else { 1 };
        }
        if self.endpoints.len() > REMEMBERED {
            self.endpoints.retain(|_, lane| lane.running > 0);
        }
    }
}

struct Room {
    endpoint: usize,
    tenant: usize,
    total: usize,
}

/// What a step has begun so far, by endpoint and by tenant.
#[derive(Default)]
struct Claimed {
    counts: HashMap<Uuid, usize>,
    total: usize,
}

impl Claimed {
    fn of(&self, id: Uuid) -> usize {
        self.counts.get(&id).copied().unwrap_or_default()
    }

    fn add(&mut self, subscription: Uuid, tenant: TenantId, count: usize) {
        *self.counts.entry(subscription).or_default() += count;
        *self.counts.entry(tenant.0).or_default() += count;
        self.total += count;
    }
}

/// What a step came to.
#[derive(Debug, Default)]
pub struct Step {
    /// To be made now.
    pub attempts: Vec<Attempt>,
    /// When to take the next step at the latest, as far as is known.
    pub next: Option<Timestamp>,
}

/// Stores outcomes and begins attempts: one transaction of the driver. Outcomes whose lease is not held any
/// more are dropped. Nothing is begun without `in_flight`, as when the driver is about to stop.
///
/// # Errors
/// [`Error::Store`]; nothing has happened then.
pub async fn step(
    tx: &mut dyn Tx,
    policy: &Policy,
    outcomes: &[Outcome],
    in_flight: Option<&Mutex<InFlight>>,
) -> Result<Step, Error> {
    record(tx, policy, outcomes).await?;
    match in_flight {
        Some(in_flight) => claim(tx, policy, in_flight).await,
        None => Ok(Step::default()),
    }
}

async fn claim(tx: &mut dyn Tx, policy: &Policy, in_flight: &Mutex<InFlight>) -> Result<Step, Error> {
    // First, so that what it makes due is due in this step.
    let replaying = match replays::step(tx).await {
        Err(Error::Store(StoreError::Corrupt { .. })) => false,
        replaying => replaying?,
    };
    let now = tx.env().now();
    let lease_ends = now.checked_add(policy.lease()).unwrap_or(now);
    let lease = tx.env().id(lease_ends);
    let wary_until = lock(in_flight).look(now, policy);
    let mut claimed = Claimed::default();
    let mut attempts = Vec::new();
    for (tenant, id) in tx.turns(now, ENDPOINTS_PER_STEP).await? {
        let subscription = match Rows::<Subscription>::get(tx, tenant, id).await {
            // What is damaged stops nobody else; it is looked at again now and then.
            Err(StoreError::Corrupt { .. }) => {
                tx.set_turn(tenant, id, now.checked_add(DAMAGED_PAUSE)).await?;
                continue;
            }
            subscription => subscription?.filter(Subscription::sends),
        };
        let Some(subscription) = subscription else {
            // It was deleted or disabled since: what is left of it is held.
            tx.hold_deliveries(tenant, id).await?;
            tx.set_turn(tenant, id, None).await?;
            continue;
        };
        let room = lock(in_flight).room(policy, &subscription, tenant, &claimed);
        if room.total == 0 {
            // Nobody can begin before an attempt ends; the turns stay as they are.
            return Ok(Step { attempts, next: None });
        }
        if room.endpoint == 0 {
            // An outcome brings the turn back; should it never come, the end of the leases does.
            tx.set_turn(tenant, id, Some(lease_ends)).await?;
            continue;
        }
        if room.tenant == 0 {
            tx.set_turn(tenant, id, now.checked_add(SHARE_PAUSE)).await?;
            continue;
        }
        let room = room.endpoint.min(room.tenant).min(room.total);
        for mut delivery in tx.due_deliveries(tenant, id, now, u32::try_from(room).unwrap_or(u32::MAX)).await? {
            let before = delivery.lease;
            // Once per lease, so that what a crash left behind is never put off for good.
            if wary_until.is_some() && before.map(time_of_id) == delivery.next_attempt_at {
                delivery.next_attempt_at = wary_until;
                tx.update_delivery(&delivery, before).await?;
                continue;
            }
            let event = tx.event(tenant, delivery.event).await?;
            let event = event.ok_or_else(|| StoreError::Fault(format!("delivery {} has no event", delivery.id)))?;
            delivery.begin(lease, lease_ends);
            // Another node may have been faster.
            if !tx.update_delivery(&delivery, before).await? {
                continue;
            }
            claimed.add(id, tenant, 1);
            let (url, secrets) = (subscription.url.clone(), subscription.secrets(now));
            attempts.push(Attempt { delivery, event, url, secrets });
        }
        give_turn(tx, tenant, id, now).await?;
    }
    // A replay goes on in the next step, so that it never holds up what is due meanwhile.
    let next = if replaying { Some(now) } else { tx.first_turn().await? };
    Ok(Step { attempts, next })
}

/// Gives an endpoint, whose turn is held, its next turn: when its next delivery is due, but behind those who wait already.
async fn give_turn(tx: &mut dyn Tx, tenant: TenantId, subscription: Uuid, now: Timestamp) -> Result<(), Error> {
    let due = tx.next_due(tenant, subscription).await?;
    Ok(tx.set_turn(tenant, subscription, due.map(|due| due.max(now))).await?)
}

async fn record(tx: &mut dyn Tx, policy: &Policy, outcomes: &[Outcome]) -> Result<(), Error> {
    let mut by_endpoint: BTreeMap<(TenantId, Uuid), Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes {
        by_endpoint.entry((outcome.delivery.tenant, outcome.delivery.subscription)).or_default().push(outcome);
    }
    for ((tenant, id), outcomes) in by_endpoint {
        // Before its subscription, as in `claim`: senders that hold two things take them in the same order.
        tx.hold_turn(tenant, id).await?;
        let subscription = readable(Rows::<Subscription>::get(tx, tenant, id).await)?;
        let Some(mut subscription) = subscription else { continue };
        let was_paused = subscription.paused_at;
        for outcome in outcomes {
            record_one(tx, policy, &mut subscription, outcome).await?;
        }
        if subscription.paused_at == was_paused {
            tx.note_outcome(tenant, &subscription).await?;
        } else {
            Rows::<Subscription>::update(tx, tenant, &subscription).await?;
            tx.hold_deliveries(tenant, id).await?;
        }
        let now = tx.env().now();
        give_turn(tx, tenant, id, now).await?;
    }
    Ok(())
}

/// What is damaged stops nobody else's outcomes; its own are as if it were gone.
fn readable<T>(row: Result<Option<T>, StoreError>) -> Result<Option<T>, StoreError> {
    match row {
        Err(StoreError::Corrupt { .. }) => Ok(None),
        row => row,
    }
}

/// Stores one outcome, unless its lease is not held any more; the failure that is one too many pauses the
/// subscription.
async fn record_one(
    tx: &mut dyn Tx,
    policy: &Policy,
    subscription: &mut Subscription,
    outcome: &Outcome,
) -> Result<(), Error> {
    let Outcome { delivery: Delivery { tenant, id, lease, .. }, log, retry_after } = outcome;
    let stored = readable(tx.delivery(*tenant, *id).await)?.filter(|stored| stored.lease == *lease);
    let Some(mut delivery) = stored else { return Ok(()) };
    let ended = log.started_at.checked_add(Duration::from_millis(log.duration_ms.into())).unwrap_or(log.started_at);
    if subscription.note(log, ended) {
        subscription.pause(tick(tx, *tenant).await?);
    }
    // What was held meanwhile waits for its replay, also if the subscription is enabled again.
    let taking = subscription.sends() && delivery.state == DeliveryState::Pending;
    delivery.failures += u32::from(!log.succeeded());
    let [jitter] = tx.env().bytes();
    let wait = policy.retry.wait(delivery.failures, jitter, *retry_after);
    delivery.end(log, wait, tx.env().now(), taking);
    tx.update_delivery(&delivery, *lease).await?;
    Ok(tx.insert_attempt(*tenant, *id, log).await?)
}

fn lock(in_flight: &Mutex<InFlight>) -> MutexGuard<'_, InFlight> {
    in_flight.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
