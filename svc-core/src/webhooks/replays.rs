//! Replays: sending deliveries again (`docs/contract.md`, "Replays and retention").
//!
//! [`replay_delivery`] restarts one delivery at once. [`create`] starts a bulk replay of a time range of one
//! subscription, which the delivery engine carries out. It walks from the start of the range to its end in small steps.
//! Each [`step`] is one transaction that also stores the position, so a bulk replay survives a crash, handles each delivery
//! once and has no limit of size. The deliveries that it restarts are sent at the pace of their endpoint.

use serde::{Deserialize, Serialize};

use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::clocks::advance_clock;
use crate::error::{Error, StoreError};
use crate::input::Record;
use crate::resources::crud;
use crate::store::{self, DeliveryFilter, Repository, Tx};
use crate::values::{Id, TenantId, Timestamp, grouped};
use crate::webhooks::deliveries::{Delivery, DeliveryId, DeliveryStatus, MAX_BACKLOG_COUNT};
use crate::webhooks::events::{self, Event};
use crate::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

/// The id of a bulk replay.
pub type ReplayId = Id<Replay>;

/// The number of deliveries or events that one step reads.
const STEP: u32 = 200;
/// The highest [`total`](Replay::total), which stands for that many or more.
pub const MAX_TOTAL: u64 = MAX_BACKLOG_COUNT as u64;

/// A bulk replay and its progress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct Replay {
    /// The unique identifier of the replay, a UUID of version 7.
    pub id: ReplayId,
    /// The tenant that the subscription belongs to.
    pub tenant_id: TenantId,
    /// The subscription whose deliveries are sent again.
    pub subscription_id: SubscriptionId,
    /// The start of the time span: events at or after this time are replayed.
    pub since: Timestamp,
    /// The end of the time span: events before this time are replayed.
    pub until: Timestamp,
    /// The statuses of the deliveries that are sent again.
    pub statuses: Vec<DeliveryStatus>,
    /// Whether events that matched the subscription and have no delivery are sent as well. They have none because the
    /// subscription was disabled or did not exist yet.
    pub missed: bool,
    /// How far the replay has come: events before this time are done.
    pub position: Timestamp,
    /// When the last step was taken. The next step is that of the replay that has waited longest.
    pub stepped_at: Timestamp,
    /// How much the replay had to go through when it was requested: the deliveries of the time span that had one of the
    /// statuses, or its events with `missed`. If the statuses include `succeeded`, it is all deliveries of the time span. It
    /// is counted up to 10,000, which stands for that many or more. 0 if the replay is older than the count.
    pub total: u64,
    /// How much of it the replay has gone through so far.
    pub done: u64,
    /// How many deliveries became due through this replay so far.
    pub replayed: u64,
    /// When the replay was requested.
    pub created_at: Timestamp,
    /// When the replay ended. Null while it is running.
    pub finished_at: Option<Timestamp>,
}

impl Replay {
    /// Returns how much is done, in percent: the share of `total`, or of the time span if the total is not known. It is 100 only
    /// when all of it is done.
    pub fn percent(&self) -> u8 {
        let (since, until) = (self.since.as_micros(), self.until.as_micros());
        let position = self.position.as_micros();
        if position >= until {
            return 100;
        }
        let (done, whole) = match self.total {
            1..MAX_TOTAL => (self.done.into(), self.total.into()),
            _ => (i128::from(position) - i128::from(since), i128::from(until) - i128::from(since)),
        };
        // More can fail after the replay was requested.
        u8::try_from(done * 100 / whole).unwrap_or(99).min(99)
    }

    /// Returns how much is done as a text: `1,234 of 5,678 (21%)`, with `10,000+` for a total that is not known exactly, or
    /// `21%` for one that is not known.
    pub fn progress(&self) -> String {
        let percent = self.percent();
        let total = match self.total {
            0 => return format!("{percent}%"),
            MAX_TOTAL => format!("{}+", grouped(MAX_TOTAL)),
            // More can fail after the replay was requested.
            total => grouped(total.max(self.done)),
        };
        format!("{} of {total} ({percent}%)", grouped(self.done))
    }

    /// Returns whether the replay ended before its time range did, because its subscription was disabled, paused or deleted
    /// meanwhile or a stored row could not be read. Deliveries after its position stay as they are.
    pub fn broken_off(&self) -> bool {
        self.finished_at.is_some() && self.position < self.until
    }
}

/// The deliveries to replay.
#[derive(Clone, Debug)]
pub struct ReplayCreate {
    /// The subscription that receives them.
    pub subscription: SubscriptionId,
    /// The start of the time range: events at or after this time.
    pub since: Timestamp,
    /// The end of the time range: events before this time. The current time if `None`.
    pub until: Option<Timestamp>,
    /// The statuses of deliveries that are replayed. Failed and held ones if empty.
    pub statuses: Vec<DeliveryStatus>,
    /// Whether to send matching events as well that have no delivery, because the subscription was disabled or did not
    /// exist when they happened.
    pub missed: bool,
}

impl ReplayCreate {
    /// Returns a replay of the failed and held deliveries of events at or after `since`.
    pub fn new(subscription: SubscriptionId, since: Timestamp) -> Self {
        Self { subscription, since, until: None, statuses: Vec::new(), missed: false }
    }
}

/// Restarts one delivery: it becomes due now, keeps its id and its count of attempts, and has all its retries ahead.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] when its subscription is deleted, disabled or paused, while what was pending
/// then is still being held, or while an attempt is in progress.
pub async fn replay_delivery(tx: &mut dyn Tx, tenant: TenantId, id: DeliveryId) -> Result<Delivery, Error> {
    advance_clock(tx, tenant).await?;
    let now = tx.env().now();
    let mut delivery = tx.delivery(tenant, id).await?.ok_or(Error::NotFound)?;
    let subscription = Repository::<WebhookSubscription>::get(tx, tenant, delivery.subscription_id).await?;
    if !subscription.as_ref().is_some_and(WebhookSubscription::is_active) {
        let reason = "The subscription of this delivery is deleted or disabled; enable it first.";
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    if subscription.is_some_and(|subscription| subscription.stopped_at.is_some()) {
        let reason = "The deliveries that were pending when the subscription was disabled are still being held; try again \
                      in a minute.";
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    if delivery.leased_until(now).is_some() {
        let reason = "An attempt at this delivery is in progress; replay it when the attempt has ended.";
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    let lease = delivery.lease;
    delivery.restart(now);
    tx.update_delivery(&delivery, lease).await?;
    tx.schedule_endpoint_by(tenant, delivery.subscription_id, now).await?;
    audit::record::<()>(tx, tenant, AuditAction::Replay, Object { kind: "delivery", id: id.uuid() }, None, None)
        .await?;
    Ok(delivery)
}

/// Starts a bulk replay. The delivery engine carries it out.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] when the subscription is disabled or paused.
pub async fn create(tx: &mut dyn Tx, tenant: TenantId, input: ReplayCreate) -> Result<Replay, Error> {
    let now = advance_clock(tx, tenant).await?;
    let replay = build(tx, tenant, now, input).await?;
    tx.insert_replay(&replay).await?;
    let object = Object { kind: "webhook", id: replay.subscription_id.uuid() };
    audit::record(tx, tenant, AuditAction::Replay, object, None, Some(&replay)).await?;
    Ok(replay)
}

/// Returns the bulk replay that [`create`] would start now, with its [`total`](Replay::total), and starts none.
///
/// # Errors
/// As of [`create`].
pub async fn preview(tx: &mut dyn Tx, tenant: TenantId, input: ReplayCreate) -> Result<Replay, Error> {
    let now = tx.env().now();
    build(tx, tenant, now, input).await
}

async fn build(tx: &mut dyn Tx, tenant: TenantId, now: Timestamp, input: ReplayCreate) -> Result<Replay, Error> {
    let subscription: WebhookSubscription = crud::get(tx, tenant, input.subscription).await?;
    subscription.require_deliveries()?;
    if !subscription.is_active() {
        return Err(Error::NotAllowed("The subscription is disabled; enable it first.".to_owned()));
    }
    let default = vec![DeliveryStatus::Failed, DeliveryStatus::Held];
    let mut replay = Replay {
        id: tx.env().id(now),
        tenant_id: tenant,
        subscription_id: subscription.id,
        since: input.since,
        until: input.until.map_or(now, |until| until.min(now)),
        statuses: if input.statuses.is_empty() { default } else { input.statuses },
        missed: input.missed,
        position: input.since,
        stepped_at: tx.env().now(),
        total: 0,
        done: 0,
        replayed: 0,
        created_at: now,
        finished_at: None,
    };
    replay.total = count(tx, &replay).await?;
    Ok(replay)
}

/// Counts what a replay has to go through, up to [`MAX_TOTAL`].
async fn count(tx: &mut dyn Tx, replay: &Replay) -> Result<u64, Error> {
    let (tenant, limit) = (replay.tenant_id, MAX_BACKLOG_COUNT);
    if replay.missed {
        return Ok(tx.count_events(tenant, replay.since, replay.until, limit).await?);
    }
    let mut total = 0;
    for filter in deliveries_of(replay, limit) {
        total += tx.count_listed(tenant, &filter).await?;
    }
    Ok(total.min(MAX_TOTAL))
}

/// Returns filters that together match the deliveries that a replay goes through from its position on, each delivery once
/// and the oldest first: those with its statuses if an index finds them, otherwise all of the time span.
fn deliveries_of(replay: &Replay, limit: u32) -> Vec<DeliveryFilter> {
    let all = DeliveryFilter {
        subscription_id: Some(replay.subscription_id),
        since: Some(replay.position),
        until: Some(replay.until),
        oldest_first: true,
        limit,
        ..DeliveryFilter::default()
    };
    // What is pending needs no replay.
    let is_replayed =
        |status: &&DeliveryStatus| **status != DeliveryStatus::Pending && replay.statuses.contains(status);
    let statuses = DeliveryStatus::ALL.iter().filter(is_replayed);
    let each: Vec<_> = statuses.map(|status| DeliveryFilter { status: Some(*status), ..all.clone() }).collect();
    if each.iter().all(|filter| filter.indexed_status().is_some()) { each } else { vec![all] }
}

/// Takes one step of the tenant's bulk replay that has waited longest for one. Returns false when the tenant has no
/// unfinished bulk replay.
///
/// # Errors
/// [`Error::Store`].
pub async fn step(tx: &mut dyn Tx, tenant: TenantId) -> Result<bool, Error> {
    let Some(mut replay) = tx.unfinished_replay(tenant).await? else { return Ok(false) };
    let now = tx.env().now();
    let subscription: Option<WebhookSubscription> = match crud::get(tx, tenant, replay.subscription_id).await {
        Ok(subscription) => Some(subscription),
        Err(Error::NotFound) => None,
        Err(error) => return Err(error),
    };
    match subscription.filter(WebhookSubscription::is_active) {
        // The subscription no longer sends, so the replay ends here and the other deliveries stay as they are.
        None => replay.finished_at = Some(now),
        // It goes on when everything that was pending when the subscription stopped is held, as it could not be told apart.
        Some(subscription) if subscription.stopped_at.is_some() => {}
        Some(subscription) => {
            let more = if replay.missed {
                step_over_events(tx, &mut replay, &subscription).await
            } else {
                step_over_deliveries(tx, &mut replay).await
            };
            match more {
                Ok(true) => {}
                Ok(false) => {
                    replay.position = replay.position.max(replay.until);
                    replay.finished_at = Some(now);
                }
                // The replay ends at a row that cannot be read. Trying again would restart the deliveries before it each time.
                Err(Error::Store(StoreError::Corrupt { .. })) => replay.finished_at = Some(now),
                Err(error) => return Err(error),
            }
        }
    }
    replay.stepped_at = now;
    tx.update_replay(&replay).await?;
    Ok(true)
}

/// Restarts the next deliveries of the range. Returns whether there are more.
async fn step_over_deliveries(tx: &mut dyn Tx, replay: &mut Replay) -> Result<bool, Error> {
    let mut deliveries = Vec::new();
    for filter in deliveries_of(replay, STEP) {
        deliveries.extend(tx.list_deliveries(replay.tenant_id, &filter).await?);
    }
    // The oldest of all lists together: none of them leaves out one that is older than its last.
    deliveries.sort_by_key(|delivery| delivery.created_at);
    deliveries.truncate(STEP as usize);
    for delivery in &deliveries {
        restart(tx, replay, delivery.clone()).await?;
        replay.done += 1;
    }
    Ok(match deliveries.last() {
        Some(last) if deliveries.len() == STEP as usize => {
            replay.position = last.created_at.next();
            true
        }
        _ => false,
    })
}

/// Restarts the deliveries of the next events of the range, and creates those that are missing. Returns whether there are
/// more events.
async fn step_over_events(
    tx: &mut dyn Tx,
    replay: &mut Replay,
    subscription: &WebhookSubscription,
) -> Result<bool, Error> {
    let before = Timestamp::from_micros(replay.position.as_micros() - 1);
    let events = tx.events_after(replay.tenant_id, before, STEP).await?;
    let until = replay.until;
    for event in events.iter().take_while(|event| event.created_at < until) {
        let filter = DeliveryFilter {
            subscription_id: Some(subscription.id),
            // The id of a delivery contains the time of its event, so the range finds it without an index on events.
            since: Some(event.created_at),
            until: Some(event.created_at.next()),
            limit: 1,
            ..DeliveryFilter::of_event(event.id)
        };
        replay.done += 1;
        match tx.list_deliveries(replay.tenant_id, &filter).await?.pop() {
            Some(delivery) => restart(tx, replay, delivery).await?,
            None if event.is_for(subscription.id)
                && subscription
                    .match_event(event.kind)
                    .is_some_and(|to| events::passing(event)(to.filter.as_ref())) =>
            {
                insert_missed(tx, replay, subscription, event).await?;
            }
            None => {}
        }
    }
    Ok(match events.last() {
        Some(last) if store::is_cut(&events, STEP) && last.created_at < replay.until => {
            replay.position = last.created_at.next();
            true
        }
        _ => false,
    })
}

/// Restarts a delivery if its status is one that is replayed. A pending one needs no restart.
async fn restart(tx: &mut dyn Tx, replay: &mut Replay, mut delivery: Delivery) -> Result<(), Error> {
    if !replay.statuses.contains(&delivery.status) || delivery.status == DeliveryStatus::Pending {
        return Ok(());
    }
    let (now, lease) = (tx.env().now(), delivery.lease);
    delivery.restart(now);
    tx.update_delivery(&delivery, lease).await?;
    tx.schedule_endpoint_by(delivery.tenant_id, delivery.subscription_id, now).await?;
    replay.replayed += 1;
    Ok(())
}

/// Creates the delivery of an event that has none, due now.
async fn insert_missed(
    tx: &mut dyn Tx,
    replay: &mut Replay,
    subscription: &WebhookSubscription,
    event: &Event,
) -> Result<(), Error> {
    // The id contains the time of the event, so the delivery is listed among those that were created in time.
    let id = tx.env().id(event.created_at);
    let delivery = event.delivery_to(id, replay.subscription_id, false);
    let order_key = subscription.is_ordered().then(|| event.order_key()).flatten();
    let delivery = Delivery { next_attempt_at: Some(tx.env().now()), order_key, ..delivery };
    tx.insert_delivery(&delivery).await?;
    replay.replayed += 1;
    Ok(())
}

#[cfg(test)]
mod tests;
