//! The model: a second, simple record of every delivery and endpoint, which must agree with the store.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use futures_util::FutureExt as _;
use rand::rngs::StdRng;
use svc_core::resources::Resource as _;
use svc_core::store::Store;
use svc_core::values::{TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryStatus};
use svc_core::webhooks::engine::{Attempt, AttemptResult, Policy};
use svc_core::webhooks::replays::Replay;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

use super::driver::Process;
use super::endpoints::{Behaviour, Response};

/// The delays before retries, in seconds. They repeat the default schedule, so that a change to it is noticed.
const DELAYS: [u64; 5] = [60, 240, 960, 3_840, 14_400];
/// The delays of an endpoint after 0 to 10 failures in a row, in seconds.
const BACKOFFS: [u64; 11] = [1, 1, 2, 4, 8, 16, 32, 60, 60, 60, 60];

#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    pub(crate) tenant: TenantId,
    pub(crate) url: WebhookUrl,
    pub(crate) behaviour: Behaviour,
    pub(crate) enabled: bool,
    pub(crate) paused: bool,
    pub(crate) deleted: bool,
    /// Whether it has always taken every delivery and its owner has never disabled it.
    pub(crate) takes_every_delivery: bool,
    failures_in_row: u32,
    backoff: Option<Backoff>,
    /// A second, and the number of attempts that arrived in it.
    arrivals: (u64, u32),
    /// The end of the last attempt, and its status.
    pub(crate) last: Option<(Timestamp, i32)>,
}

impl Endpoint {
    /// Returns whether deliveries are sent to it.
    pub(crate) fn is_active(&self) -> bool {
        self.enabled && !self.deleted
    }
}

/// The time after a failure, in which there is one attempt at a time.
#[derive(Clone, Copy, Debug)]
struct Backoff {
    /// When the next attempt can be made. While one is in flight, the end of its lease.
    until: Timestamp,
    /// That attempt: its delivery and its number.
    single: Option<(DeliveryId, u32)>,
}

/// What is expected of one delivery.
#[derive(Clone, Debug)]
pub(crate) struct ExpectedDelivery {
    pub(crate) tenant: TenantId,
    pub(crate) endpoint: SubscriptionId,
    pub(crate) status: DeliveryStatus,
    pub(crate) created_at: Timestamp,
    attempts: u32,
    failures: u32,
    last_status: Option<i32>,
    /// The lease of the attempt whose outcome counts.
    lease: Option<Lease>,
    /// Whether that attempt was lost with its process.
    lost: bool,
    /// The earliest and the latest time at which it may become due.
    due: (Timestamp, Timestamp),
    log: Vec<AttemptLog>,
    /// The number of times that the endpoint accepted it.
    accepted: u32,
    /// The number of times that it may accept it: once, and once more for each lost attempt and each replay.
    allowed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Lease {
    attempt: u32,
    ends: Timestamp,
    /// Whether the clock has jumped forward during the attempt, which extends the lease once.
    extended: bool,
}

pub(crate) struct Model {
    pub(crate) endpoints: BTreeMap<SubscriptionId, Endpoint>,
    pub(crate) deliveries: BTreeMap<DeliveryId, ExpectedDelivery>,
    /// The unfinished bulk replays.
    pub(crate) replays: Vec<Replay>,
    /// The time from each event to the first attempt at its delivery.
    pub(crate) delays: HashMap<DeliveryId, Duration>,
    /// The deliveries that changed since the last comparison.
    changed: BTreeSet<DeliveryId>,
    lease_length: Duration,
}

fn subscription(store: &dyn Store, tenant: TenantId, id: SubscriptionId) -> WebhookSubscription {
    let read = store.read("simulation.check", (tenant, id), async |tx, &(tenant, id)| {
        Ok(WebhookSubscription::repository(tx).get(tenant, id).await?)
    });
    read.now_or_never().unwrap().unwrap().unwrap()
}

/// Returns whether deliveries are still to be held or ended since an endpoint stopped sending.
fn is_stopping(store: &dyn Store, tenant: TenantId, endpoint: SubscriptionId) -> bool {
    subscription(store, tenant, endpoint).stopped_at.is_some()
}

impl Model {
    pub(crate) fn new(policy: &Policy) -> Self {
        Self {
            endpoints: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            replays: Vec::new(),
            delays: HashMap::new(),
            changed: BTreeSet::new(),
            lease_length: policy.lease(),
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
            takes_every_delivery: behaviour.takes_every_delivery(),
            failures_in_row: 0,
            backoff: None,
            arrivals: (0, 0),
            last: None,
        };
        self.endpoints.insert(subscription.id, endpoint);
    }

    /// Records an event with its deliveries.
    pub(crate) fn emitted(&mut self, tenant: TenantId, emitted: &[Delivery], wall: Timestamp) {
        let receives = |endpoint: &Endpoint| {
            endpoint.tenant == tenant && !endpoint.deleted && (endpoint.enabled || endpoint.paused)
        };
        let want: BTreeSet<_> =
            self.endpoints.iter().filter(|(_, endpoint)| receives(endpoint)).map(|(id, _)| *id).collect();
        let got: BTreeSet<_> = emitted.iter().map(|delivery| delivery.subscription_id).collect();
        assert_eq!(got, want, "one delivery per endpoint that receives events");
        assert_eq!(emitted.len(), want.len());
        for delivery in emitted {
            let paused = self.endpoints[&delivery.subscription_id].paused;
            let expected = ExpectedDelivery {
                tenant,
                endpoint: delivery.subscription_id,
                status: if paused { DeliveryStatus::Held } else { DeliveryStatus::Pending },
                created_at: delivery.created_at,
                attempts: 0,
                failures: 0,
                last_status: None,
                lease: None,
                lost: false,
                due: (wall, wall),
                log: Vec::new(),
                accepted: 0,
                allowed: 1,
            };
            self.deliveries.insert(delivery.id, expected);
            self.changed.insert(delivery.id);
        }
    }

    /// Records that an attempt was lost with its process, or is never made. If its outcome would count, the next attempt may
    /// repeat it.
    pub(crate) fn lose(&mut self, delivery: DeliveryId, attempt: u32) {
        let expected = self.deliveries.get_mut(&delivery).unwrap();
        if expected.lease.is_some_and(|lease| lease.attempt == attempt) {
            expected.lost = true;
            expected.allowed += 1;
        }
    }

    /// Records that the clock jumped forward during these attempts. Each lease is extended only once.
    pub(crate) fn clock_jumped(&mut self, running: &[(DeliveryId, u32)]) {
        for (delivery, attempt) in running {
            let lease = self.deliveries.get_mut(delivery).unwrap().lease.as_mut();
            let again = lease.is_some_and(|lease| std::mem::replace(&mut lease.extended, true));
            if again {
                self.lose(*delivery, *attempt);
            }
        }
    }

    /// Bounds the waits of these endpoints and of their deliveries, each by the longest time that it can take from now on.
    pub(crate) fn bound_waits(&mut self, endpoints: &BTreeSet<SubscriptionId>, wall: Timestamp) {
        let after = |seconds: u64| wall.checked_add(Duration::from_secs(seconds)).unwrap();
        let lease_ends = wall.checked_add(self.lease_length).unwrap();
        for (id, expected) in &mut self.deliveries {
            if expected.status != DeliveryStatus::Pending || !endpoints.contains(&expected.endpoint) {
                continue;
            }
            if let Some(lease) = &mut expected.lease {
                lease.ends = lease.ends.min(lease_ends);
            } else {
                let latest = match (expected.failures, expected.last_status) {
                    (0, _) => wall,
                    (_, Some(429 | 503)) => after(4 * 3_600 + 1_440),
                    (failures, _) => after(DELAYS[failures as usize - 1] * 11 / 10),
                };
                expected.due = (expected.due.0.min(latest), expected.due.1.min(latest));
            }
            self.changed.insert(*id);
        }
        for id in endpoints {
            let endpoint = self.endpoints.get_mut(id).unwrap();
            let longest = after(BACKOFFS[endpoint.failures_in_row as usize]).max(lease_ends);
            if let Some(backoff) = endpoint.backoff.as_mut().filter(|backoff| backoff.until > longest) {
                *backoff = Backoff { until: longest, single: None };
            }
        }
    }

    /// Records outcomes in the order in which they are stored.
    pub(crate) fn record(&mut self, outcomes: &[AttemptResult], wall: Timestamp) {
        for AttemptResult { delivery, log, retry_after } in outcomes {
            let expected = self.deliveries.get_mut(&delivery.id).unwrap();
            if expected.lease.is_none_or(|lease| lease.attempt != log.attempt) {
                continue;
            }
            let endpoint = self.endpoints.get_mut(&expected.endpoint).unwrap();
            (expected.lease, expected.lost) = (None, false);
            expected.last_status = Some(log.status);
            let ended = log.started_at.checked_add(Duration::from_millis(log.duration_ms.into())).unwrap();
            if endpoint.last.is_none_or(|(last, _)| last <= ended) {
                endpoint.last = Some((ended, log.status));
            }
            expected.log.push(log.clone());
            self.changed.insert(delivery.id);
            let is_new = endpoint.backoff.is_none_or(|backoff| backoff.single == Some((delivery.id, log.attempt)));
            if log.succeeded() {
                expected.status = DeliveryStatus::Succeeded;
                endpoint.failures_in_row = 0;
                endpoint.backoff = endpoint.backoff.filter(|_| !is_new);
                continue;
            }
            expected.failures += 1;
            let asked = retry_after.unwrap_or_default().min(Duration::from_secs(4 * 3_600));
            let mut pauses = false;
            if endpoint.is_active() && is_new {
                endpoint.failures_in_row += u32::from(endpoint.backoff.is_some() || retry_after.is_none());
                let wait = Duration::from_secs(BACKOFFS[endpoint.failures_in_row as usize]);
                endpoint.backoff = Some(Backoff { until: wall.checked_add(wait.max(asked)).unwrap(), single: None });
                pauses = endpoint.failures_in_row == 10;
            }
            if pauses {
                (endpoint.enabled, endpoint.paused) = (false, true);
            }
            let (sends, id) = (endpoint.is_active(), expected.endpoint);
            match DELAYS.get(expected.failures as usize - 1).filter(|_| log.status != 410) {
                None => expected.status = DeliveryStatus::Failed,
                Some(_) if endpoint.deleted => expected.status = DeliveryStatus::Failed,
                Some(_) if !sends || expected.status == DeliveryStatus::Held => expected.status = DeliveryStatus::Held,
                Some(wait) => {
                    let wait = Duration::from_secs(*wait);
                    let plus = |wait: Duration| wall.checked_add(wait.max(asked)).unwrap();
                    expected.due = (plus(wait), plus(wait + wait / 10));
                }
            }
            if pauses {
                self.hold(id);
            }
        }
    }

    /// Holds the pending deliveries of an endpoint.
    pub(crate) fn hold(&mut self, endpoint: SubscriptionId) {
        for (id, expected) in &mut self.deliveries {
            if expected.endpoint == endpoint && expected.status == DeliveryStatus::Pending {
                expected.status = DeliveryStatus::Held;
                self.changed.insert(*id);
            }
        }
    }

    /// Deletes an endpoint, which ends what is pending or held for it.
    pub(crate) fn delete(&mut self, endpoint: SubscriptionId) {
        self.endpoints.get_mut(&endpoint).unwrap().deleted = true;
        for (id, expected) in &mut self.deliveries {
            let is_unfinished = matches!(expected.status, DeliveryStatus::Pending | DeliveryStatus::Held);
            if expected.endpoint == endpoint && is_unfinished {
                expected.status = DeliveryStatus::Failed;
                self.changed.insert(*id);
            }
        }
    }

    /// Advances the tenant's bulk replay that has waited longest by 200 deliveries. An attempt in progress continues, and is
    /// the first of the new schedule.
    pub(crate) fn step_replay(&mut self, tenant: TenantId, wall: Timestamp) {
        self.replays.sort_by_key(|replay| (replay.stepped_at, replay.id));
        let Some(next) = self.replays.iter().position(|replay| replay.tenant_id == tenant) else { return };
        let mut replay = self.replays.remove(next);
        if !self.endpoints[&replay.subscription_id].is_active() {
            return;
        }
        let span = replay.position..replay.until;
        let there = |expected: &ExpectedDelivery| {
            expected.endpoint == replay.subscription_id && span.contains(&expected.created_at)
        };
        let there: Vec<_> = self.deliveries.iter().filter(|(_, expected)| there(expected)).map(|(id, _)| *id).collect();
        for id in there.iter().copied().take(200) {
            let expected = &self.deliveries[&id];
            if replay.statuses.contains(&expected.status) {
                let lease = expected.lease.filter(|lease| wall < lease.ends);
                self.replayed(id, wall);
                self.deliveries.get_mut(&id).unwrap().lease = lease;
            }
        }
        if let Some(last) = there.get(199) {
            replay.position = self.deliveries[last].created_at.next();
            replay.stepped_at = wall;
            self.replays.push(replay);
        }
    }

    /// Restarts a delivery.
    pub(crate) fn replayed(&mut self, id: DeliveryId, wall: Timestamp) {
        let expected = self.deliveries.get_mut(&id).unwrap();
        expected.allowed += u32::from(expected.status == DeliveryStatus::Succeeded);
        expected.status = DeliveryStatus::Pending;
        expected.failures = 0;
        expected.lease = None;
        expected.due = (wall, wall);
        self.changed.insert(id);
    }

    /// Records the attempts that a process has claimed.
    pub(crate) fn claim(&mut self, attempts: &[Attempt], wall: Timestamp, processes: &[Process]) {
        for Attempt { delivery, event, url, .. } in attempts {
            let id = delivery.id;
            let expected = self.deliveries.get_mut(&id).unwrap();
            let endpoint = self.endpoints.get_mut(&expected.endpoint).unwrap();
            assert!(endpoint.is_active(), "{id} is sent to an endpoint that is not active");
            assert_eq!(expected.status, DeliveryStatus::Pending, "{id} is not pending");
            assert_eq!((event.id, event.created_at), (delivery.event_id, expected.created_at));
            assert_eq!(*url, endpoint.url);
            assert_eq!(delivery.attempts, expected.attempts + 1, "{id}: attempts are numbered in order");
            match expected.lease {
                None => assert!(expected.due.0 <= wall, "{id} is sent before it is due: {:?}", expected.due),
                Some(Lease { attempt, ends, .. }) => {
                    assert!(expected.lost, "{id}: attempt {attempt} is repeated without a crash");
                    assert!(ends <= wall, "{id}: the lease of attempt {attempt} has not ended");
                }
            }
            assert!(expected.lost || !is_running(processes, id), "{id} has two attempts at once");
            if expected.attempts == 0 {
                self.delays.insert(id, wall.since(expected.created_at));
            }
            expected.attempts += 1;
            expected.lost = false;
            let ends = wall.checked_add(self.lease_length).unwrap();
            if let Some(backoff) = &mut endpoint.backoff {
                assert!(backoff.until <= wall, "{id} is sent during a back-off: {backoff:?}");
                *backoff = Backoff { until: ends, single: Some((id, expected.attempts)) };
            }
            expected.lease = Some(Lease { attempt: expected.attempts, ends, extended: false });
            self.changed.insert(id);
        }
    }

    /// Returns the response of the endpoint to an attempt.
    pub(crate) fn respond(&mut self, delivery: &Delivery, now: u64, rng: &mut StdRng) -> Response {
        let endpoint = self.endpoints.get_mut(&delivery.subscription_id).unwrap();
        let second = now / 1_000_000;
        let before = if endpoint.arrivals.0 == second { endpoint.arrivals.1 } else { 0 };
        endpoint.arrivals = (second, before + 1);
        let response = endpoint.behaviour.respond(now, before + 1, rng);
        if response.succeeded() {
            let expected = self.deliveries.get_mut(&delivery.id).unwrap();
            expected.accepted += 1;
            assert!(expected.accepted <= expected.allowed, "{} was accepted {} times", delivery.id, expected.accepted);
        }
        response
    }

    /// Checks that a process has no more attempts in flight than its limits allow, after it claimed attempts to these
    /// endpoints.
    pub(crate) fn check_capacity(&self, process: &Process, policy: &Policy, claimed: &BTreeSet<SubscriptionId>) {
        let (mut endpoints, mut tenants) = (HashMap::<SubscriptionId, usize>::new(), HashMap::<TenantId, usize>::new());
        for attempt in process.running.values() {
            *endpoints.entry(attempt.delivery.subscription_id).or_default() += 1;
            *tenants.entry(attempt.delivery.tenant_id).or_default() += 1;
        }
        let total = process.running.len();
        assert_eq!(total, process.in_flight.total());
        assert!(total <= policy.concurrency, "{total} in flight");
        let share = (policy.concurrency / 2).max(1);
        assert!(tenants.values().all(|count| *count <= share), "more than a tenant's share: {tenants:?}");
        for id in claimed {
            let window =
                if self.endpoints[id].backoff.is_some() { 1 } else { process.windows.get(id).copied().unwrap_or(4) };
            assert!(endpoints[id] <= window, "{id}: {} in flight through a window of {window}", endpoints[id]);
        }
    }

    /// Compares the deliveries that have changed since the last comparison, and their endpoints, with the store.
    pub(crate) fn check_changed(&mut self, store: &dyn Store, wall: Timestamp) {
        let changed = std::mem::take(&mut self.changed);
        let endpoints: BTreeSet<_> = changed.iter().map(|id| self.deliveries[id].endpoint).collect();
        for id in changed {
            self.check_delivery(store, id, wall);
        }
        for id in endpoints {
            self.check_endpoint(store, id);
        }
    }

    /// Returns whether a delivery has a lease: of an attempt in progress, or of one that was lost in a crash.
    pub(crate) fn is_leased(&self, id: DeliveryId) -> bool {
        self.deliveries[&id].lease.is_some()
    }

    /// Compares all deliveries and endpoints with the store, when nothing is left to do.
    pub(crate) fn check_all(&mut self, store: &dyn Store, wall: Timestamp) {
        self.changed = self.deliveries.keys().copied().collect();
        self.check_changed(store, wall);
        assert!(self.changed.is_empty(), "{:?} are still to be held or ended", self.changed);
    }

    fn check_delivery(&mut self, store: &dyn Store, id: DeliveryId, wall: Timestamp) {
        let expected = self.deliveries.get_mut(&id).unwrap();
        let tenant = expected.tenant;
        let read = store.read("simulation.check", (tenant, id), async |tx, &(tenant, id)| {
            let mut log = tx.attempts(tenant, id, u32::MAX, u32::MAX).await?;
            log.reverse();
            Ok((tx.delivery(tenant, id).await?, log))
        });
        let (stored, log) = read.now_or_never().unwrap().unwrap();
        let stored = stored.unwrap();
        // What was pending when its endpoint stopped sending is held or ended in steps.
        let has_ended = expected.status != DeliveryStatus::Pending;
        if stored.status == DeliveryStatus::Pending && has_ended && is_stopping(store, tenant, expected.endpoint) {
            self.changed.insert(id);
            return;
        }
        assert_eq!(
            (stored.status, stored.attempts, stored.failures, stored.last_status),
            (expected.status, expected.attempts, expected.failures, expected.last_status),
            "{stored:?}"
        );
        assert_eq!(log, expected.log, "{id}: the log of its attempts");
        assert!(log.is_sorted_by(|a, b| a.attempt < b.attempt));
        assert_eq!(stored.next_attempt_at.is_some(), expected.status == DeliveryStatus::Pending, "{stored:?}");
        assert_eq!(stored.lease.is_some(), expected.lease.is_some(), "{stored:?}");
        let Some(due) = stored.next_attempt_at else { return };
        match &mut expected.lease {
            // After a clock jump, a process extends leases that seem to have ended.
            Some(lease) => {
                assert!(lease.ends <= due && due <= wall.max(lease.ends).checked_add(self.lease_length).unwrap())
            }
            None => {
                let (earliest, latest) = expected.due;
                assert!((earliest..=latest).contains(&due), "{id}: {due} is not in {earliest} to {latest}");
                expected.due = (due, due);
            }
        }
    }

    fn check_endpoint(&self, store: &dyn Store, id: SubscriptionId) {
        let endpoint = &self.endpoints[&id];
        let stored = subscription(store, endpoint.tenant, id);
        assert_eq!(
            (stored.enabled, stored.disabled_reason.is_some(), stored.paused_at.is_some()),
            (endpoint.enabled, endpoint.paused, endpoint.paused),
            "{id}: paused by the tenth failure in a row only"
        );
        assert_eq!(
            (stored.consecutive_failures, stored.last_delivery_at.zip(stored.last_delivery_status)),
            (endpoint.failures_in_row, endpoint.last),
            "{id}"
        );
        assert_eq!(stored.backoff_until, endpoint.backoff.map(|backoff| backoff.until), "{id}");
        assert!(!endpoint.paused || !endpoint.takes_every_delivery, "{id} is paused, and takes every delivery");
    }

    /// Enables an endpoint as its owner does, which ends a pause.
    pub(crate) fn enable(&mut self, id: SubscriptionId) {
        let endpoint = self.endpoints.get_mut(&id).unwrap();
        (endpoint.enabled, endpoint.paused, endpoint.failures_in_row, endpoint.backoff) = (true, false, 0, None);
    }

    /// Disables an endpoint as its owner does, which ends a pause.
    pub(crate) fn disable(&mut self, id: SubscriptionId) {
        let endpoint = self.endpoints.get_mut(&id).unwrap();
        endpoint.takes_every_delivery = false;
        endpoint.paused = false;
        if std::mem::take(&mut endpoint.enabled) {
            self.hold(id);
        }
    }
}

/// Returns whether a process that is alive has an attempt at this delivery in flight.
pub(crate) fn is_running(processes: &[Process], delivery: DeliveryId) -> bool {
    let attempts = (delivery, 0)..=(delivery, u32::MAX);
    processes.iter().any(|process| process.alive && process.running.range(attempts.clone()).next().is_some())
}
