//! Bulk replays: a durable job that sends many deliveries of one subscription again.
//!
//! A replay walks from its start to its end in small steps, each one transaction that also stores how far it
//! has come; so it survives a crash, handles each delivery once, and has no limit of items. What it makes due
//! goes out at the endpoint's own pace.

use uuid::Uuid;

use crate::accounts::audit::{self, Object};
use crate::error::{Error, StoreError};
use crate::input::record;
use crate::resources::crud::{self, advance_clock};
use crate::store::{DeliveryFilter, Tx};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{Delivery, DeliveryStatus};
use crate::webhooks::events::Event;
use crate::webhooks::subscriptions::WebhookSubscription;

/// Deliveries or events that one step looks at.
const STEP: u32 = 200;

record! {
    /// A bulk replay and how far it has come.
    pub struct Replay {
        /// Identifier.
        pub id: Uuid,
        /// Whose it is.
        pub tenant_id: TenantId,
        /// To whom.
        pub subscription_id: Uuid,
        /// Events at or after this time.
        pub since: Timestamp,
        /// Events before this time.
        pub until: Timestamp,
        /// Deliveries in these states.
        pub statuses: Vec<DeliveryStatus>,
        /// Also events that matched and have no delivery, because the subscription was disabled or did not exist.
        pub missed: bool,
        /// Events before this time are done.
        pub position: Timestamp,
        /// When its last step was taken; the next goes to the replay that waited longest.
        pub stepped_at: Timestamp,
        /// Deliveries that were made due.
        pub replayed: u64,
        /// When it was asked for.
        pub created_at: Timestamp,
        /// When it had come to its end.
        pub finished_at: Option<Timestamp>,
    }
}

impl Replay {
    /// How much of its span of time is done, in percent; 100 only when all of it is.
    pub fn percent(&self) -> u8 {
        let (since, until) = (self.since.as_micros(), self.until.as_micros());
        let done = i128::from(self.position.as_micros().clamp(since, until.max(since)) - since);
        match i128::from(until) - i128::from(since) {
            ..=0 => 100,
            whole => u8::try_from(done * 100 / whole).unwrap_or(100),
        }
    }

    /// Whether it was broken off, as its subscription was disabled or paused meanwhile, or something stored is
    /// damaged: what lies after its position stays as it is.
    pub fn broken_off(&self) -> bool {
        self.finished_at.is_some() && self.position < self.until
    }
}

/// What to replay.
#[derive(Clone, Debug)]
pub struct ReplayCreate {
    /// To whom.
    pub subscription: Uuid,
    /// Events at or after this time.
    pub since: Timestamp,
    /// Events before this time; now when left out.
    pub until: Option<Timestamp>,
    /// Deliveries in these states; failed and held ones when empty.
    pub statuses: Vec<DeliveryStatus>,
    /// Also events that matched and have no delivery.
    pub missed: bool,
}

/// Asks for a bulk replay; the sender carries it out.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::NotAllowed`] when the subscription is disabled.
pub async fn create(tx: &mut dyn Tx, tenant: TenantId, input: ReplayCreate) -> Result<Replay, Error> {
    let now = advance_clock(tx, tenant).await?;
    let subscription: WebhookSubscription = crud::get(tx, tenant, input.subscription).await?;
    if !subscription.sends() {
        return Err(Error::NotAllowed("The subscription is disabled; enable it first.".to_owned()));
    }
    let default = vec![DeliveryStatus::Failed, DeliveryStatus::Held];
    let replay = Replay {
        id: tx.env().id(now),
        tenant_id: tenant,
        subscription_id: subscription.id,
        since: input.since,
        until: input.until.map_or(now, |until| until.min(now)),
        statuses: if input.statuses.is_empty() { default } else { input.statuses },
        missed: input.missed,
        position: input.since,
        stepped_at: now,
        replayed: 0,
        created_at: now,
        finished_at: None,
    };
    tx.insert_replay(&replay).await?;
    audit::record(tx, tenant, "replay", Object { kind: "webhook", id: subscription.id }, None, Some(&replay)).await?;
    Ok(replay)
}

/// Takes one step of the tenant's replay that waited longest for one; false when none is unfinished.
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
    match subscription.filter(WebhookSubscription::sends) {
        // It was disabled or paused since: what is not done stays as it is.
        None => replay.finished_at = Some(now),
        Some(subscription) => {
            let more = if replay.missed {
                over_events(tx, &mut replay, &subscription).await
            } else {
                over_deliveries(tx, &mut replay).await
            };
            match more {
                Ok(true) => {}
                Ok(false) => {
                    replay.position = replay.position.max(replay.until);
                    replay.finished_at = Some(now);
                }
                // It breaks off at what is damaged; trying again would send what lies before that over and over.
                Err(Error::Store(StoreError::Corrupt { .. })) => replay.finished_at = Some(now),
                Err(error) => return Err(error),
            }
        }
    }
    replay.stepped_at = now;
    tx.update_replay(&replay).await?;
    Ok(true)
}

async fn over_deliveries(tx: &mut dyn Tx, replay: &mut Replay) -> Result<bool, Error> {
    let filter = DeliveryFilter {
        subscription_id: Some(replay.subscription_id),
        since: Some(replay.position),
        until: Some(replay.until),
        oldest_first: true,
        limit: STEP,
        ..DeliveryFilter::default()
    };
    let deliveries = tx.list_deliveries(replay.tenant_id, &filter).await?;
    for delivery in &deliveries {
        again(tx, replay, delivery.clone()).await?;
    }
    Ok(match deliveries.last() {
        Some(last) if deliveries.len() == STEP as usize => {
            replay.position = last.created_at.next();
            true
        }
        _ => false,
    })
}

async fn over_events(tx: &mut dyn Tx, replay: &mut Replay, subscription: &WebhookSubscription) -> Result<bool, Error> {
    let before = Timestamp::from_micros(replay.position.as_micros() - 1);
    let events = tx.events_after(replay.tenant_id, before, STEP).await?;
    let until = replay.until;
    for event in events.iter().take_while(|event| event.created_at < until) {
        let filter = DeliveryFilter {
            subscription_id: Some(subscription.id),
            // Its id sorts like its event, so it is found without an index of events.
            since: Some(event.created_at),
            until: Some(event.created_at.next()),
            limit: 1,
            ..DeliveryFilter::of_event(event.id)
        };
        match tx.list_deliveries(replay.tenant_id, &filter).await?.pop() {
            Some(delivery) => again(tx, replay, delivery).await?,
            None if subscription.events.contains(event.kind) && event.is_for(subscription.id) => {
                missed(tx, replay, event).await?;
            }
            None => {}
        }
    }
    Ok(match events.last() {
        Some(last) if events.len() == STEP as usize && last.created_at < replay.until => {
            replay.position = last.created_at.next();
            true
        }
        _ => false,
    })
}

/// Makes a delivery due again, if it is in a state that is wanted and nobody attempts it.
async fn again(tx: &mut dyn Tx, replay: &mut Replay, mut delivery: Delivery) -> Result<(), Error> {
    if !replay.statuses.contains(&delivery.status) || delivery.status == DeliveryStatus::Pending {
        return Ok(());
    }
    let (now, lease) = (tx.env().now(), delivery.lease);
    delivery.replay(now);
    tx.update_delivery(&delivery, lease).await?;
    tx.schedule_endpoint_by(delivery.tenant_id, delivery.subscription_id, now).await?;
    replay.replayed += 1;
    Ok(())
}

async fn missed(tx: &mut dyn Tx, replay: &mut Replay, event: &Event) -> Result<(), Error> {
    // Its id sorts like its event, among the deliveries that were made in time.
    let id = tx.env().id(event.created_at);
    let delivery =
        Delivery { next_attempt_at: Some(tx.env().now()), ..Delivery::new(id, event, replay.subscription_id, false) };
    tx.insert_delivery(&delivery).await?;
    replay.replayed += 1;
    Ok(())
}
