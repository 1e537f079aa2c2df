//! What must hold: a second, simple account of every delivery and subscription, kept beside the store's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use futures_util::FutureExt as _;
use rand::rngs::StdRng;
use svc_core::resources::crud::Resource as _;
use svc_core::store::Store;
use svc_core::values::{TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryStatus};
use svc_core::webhooks::engine::{Attempt, Outcome, Policy};
use svc_core::webhooks::replays::Replay;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::endpoints::{Answer, Behaviour};
use crate::world::Sender;

/// The waits before retries, written out once more.
const WAITS: [u64; 5] = [60, 240, 960, 3_840, 14_400];

#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) tenant: TenantId,
    pub(crate) url: WebhookUrl,
    pub(crate) behaviour: Behaviour,
    pub(crate) enabled: bool,
    pub(crate) paused: bool,
    pub(crate) deleted: bool,
    /// Whether every attempt succeeded and nobody ever disabled it.
    pub(crate) blameless: bool,
    failures_in_row: u32,
    /// When the last attempt ended, and how.
    last: Option<(Timestamp, i32)>,
}

impl Endpoint {
    pub(crate) fn sends(&self) -> bool {
        self.enabled && !self.deleted
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Parcel {
    pub(crate) tenant: TenantId,
    pub(crate) endpoint: Uuid,
    pub(crate) state: DeliveryStatus,
    pub(crate) created_at: Timestamp,
    attempts: u32,
    failures: u32,
    last_status: Option<i32>,
    /// The attempt whose outcome counts.
    holder: Option<Holder>,
    /// Whether that attempt went down with its sender.
    lost: bool,
    /// Between these it becomes due.
    due: (Timestamp, Timestamp),
    log: Vec<AttemptLog>,
    /// Times that the endpoint took it, and times that it may.
    taken: u32,
    allowed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Holder {
    attempt: u32,
    /// When its lease ends.
    ends: Timestamp,
    /// Whether the clock has jumped forward meanwhile.
    jumped: bool,
}

pub(crate) struct Model {
    pub(crate) endpoints: BTreeMap<Uuid, Endpoint>,
    pub(crate) parcels: BTreeMap<Uuid, Parcel>,
    /// Bulk replays that are not carried out yet.
    pub(crate) bulk: Vec<Replay>,
    /// How late each delivery was first attempted.
    pub(crate) delays: HashMap<Uuid, Duration>,
    touched: BTreeSet<Uuid>,
    lease: Duration,
}

impl Model {
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            endpoints: BTreeMap::new(),
            parcels: BTreeMap::new(),
            bulk: Vec::new(),
            delays: HashMap::new(),
            touched: BTreeSet::new(),
            lease: policy.lease(),
        }
    }

    pub(crate) fn add_endpoint(&mut self, tenant: TenantId, subscription: &WebhookSubscription, behaviour: Behaviour) {
        let endpoint = Endpoint {
            tenant,
            url: subscription.url.clone(),
            behaviour,
            enabled: true,
            paused: false,
            deleted: false,
            blameless: behaviour.always_takes(),
            failures_in_row: 0,
            last: None,
        };
        self.endpoints.insert(subscription.id, endpoint);
    }

    /// An event happened: these are its deliveries.
    pub(crate) fn emitted(&mut self, tenant: TenantId, deliveries: &[Delivery], wall: Timestamp) {
        let takes = |endpoint: &Endpoint| {
            endpoint.tenant == tenant && !endpoint.deleted && (endpoint.enabled || endpoint.paused)
        };
        let want: BTreeSet<Uuid> =
            self.endpoints.iter().filter(|(_, endpoint)| takes(endpoint)).map(|(id, _)| *id).collect();
        let got: BTreeSet<Uuid> = deliveries.iter().map(|delivery| delivery.subscription_id).collect();
        assert_eq!(got, want, "one delivery for everyone who takes events");
        assert_eq!(deliveries.len(), want.len());
        for delivery in deliveries {
            let paused = self.endpoints[&delivery.subscription_id].paused;
            let parcel = Parcel {
                tenant,
                endpoint: delivery.subscription_id,
                state: if paused { DeliveryStatus::Held } else { DeliveryStatus::Pending },
                created_at: delivery.created_at,
                attempts: 0,
                failures: 0,
                last_status: None,
                holder: None,
                lost: false,
                due: (wall, wall),
                log: Vec::new(),
                taken: 0,
                allowed: 1,
            };
            self.parcels.insert(delivery.id, parcel);
            self.touched.insert(delivery.id);
        }
    }

    /// An attempt went down with its sender, or will never be made: if it was the one that counts, the next
    /// may repeat it.
    pub(crate) fn lose(&mut self, delivery: Uuid, attempt: u32) {
        let parcel = self.parcels.get_mut(&delivery).unwrap();
        if parcel.holder.is_some_and(|holder| holder.attempt == attempt) {
            parcel.lost = true;
            parcel.allowed += 1;
        }
    }

    /// The clock jumped forward while these were under way. Their leases get more time for it, but only once.
    pub(crate) fn jumped(&mut self, running: &[(Uuid, u32)]) {
        for (delivery, attempt) in running {
            let holder = self.parcels.get_mut(delivery).unwrap().holder.as_mut();
            let again = holder.is_some_and(|holder| std::mem::replace(&mut holder.jumped, true));
            if again {
                self.lose(*delivery, *attempt);
            }
        }
    }

    /// Outcomes were stored, in this order.
    pub(crate) fn record(&mut self, outcomes: &[Outcome], wall: Timestamp) {
        for Outcome { delivery, log, retry_after } in outcomes {
            let parcel = self.parcels.get_mut(&delivery.id).unwrap();
            if parcel.holder.is_none_or(|holder| holder.attempt != log.attempt) {
                continue;
            }
            let endpoint = self.endpoints.get_mut(&parcel.endpoint).unwrap();
            (parcel.holder, parcel.lost) = (None, false);
            parcel.last_status = Some(log.status);
            let ended = log.started_at.checked_add(Duration::from_millis(log.duration_ms.into())).unwrap();
            if endpoint.last.is_none_or(|(last, _)| last <= ended) {
                endpoint.last = Some((ended, log.status));
            }
            parcel.log.push(log.clone());
            self.touched.insert(delivery.id);
            if log.succeeded() {
                parcel.state = DeliveryStatus::Succeeded;
                endpoint.failures_in_row = 0;
                continue;
            }
            parcel.failures += 1;
            endpoint.failures_in_row += u32::from(endpoint.sends());
            let pauses = endpoint.sends() && endpoint.failures_in_row == 10;
            if pauses {
                (endpoint.enabled, endpoint.paused) = (false, true);
            }
            let (sends, id) = (endpoint.sends(), parcel.endpoint);
            match WAITS.get(parcel.failures as usize - 1) {
                None => parcel.state = DeliveryStatus::Failed,
                Some(_) if !sends || parcel.state == DeliveryStatus::Held => parcel.state = DeliveryStatus::Held,
                Some(wait) => {
                    let asked = retry_after.unwrap_or_default().min(Duration::from_secs(4 * 3_600));
                    let wait = Duration::from_secs(*wait);
                    let plus = |wait: Duration| wall.checked_add(wait.max(asked)).unwrap();
                    parcel.due = (plus(wait), plus(wait + wait / 10));
                }
            }
            if pauses {
                self.hold(id);
            }
        }
    }

    /// Nothing pending goes out to this endpoint any more.
    pub(crate) fn hold(&mut self, endpoint: Uuid) {
        for (id, parcel) in &mut self.parcels {
            if parcel.endpoint == endpoint && parcel.state == DeliveryStatus::Pending {
                parcel.state = DeliveryStatus::Held;
                self.touched.insert(*id);
            }
        }
    }

    /// The tenant's bulk replay that waited longest goes on for 200 deliveries. An attempt that is being made goes on, and is the first of
    /// the new schedule.
    pub(crate) fn replay_in_step(&mut self, tenant: TenantId, wall: Timestamp) {
        self.bulk.sort_by_key(|replay| (replay.stepped_at, replay.id));
        let Some(next) = self.bulk.iter().position(|replay| replay.tenant_id == tenant) else { return };
        let mut replay = self.bulk.remove(next);
        if !self.endpoints[&replay.subscription_id].sends() {
            return;
        }
        let span = replay.position..replay.until;
        let there = |parcel: &Parcel| parcel.endpoint == replay.subscription_id && span.contains(&parcel.created_at);
        let there: Vec<Uuid> = self.parcels.iter().filter(|(_, parcel)| there(parcel)).map(|(id, _)| *id).collect();
        for id in there.iter().copied().take(200) {
            let parcel = &self.parcels[&id];
            if replay.statuses.contains(&parcel.state) {
                let holder = parcel.holder.filter(|holder| wall < holder.ends);
                self.replayed(id, wall);
                self.parcels.get_mut(&id).unwrap().holder = holder;
            }
        }
        if let Some(last) = there.get(199) {
            replay.position = self.parcels[last].created_at.next();
            replay.stepped_at = wall;
            self.bulk.push(replay);
        }
    }

    /// A delivery was made due again.
    pub(crate) fn replayed(&mut self, id: Uuid, wall: Timestamp) {
        let parcel = self.parcels.get_mut(&id).unwrap();
        parcel.allowed += u32::from(parcel.state == DeliveryStatus::Succeeded);
        parcel.state = DeliveryStatus::Pending;
        parcel.failures = 0;
        parcel.holder = None;
        parcel.due = (wall, wall);
        self.touched.insert(id);
    }

    /// A sender began these attempts.
    pub(crate) fn begin(&mut self, attempts: &[Attempt], wall: Timestamp, senders: &[Sender]) {
        for Attempt { delivery, event, url, .. } in attempts {
            let id = delivery.id;
            let parcel = self.parcels.get_mut(&id).unwrap();
            let endpoint = &self.endpoints[&parcel.endpoint];
            assert!(endpoint.sends(), "{id} goes to an endpoint that takes nothing");
            assert_eq!(parcel.state, DeliveryStatus::Pending, "{id} is not to be sent");
            assert_eq!((event.id, event.created_at), (delivery.event_id, parcel.created_at));
            assert_eq!(*url, endpoint.url);
            assert_eq!(delivery.attempts, parcel.attempts + 1, "{id}: attempts count up");
            match parcel.holder {
                None => assert!(parcel.due.0 <= wall, "{id} goes out before it is due, at {:?}", parcel.due),
                Some(Holder { attempt, ends, .. }) => {
                    assert!(parcel.lost, "{id}: attempt {attempt} is repeated without a crash");
                    assert!(ends <= wall, "{id}: the lease of attempt {attempt} holds");
                }
            }
            assert!(parcel.lost || !is_running(senders, id), "{id} is attempted twice at once");
            if parcel.attempts == 0 {
                self.delays.insert(id, wall.since(parcel.created_at));
            }
            parcel.attempts += 1;
            parcel.lost = false;
            let ends = wall.checked_add(self.lease).unwrap();
            parcel.holder = Some(Holder { attempt: parcel.attempts, ends, jumped: false });
            self.touched.insert(id);
        }
    }

    /// The endpoint receives an attempt.
    pub(crate) fn answer(&mut self, delivery: &Delivery, now: u64, rng: &mut StdRng) -> Answer {
        let answer = self.endpoints[&delivery.subscription_id].behaviour.answer(now, rng);
        if answer.succeeded() {
            let parcel = self.parcels.get_mut(&delivery.id).unwrap();
            parcel.taken += 1;
            assert!(parcel.taken <= parcel.allowed, "{} was taken {} times", delivery.id, parcel.taken);
        }
        answer
    }

    /// A sender has no more in flight than it may, after it began attempts to these endpoints.
    pub(crate) fn check_room(&self, sender: &Sender, policy: &Policy, begun: &BTreeSet<Uuid>) {
        let (mut endpoints, mut tenants) = (HashMap::<Uuid, usize>::new(), HashMap::<TenantId, usize>::new());
        for attempt in sender.running.values() {
            *endpoints.entry(attempt.delivery.subscription_id).or_default() += 1;
            *tenants.entry(attempt.delivery.tenant_id).or_default() += 1;
        }
        let total = sender.running.len();
        assert_eq!(total, sender.in_flight.total());
        assert!(total <= policy.concurrency, "{total} in flight");
        let share = (policy.concurrency / 2).max(1);
        assert!(tenants.values().all(|count| *count <= share), "more than a tenant's share: {tenants:?}");
        for id in begun {
            let failing = self.endpoints[id].failures_in_row > 0;
            let window = if failing { 1 } else { sender.windows.get(id).copied().unwrap_or(4) };
            assert!(endpoints[id] <= window, "{id}: {} in flight through a window of {window}", endpoints[id]);
        }
    }

    /// Compares what the last step touched with the store.
    pub(crate) fn check_touched(&mut self, store: &dyn Store, wall: Timestamp) {
        let touched = std::mem::take(&mut self.touched);
        let endpoints: BTreeSet<Uuid> = touched.iter().map(|id| self.parcels[id].endpoint).collect();
        for id in touched {
            self.check_parcel(store, id, wall);
        }
        for id in endpoints {
            self.check_endpoint(store, id);
        }
    }

    /// Whether an attempt is under way, or was when its sender crashed.
    pub(crate) fn is_leased(&self, id: Uuid) -> bool {
        self.parcels[&id].holder.is_some()
    }

    /// Compares everything with the store.
    pub(crate) fn check_all(&mut self, store: &dyn Store, wall: Timestamp) {
        self.touched = self.parcels.keys().copied().collect();
        self.check_touched(store, wall);
    }

    fn check_parcel(&mut self, store: &dyn Store, id: Uuid, wall: Timestamp) {
        let parcel = self.parcels.get_mut(&id).unwrap();
        let tenant = parcel.tenant;
        let read = store.read("check", move |tx| {
            Box::pin(async move { Ok((tx.delivery(tenant, id).await?, tx.attempts(tenant, id).await?)) })
        });
        let (stored, log) = read.now_or_never().unwrap().unwrap();
        let stored = stored.unwrap();
        // What is left of a deleted endpoint is held when its turn comes.
        if self.endpoints[&parcel.endpoint].deleted && stored.status == DeliveryStatus::Held {
            parcel.state = DeliveryStatus::Held;
        }
        assert_eq!(
            (stored.status, stored.attempts, stored.failures, stored.last_status),
            (parcel.state, parcel.attempts, parcel.failures, parcel.last_status),
            "{stored:?}"
        );
        assert_eq!(log, parcel.log, "{id}: what was logged");
        assert!(log.is_sorted_by(|a, b| a.attempt < b.attempt));
        assert_eq!(stored.next_attempt_at.is_some(), parcel.state == DeliveryStatus::Pending, "{stored:?}");
        assert_eq!(stored.lease.is_some(), parcel.holder.is_some(), "{stored:?}");
        let Some(due) = stored.next_attempt_at else { return };
        match &mut parcel.holder {
            // A sender that doubts the clock lets a lease hold for longer.
            Some(holder) => {
                assert!(holder.ends <= due && due <= wall.max(holder.ends).checked_add(self.lease).unwrap())
            }
            None => {
                let (earliest, latest) = parcel.due;
                assert!((earliest..=latest).contains(&due), "{id}: {due} is not in {earliest} to {latest}");
                parcel.due = (due, due);
            }
        }
    }

    fn check_endpoint(&self, store: &dyn Store, id: Uuid) {
        let endpoint = &self.endpoints[&id];
        let tenant = endpoint.tenant;
        let read = store.read("check", move |tx| {
            Box::pin(async move { Ok(WebhookSubscription::repository(tx).get(tenant, id).await?) })
        });
        let stored: WebhookSubscription = read.now_or_never().unwrap().unwrap().unwrap();
        assert_eq!(
            (stored.enabled, stored.disabled_reason.is_some(), stored.paused_at.is_some()),
            (endpoint.enabled, endpoint.paused, endpoint.paused),
            "{id}: paused after the tenth failure in a row, and only then"
        );
        assert_eq!(
            (stored.consecutive_failures, stored.last_delivery_at.zip(stored.last_delivery_status)),
            (endpoint.failures_in_row, endpoint.last),
            "{id}"
        );
    }

    /// The owner enables it, which ends a pause.
    pub(crate) fn enable(&mut self, id: Uuid) {
        let endpoint = self.endpoints.get_mut(&id).unwrap();
        (endpoint.enabled, endpoint.paused, endpoint.failures_in_row) = (true, false, 0);
    }

    /// The owner disables it.
    pub(crate) fn disable(&mut self, id: Uuid) {
        let endpoint = self.endpoints.get_mut(&id).unwrap();
        endpoint.blameless = false;
        if std::mem::take(&mut endpoint.enabled) {
            self.hold(id);
        }
    }
}

/// Whether a process that is alive makes an attempt at this delivery.
pub(crate) fn is_running(senders: &[Sender], delivery: Uuid) -> bool {
    let attempts = (delivery, 0)..=(delivery, u32::MAX);
    senders.iter().any(|sender| sender.alive && sender.running.range(attempts.clone()).next().is_some())
}
