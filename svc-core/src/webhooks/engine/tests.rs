//! Tests of single steps of the engine, against the in-memory store. The simulation in `tests/simulation` covers the rest.

mod backlog;
mod options;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::accounts::audit::AuditEntry;
use crate::accounts::clocks::advance_clock;
use crate::accounts::tenants::{self, TenantCreate};
use crate::env::{Env, ManualClock, SeededEntropy};
use crate::input::Input as _;
use crate::resources::crud;
use crate::store::memory::MemoryStore;
use crate::store::{DeliveryFilter, Repository, Store};
use crate::values::{EventKind, Id, Secret, TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, Delivery, DeliveryStatus, RetrySchedule};
use crate::webhooks::events::Event;
use crate::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};
use crate::webhooks::{deliveries, events, signatures, subscriptions};

fn log(attempt: u32, status: i32) -> AttemptLog {
    AttemptLog {
        attempt,
        started_at: Timestamp::from_micros(1_773_500_966_000_000),
        duration_ms: 1_500,
        status,
        error: (!(200..300).contains(&status)).then(|| "status".to_owned()),
        cause: None,
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    }
}

fn clock() -> ManualClock {
    ManualClock::at(Timestamp::from_micros(1_773_500_966_535_897))
}

fn store() -> MemoryStore {
    store_with_clock().0
}

fn store_with_clock() -> (MemoryStore, ManualClock) {
    store_with_clock_and_webhooks(1)
}

fn store_with_clock_and_webhooks(max_webhooks: u32) -> (MemoryStore, ManualClock) {
    let clock = clock();
    let mut env = Env::new(clock.clone(), SeededEntropy::new(1));
    env.max_webhooks = max_webhooks;
    (MemoryStore::new(env), clock)
}

/// Creates a tenant with one endpoint and this many events.
fn fill(store: &dyn Store, count: usize) -> (TenantId, WebhookSubscription) {
    let fill = store.write("fill", count, async |tx, &count| {
        let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
        let input = WebhookCreate::from_body(br#"{"url": "https://example.com", "events": ["*"]}"#)?;
        let subscription = crud::create::<WebhookSubscription>(tx, tenant, input).await?;
        for _ in 0..count {
            let now = advance_clock(tx, tenant).await?;
            events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
        }
        Ok((tenant, subscription))
    });
    fill.now_or_never().unwrap().unwrap()
}

/// Polls once and runs the batch of the tenant, as a process that has nothing in flight.
fn run_step(store: &dyn Store, tenant: TenantId, outcomes: &[AttemptResult]) -> Vec<Attempt> {
    let due_work = store.read("poll", (), async |tx, ()| poll(tx).await).now_or_never().unwrap().unwrap();
    let outcomes = BTreeMap::from([(tenant, outcomes.to_vec())]);
    let mut batches = InFlight::default().plan(&Policy::default(), &due_work, outcomes);
    if batches.is_empty() {
        return Vec::new();
    }
    let batch = Arc::new(batches.remove(0));
    let result = store.write("batch", batch, async |tx, batch| run_batch(tx, &Policy::default(), batch).await);
    result.now_or_never().unwrap().unwrap().attempts
}

/// A subscription, and an attempt at its delivery.
struct Recorder {
    subscription: WebhookSubscription,
    delivery: Delivery,
    now: Timestamp,
}

impl Recorder {
    fn new() -> Self {
        let store = store();
        let (tenant, subscription) = fill(&store, 1);
        let delivery = run_step(&store, tenant, &[]).remove(0).delivery;
        Self { subscription, delivery, now: Timestamp::from_micros(1_773_500_999_000_000) }
    }

    /// Records the outcome of an attempt that was in flight already when the last one failed.
    fn other(&mut self, status: i32, retry_after: Option<u64>) -> bool {
        let retry_after = retry_after.map(Duration::from_secs);
        let outcome = AttemptResult { delivery: self.delivery.clone(), log: log(1, status), retry_after };
        let pauses = self.subscription.record_attempt(&outcome, &RetrySchedule::default(), self.now);
        if pauses {
            self.subscription.pause(self.now);
        }
        pauses
    }

    /// Records the outcome of an attempt that is made by itself during the back-off.
    fn single(&mut self, status: i32, retry_after: Option<u64>) -> bool {
        self.now = self.now.checked_add(Duration::from_secs(100)).unwrap();
        self.delivery.next_attempt_at = Some(self.now);
        self.subscription.begin_single_attempt(self.now);
        let pauses = self.other(status, retry_after);
        self.delivery.next_attempt_at = None;
        pauses
    }

    /// Returns the number of failures in a row, and for how many seconds there is no attempt.
    fn state(&self) -> (u32, Option<u64>) {
        let backoff = self.subscription.backoff_until.map(|until| until.since(self.now).as_secs());
        (self.subscription.consecutive_failures, backoff)
    }
}

#[test]
fn the_tenth_failure_in_a_row_pauses_the_subscription() {
    let mut endpoint = Recorder::new();
    for (failures, backoff) in (1..).zip([1, 2, 4, 8, 16, 32, 60, 60, 60]) {
        assert!(!endpoint.single(500, None));
        assert_eq!(endpoint.state(), (failures, Some(backoff)));
        // Attempts that were in flight at the same time do not count.
        for status in [500, 0, -1] {
            assert!(!endpoint.other(status, None));
        }
        assert_eq!(endpoint.state(), (failures, Some(backoff)));
    }
    assert!(endpoint.single(-1, None));
    assert!(!endpoint.other(500, None) && !endpoint.single(500, None));
    assert_eq!(endpoint.state().0, 10);
    assert!(!endpoint.other(200, None));
    assert_eq!(endpoint.state().0, 0);
}

#[test]
fn only_a_success_that_was_made_by_itself_ends_the_backoff() {
    let mut endpoint = Recorder::new();
    assert!(!endpoint.other(500, None) && !endpoint.single(500, None));
    assert_eq!(endpoint.state(), (2, Some(2)));
    endpoint.other(200, None);
    assert_eq!(endpoint.state(), (0, Some(2)), "what was in flight says that it is not dead, and not that it is well");
    endpoint.single(200, None);
    assert_eq!(endpoint.state(), (0, None));
}

#[test]
fn backpressure_counts_only_during_the_backoff() {
    let mut endpoint = Recorder::new();
    assert!(!endpoint.other(429, Some(0)) && !endpoint.other(429, Some(7)));
    assert_eq!(endpoint.state(), (0, Some(1)), "at least a second");
    assert!(!endpoint.single(429, Some(7)));
    assert_eq!(endpoint.state(), (1, Some(7)));
    assert!(!endpoint.single(503, Some(100_000)));
    assert_eq!(endpoint.state(), (2, Some(4 * 60 * 60)));
    for _ in 3..10 {
        assert!(!endpoint.single(503, Some(1)));
    }
    assert!(endpoint.single(503, Some(1)));
}

#[test]
fn the_last_delivery_is_the_one_that_ended_last() {
    let mut endpoint = Recorder::new();
    let ended = log(1, 0).ended_at();
    for (last, status, want) in [(ended, 503, 0), (ended.next(), 503, 503)] {
        endpoint.subscription.last_delivery_at = Some(last);
        endpoint.subscription.last_delivery_status = Some(status);
        endpoint.other(0, None);
        assert_eq!(endpoint.subscription.last_delivery_status, Some(want));
        assert_eq!(endpoint.subscription.last_delivery_at, Some(last));
    }
}

#[test]
fn a_subscription_is_paused_once_and_its_deliveries_are_held() {
    let (store, clock) = store_with_clock();
    let (tenant, subscription) = fill(&store, 15);
    let outcome = |Attempt { delivery, .. }: &Attempt| AttemptResult {
        log: log(delivery.attempts, 500),
        delivery: delivery.clone(),
        retry_after: None,
    };
    // The first four attempts are in flight at the same time and count as one failure.
    let mut outcomes: Vec<AttemptResult> = run_step(&store, tenant, &[]).iter().map(outcome).collect();
    assert_eq!(outcomes.len(), 4);
    for _ in 2..=10 {
        assert!(run_step(&store, tenant, &outcomes).is_empty(), "the endpoint backs off");
        clock.set(store.env().now().checked_add(Duration::from_secs(60)).unwrap());
        let attempts = run_step(&store, tenant, &[]);
        assert_eq!(attempts.len(), 1, "one attempt at a time");
        assert!(run_step(&store, tenant, &[]).is_empty());
        outcomes = attempts.iter().map(outcome).collect();
    }
    // The second time, as after a response of the store that was lost, nothing is left to store.
    for _ in 0..2 {
        assert!(run_step(&store, tenant, &outcomes).is_empty());
        let read = (&store as &dyn Store).read("look", (tenant, subscription.id), async |tx, &(tenant, id)| {
            let deliveries = tx.list_deliveries(tenant, &DeliveryFilter::default()).await?;
            let stored = Repository::<WebhookSubscription>::get(tx, tenant, id).await?;
            let log = tx.audit_entries(tenant, Timestamp::from_micros(0), Timestamp::MAX, 100).await?;
            Ok((deliveries, stored, log))
        });
        let (deliveries, stored, mut recorded) = read.now_or_never().unwrap().unwrap();
        recorded.retain(|entry| entry.action == "pause");
        assert_eq!(recorded.len(), 1);
        let AuditEntry { actor, object_kind, object_id, before, after, .. } = recorded.remove(0);
        assert_eq!((&*actor, &*object_kind, object_id), ("sender", "webhook", subscription.id.uuid()));
        let [before, after] = [before, after].map(|json| json.unwrap().as_str().parse::<serde_json::Value>().unwrap());
        let of = |state: &serde_json::Value| (state["enabled"].clone(), state["disabled_reason"].clone());
        assert_eq!(of(&before), (json!(true), json!(null)));
        assert_eq!(of(&after), (json!(false), json!("auto_paused")));
        assert_eq!((&before["consecutive_failures"], &after["consecutive_failures"]), (&json!(10), &json!(10)));
        assert!(before["paused_at"].is_null() && after["paused_at"] == json!(stored.as_ref().unwrap().paused_at));
        let stored = stored.unwrap();
        assert!(!stored.enabled && stored.paused_at.is_some());
        assert_eq!(stored.consecutive_failures, 10);
        assert_eq!(deliveries.len(), 15);
        assert_eq!(deliveries.iter().map(|delivery| delivery.failures).sum::<u32>(), 4 + 9);
        for delivery in deliveries {
            assert_eq!((delivery.status, delivery.lease), (DeliveryStatus::Held, None));
        }
    }
}

/// Creates a tenant with this many endpoints that are due.
fn fill_endpoints(store: &MemoryStore, endpoints: usize) -> TenantId {
    let fill = (store as &dyn Store).write("fill", endpoints, async |tx, &endpoints| {
        let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
        for _ in 0..endpoints {
            let input = WebhookCreate::from_body(br#"{"url": "https://example.com", "events": ["*"]}"#)?;
            crud::create::<WebhookSubscription>(tx, tenant, input).await?;
        }
        let now = advance_clock(tx, tenant).await?;
        events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
        Ok(tenant)
    });
    fill.now_or_never().unwrap().unwrap()
}

fn poll_once(store: &MemoryStore) -> DueWork {
    (store as &dyn Store).read("poll", (), async |tx, ()| poll(tx).await).now_or_never().unwrap().unwrap()
}

#[test]
fn tenants_with_many_due_endpoints_hide_no_other_tenant() {
    let (store, clock) = store_with_clock_and_webhooks(300);
    let mut tenants = Vec::new();
    for endpoints in [300, 300, 260, 20, 1] {
        tenants.push(fill_endpoints(&store, endpoints));
        clock.set(store.env().now().next());
    }
    let endpoints = poll_once(&store).endpoints;
    let found = |tenant: &TenantId| endpoints.iter().filter(|endpoint| endpoint.tenant_id == *tenant).count();
    assert_eq!(tenants.iter().map(found).collect::<Vec<_>>(), [256, 256, 256, 20, 1]);
}

#[test]
fn a_batch_has_a_bounded_number_of_endpoints() {
    let (store, _) = store_with_clock_and_webhooks(300);
    let tenant = fill_endpoints(&store, 100);
    let mut attempts = Vec::new();
    for want in [64, 100] {
        attempts.extend(run_step(&store, tenant, &[]));
        assert_eq!(attempts.len(), want);
    }
}

#[test]
fn capacity_goes_to_the_tenant_with_the_fewest_attempts_in_flight() {
    let (store, clock) = store_with_clock_and_webhooks(300);
    let mut tenants = Vec::new();
    for endpoints in [300, 300, 2] {
        tenants.push(fill_endpoints(&store, endpoints));
        clock.set(store.env().now().next());
    }
    let policy = Policy { concurrency: 9, ..Policy::default() };
    let mut in_flight = InFlight::default();
    in_flight.reserve(tenants[0], Id::nil(), 4);
    in_flight.reserve(tenants[1], Id::max(), 3);
    let batches = in_flight.plan(&policy, &poll_once(&store), BTreeMap::new());
    let selected: Vec<(TenantId, usize)> =
        batches.iter().map(|batch| (batch.tenant_id, batch.selections.len())).collect();
    assert_eq!(selected, [(tenants[2], 2)], "one attempt each, as half of the capacity is in use");
    // A tenant with its share in flight is not touched, although the other one has capacity left.
    let mut in_flight = InFlight::default();
    in_flight.reserve(tenants[0], Id::nil(), 4);
    let batches = in_flight.plan(&policy, &poll_once(&store), BTreeMap::new());
    assert!(batches.iter().all(|batch| batch.tenant_id != tenants[0]));
}

#[test]
fn a_window_has_grown_after_a_success_and_not_after_a_failure() {
    let store = store();
    let (tenant, subscription) = fill(&store, 1);
    let delivery = run_step(&store, tenant, &[]).remove(0).delivery;
    let mut in_flight = InFlight::default();
    let mut grown = Vec::new();
    for status in [200, 500, 200, 200, 200, 200] {
        in_flight.reserve(tenant, subscription.id, 1);
        in_flight.attempt_finished(&AttemptResult {
            delivery: delivery.clone(),
            log: log(1, status),
            retry_after: None,
        });
        grown.push(in_flight.has_grown_window(subscription.id));
    }
    // After a failure the window is smaller than at first.
    assert_eq!(grown, [true, false, false, false, false, true]);
    assert!(!in_flight.has_grown_window(Id::nil()));
}

#[test]
fn a_search_reads_a_bounded_number_of_deliveries() {
    let store = store();
    let (tenant, subscription) = fill(&store, 10_002);
    let find = |kind, until| {
        let filter =
            DeliveryFilter { subscription_id: Some(subscription.id), kind, until, ..DeliveryFilter::default() };
        let search = (&store as &dyn Store).read("search", (tenant, filter), async |tx, (tenant, filter)| {
            deliveries::search(tx, *tenant, filter).await
        });
        search.now_or_never().unwrap().unwrap()
    };
    let newest = find(None, None);
    assert!(newest.deliveries.is_sorted_by_key(|delivery| std::cmp::Reverse(delivery.id)));
    let rest = find(None, newest.next_until);
    assert!(newest.next_until.is_some() && rest.next_until.is_none());
    let ids: BTreeSet<_> = newest.deliveries.iter().chain(&rest.deliveries).map(|delivery| delivery.id).collect();
    assert_eq!((newest.deliveries.len(), rest.deliveries.len(), ids.len()), (10_001, 1, 10_002), "each is found once");
    let nothing = find(Some(EventKind::StayCreated), None);
    assert!(nothing.deliveries.is_empty());
    assert_eq!(nothing.next_until, newest.next_until, "deliveries that do not match are read as well");
}

/// A receiver that knows the secret from before the first rotation keeps working through all rotations, until an overlap
/// ends.
#[test]
fn the_secret_that_receivers_have_signs_until_an_overlap_ends() {
    let store: &dyn Store = &store();
    let (tenant, WebhookSubscription { id, secret: first, .. }) = fill(store, 1);
    let rotate = |overlap| {
        let rotate = store.write("rotate", (tenant, id, overlap), async |tx, &(tenant, id, overlap)| {
            subscriptions::rotate_secret(tx, tenant, id, overlap).await
        });
        rotate.now_or_never().unwrap().unwrap()
    };
    let secrets = |subscription: &WebhookSubscription| subscription.signing_secrets(store.env().now());
    let hour = Duration::from_secs(3600);
    let second = rotate(hour);
    assert_eq!(secrets(&second), [second.secret.clone(), first.clone()]);
    let third = rotate(hour);
    assert_eq!(secrets(&third), [third.secret.clone(), first]);
    let finish = || {
        let finish = store.write("finish", (tenant, id), async |tx, &(tenant, id)| {
            subscriptions::finish_rotation(tx, tenant, id).await
        });
        finish.now_or_never().unwrap().unwrap()
    };
    let finished = finish();
    assert_eq!(secrets(&finished), std::slice::from_ref(&third.secret));
    assert_eq!(finish(), finished, "there is nothing left to finish");
    let fourth = rotate(Duration::ZERO);
    assert_eq!(secrets(&fourth), std::slice::from_ref(&fourth.secret));
}

#[test]
fn the_headers_of_an_attempt_identify_and_sign_the_delivery() {
    let store = store();
    let (tenant, subscription) = fill(&store, 1);
    let attempt = run_step(&store, tenant, &[]).remove(0);
    assert_eq!(attempt.secrets, [subscription.secret]);
    let rotated = [Secret::new("whsec_bmV3"), Secret::new("whsec_b2xk")];
    let mut delivery = attempt.delivery.clone();
    delivery.id = Uuid::from_u128(0x019c_ece5_2687_7e62_a676_64fd_ffa1_d8fa).into();
    delivery.attempts = 3;
    let attempt = Attempt { delivery, secrets: rotated.to_vec(), ..attempt };
    let now = Timestamp::parse("2026-03-14T15:09:26.5Z").unwrap();
    let body = attempt.body(now);
    let text = format!(
        r#"{{"event":"job.created","data":{{"id":1}},"delivered_at":"2026-03-14T15:09:26.500000Z","tenant_id":"{tenant}"}}"#
    );
    assert_eq!(String::from_utf8(body.clone()).unwrap(), text);
    let [new, old] = rotated;
    let standard = |secret| {
        signatures::standard_webhook_signature(secret, "019cece5-2687-7e62-a676-64fdffa1d8fa", "1773500966", &body)
    };
    let want = [
        ("x-svc-event", "job.created".to_owned()),
        ("x-svc-signature", signatures::webhook_signature(&old, &body)),
        ("x-svc-delivery", "019cece5-2687-7e62-a676-64fdffa1d8fa".to_owned()),
        ("x-svc-attempt", "3".to_owned()),
        ("webhook-signature", format!("{} {}", standard(&new), standard(&old))),
        ("webhook-id", "019cece5-2687-7e62-a676-64fdffa1d8fa".to_owned()),
        ("webhook-timestamp", "1773500966".to_owned()),
    ];
    assert_eq!(attempt.headers(now, &body), want);
    let event = Event { only_for: Some(attempt.delivery.subscription_id), ..attempt.event.clone() };
    let test = Attempt { event, ..attempt.clone() };
    let marked = [("x-svc-test", "true".to_owned())];
    assert_eq!(test.headers(now, &body)[want.len()..], marked, "a test of the subscription");
    let of_sandbox = Attempt { is_sandbox: true, ..attempt };
    assert_eq!(of_sandbox.headers(now, &body)[want.len()..], marked, "every delivery of a sandbox");
    assert_eq!(of_sandbox.body(now), body);
}
