//! Tests of single steps of the engine, against the in-memory store. The simulation in `tests/simulation` covers the rest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::accounts::audit::Entry;
use crate::accounts::tenants::{self, TenantCreate};
use crate::env::{Env, ManualClock, SeededEntropy};
use crate::input::Input as _;
use crate::resources::crud::{self, advance_clock};
use crate::store::memory::MemoryStore;
use crate::store::{DeliveryFilter, Repository, Store};
use crate::values::{EventKind, Secret, TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, Delivery, DeliveryStatus, FailureReason};
use crate::webhooks::replays::ReplayCreate;
use crate::webhooks::subscriptions::{
    SETTLE_AT_ONCE, SETTLE_PAUSE, SETTLE_STEP, WebhookCreate, WebhookSubscription, WebhookUpdate,
};
use crate::webhooks::{deliveries, events, signatures, subscriptions};

fn log(attempt: u32, status: i32) -> AttemptLog {
    AttemptLog {
        attempt,
        started_at: Timestamp::from_micros(1_773_500_966_000_000),
        duration_ms: 1_500,
        status,
        error: (!(200..300).contains(&status)).then(|| "status".to_owned()),
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    }
}

fn clock() -> ManualClock {
    ManualClock::at(Timestamp::from_micros(1_773_500_966_535_897))
}

fn store() -> MemoryStore {
    MemoryStore::new(Env::new(clock(), SeededEntropy::new(1)))
}

/// Creates a tenant with one endpoint and this many events.
fn fill(store: &dyn Store, count: usize) -> (TenantId, WebhookSubscription) {
    let fill = store.write("fill", move |tx| {
        Box::pin(async move {
            let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
            let input = WebhookCreate::from_body(br#"{"url": "https://example.com", "events": ["*"]}"#)?;
            let subscription = crud::create::<WebhookSubscription>(tx, tenant, input).await?;
            for _ in 0..count {
                let now = advance_clock(tx, tenant).await?;
                events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
            }
            Ok((tenant, subscription))
        })
    });
    fill.now_or_never().unwrap().unwrap()
}

/// Polls once and runs the batch of the tenant, as a process that has nothing in flight.
fn run_step(store: &dyn Store, tenant: TenantId, outcomes: &[Outcome]) -> Vec<Attempt> {
    let due_work = store.read("poll", |tx| Box::pin(poll(tx))).now_or_never().unwrap().unwrap();
    let outcomes = BTreeMap::from([(tenant, outcomes.to_vec())]);
    let mut batches = InFlight::default().plan(&Policy::default(), &due_work, outcomes);
    let batch = Arc::new(batches.remove(0));
    let result = store.write("batch", move |tx| {
        let batch = Arc::clone(&batch);
        Box::pin(async move { run_batch(tx, &Policy::default(), &batch).await })
    });
    result.now_or_never().unwrap().unwrap().attempts
}

#[test]
fn the_tenth_failure_in_a_row_pauses_the_subscription() {
    let (_, mut subscription) = fill(&store(), 0);
    let ended = Timestamp::from_micros(1_773_500_999_000_000);
    let mut record = |status, ended| {
        let pauses = subscription.record_attempt(&log(1, status), ended);
        if pauses {
            subscription.pause(ended);
        }
        let recorded = (subscription.last_delivery_at, subscription.last_delivery_status);
        (pauses, subscription.consecutive_failures, recorded)
    };
    for count in 1..=9 {
        assert_eq!(record(500, ended), (false, count, (Some(ended), Some(500))));
    }
    assert_eq!(record(204, ended), (false, 0, (Some(ended), Some(204))));
    for count in 1..=9 {
        assert_eq!(record(0, ended).1, count);
    }
    // An attempt whose outcome is recorded late counts as a failure, but is not the last attempt.
    assert_eq!(record(-1, ended.minus(Duration::from_secs(5))), (true, 10, (Some(ended), Some(0))));
    // Failures of attempts that were in flight during the pause do not count.
    for status in [500, 0, -1] {
        assert_eq!(record(status, ended.next()), (false, 10, (Some(ended.next()), Some(status))));
    }
    assert_eq!(record(200, ended).1, 0);
    assert_eq!(record(500, ended).1, 0);
}

#[test]
fn a_subscription_is_paused_once_however_many_attempts_fail_at_once() {
    let store = store();
    let (tenant, subscription) = fill(&store, 15);
    let mut attempts = Vec::new();
    while attempts.len() < 15 {
        attempts.extend(run_step(&store, tenant, &[]));
    }
    let outcome = |Attempt { delivery, .. }: &Attempt| Outcome {
        log: log(delivery.attempts, 500),
        delivery: delivery.clone(),
        retry_after: None,
    };
    let outcomes: Vec<Outcome> = attempts.iter().map(outcome).collect();
    // The second time, as after an answer that was lost, nothing is left to store.
    for _ in 0..2 {
        assert!(run_step(&store, tenant, &outcomes).is_empty());
        let read = (&store as &dyn Store).read("look", move |tx| {
            Box::pin(async move {
                let deliveries = tx.list_deliveries(tenant, &DeliveryFilter::default()).await?;
                let stored = Repository::<WebhookSubscription>::get(tx, tenant, subscription.id).await?;
                let log = tx.audit_entries(tenant, Timestamp::from_micros(0), 100).await?;
                Ok((deliveries, stored, log))
            })
        });
        let (deliveries, stored, mut recorded) = read.now_or_never().unwrap().unwrap();
        recorded.retain(|entry| entry.action == "pause");
        assert_eq!(recorded.len(), 1);
        let Entry { actor, object_kind, object_id, before, after, .. } = recorded.remove(0);
        assert_eq!((&*actor, &*object_kind, object_id), ("sender", "webhook", subscription.id));
        let [before, after] = [before, after].map(|json| json.unwrap().get().parse::<serde_json::Value>().unwrap());
        let of = |state: &serde_json::Value| (state["enabled"].clone(), state["disabled_reason"].clone());
        assert_eq!(of(&before), (json!(true), json!(null)));
        assert_eq!(of(&after), (json!(false), json!("auto_paused")));
        assert_eq!((&before["consecutive_failures"], &after["consecutive_failures"]), (&json!(10), &json!(10)));
        assert!(before["paused_at"].is_null() && after["paused_at"] == json!(stored.as_ref().unwrap().paused_at));
        let stored = stored.unwrap();
        assert!(!stored.enabled && stored.paused_at.is_some());
        assert_eq!(stored.consecutive_failures, 10);
        assert_eq!(deliveries.len(), 15);
        for delivery in deliveries {
            assert_eq!((delivery.status, delivery.failures, delivery.lease), (DeliveryStatus::Held, 1, None));
        }
    }
}

/// An endpoint with a backlog that takes several steps to hold or to end.
struct Backlog {
    store: MemoryStore,
    clock: ManualClock,
    tenant: TenantId,
    id: Uuid,
}

impl Backlog {
    const SIZE: usize = 2 * SETTLE_AT_ONCE as usize + 2 * SETTLE_STEP as usize + 10;

    fn new() -> Self {
        let clock = clock();
        let store = MemoryStore::new(Env::new(clock.clone(), SeededEntropy::new(1)));
        let (tenant, subscription) = fill(&store, Self::SIZE);
        Self { store, clock, tenant, id: subscription.id }
    }

    fn write<T, F>(&self, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        let store: &dyn Store = &self.store;
        store.write("test", work).now_or_never().unwrap()
    }

    fn set_enabled(&self, enabled: bool) {
        let (tenant, id) = (self.tenant, self.id);
        let update = self.write(move |tx| {
            let input = WebhookUpdate::from_body(json!({ "enabled": enabled }).to_string().as_bytes());
            Box::pin(async move { crud::update::<WebhookSubscription>(tx, tenant, id, input?).await })
        });
        update.unwrap();
    }

    /// Emits an event, and returns its delivery.
    fn emit(&self) -> Delivery {
        let tenant = self.tenant;
        let emit = self.write(move |tx| {
            Box::pin(async move {
                let now = advance_clock(tx, tenant).await?;
                events::emit(tx, tenant, now, &[EventKind::JobCreated], &json!({ "id": 1 })).await?;
                let newest = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
                Ok(tx.list_deliveries(tenant, &newest).await?.remove(0))
            })
        });
        emit.unwrap()
    }

    fn stopped_at(&self) -> Option<Timestamp> {
        let (tenant, id) = (self.tenant, self.id);
        let get = self.write(move |tx| {
            Box::pin(async move { Ok(Repository::<WebhookSubscription>::get(tx, tenant, id).await?) })
        });
        get.unwrap().unwrap().stopped_at
    }

    fn count(&self, status: DeliveryStatus) -> usize {
        let (tenant, id) = (self.tenant, self.id);
        let filter = DeliveryFilter { subscription_id: Some(id), status: Some(status), ..DeliveryFilter::default() };
        let list = self.write(move |tx| {
            let filter = filter.clone();
            Box::pin(async move { Ok(tx.list_deliveries(tenant, &filter).await?) })
        });
        list.unwrap().len()
    }

    /// Lets the sender do what is due until nothing is, and returns the attempts that it claimed.
    fn settle(&self) -> Vec<Attempt> {
        let mut attempts = Vec::new();
        for _ in 0..60 {
            self.clock.advance(SETTLE_PAUSE);
            let due = self.write(|tx| Box::pin(poll(tx))).unwrap();
            if !due.endpoints.is_empty() || !due.replaying_tenants.is_empty() {
                attempts.extend(run_step(&self.store, self.tenant, &[]));
            }
        }
        attempts
    }

    fn earliest_due_at(&self) -> Option<Timestamp> {
        self.write(|tx| Box::pin(async move { Ok(tx.next_endpoint_due().await?) })).unwrap()
    }
}

#[test]
fn a_long_backlog_of_a_disabled_subscription_is_held_in_steps() {
    let backlog = Backlog::new();
    backlog.set_enabled(false);
    let step = SETTLE_AT_ONCE as usize;
    assert_eq!(backlog.count(DeliveryStatus::Held), step, "the change itself takes one step");
    assert!(backlog.stopped_at().is_some());
    assert!(backlog.settle().is_empty(), "nothing is sent");
    assert_eq!((backlog.count(DeliveryStatus::Held), backlog.stopped_at()), (Backlog::SIZE, None));
    assert_eq!(backlog.earliest_due_at(), None);
}

#[test]
fn what_was_pending_is_held_even_if_the_subscription_is_enabled_before_the_last_step() {
    let backlog = Backlog::new();
    backlog.set_enabled(false);
    backlog.set_enabled(true);
    let new = backlog.emit();
    let attempts = backlog.settle();
    let sent: Vec<Uuid> = attempts.iter().map(|attempt| attempt.delivery.id).collect();
    assert_eq!(sent, [new.id], "only what is new is sent");
    assert_eq!((backlog.count(DeliveryStatus::Held), backlog.stopped_at()), (Backlog::SIZE, None));
}

#[test]
fn replays_wait_until_the_backlog_is_held() {
    let backlog = Backlog::new();
    let (tenant, id, first) = (backlog.tenant, backlog.id, backlog.emit().id);
    backlog.set_enabled(false);
    backlog.set_enabled(true);
    let one = backlog.write(move |tx| Box::pin(replays::replay_delivery(tx, tenant, first)));
    assert!(matches!(one, Err(Error::NotAllowed(_))), "{one:?}");
    let since = Timestamp::from_micros(0);
    let input = ReplayCreate { subscription: id, since, until: None, statuses: Vec::new(), missed: false };
    let replay = backlog.write(move |tx| {
        let input = input.clone();
        Box::pin(replays::create(tx, tenant, input))
    });
    let replay = replay.unwrap().id;
    backlog.settle();
    let finished = backlog.write(move |tx| Box::pin(async move { Ok(tx.replay(tenant, replay).await?) }));
    let finished = finished.unwrap().unwrap();
    assert!(finished.finished_at.is_some() && !finished.broken_off(), "{finished:?}");
    assert_eq!(finished.replayed as usize, Backlog::SIZE + 1);
    assert_eq!(backlog.count(DeliveryStatus::Held), 0);
}

#[test]
fn a_delete_ends_what_is_pending_or_held() {
    let backlog = Backlog::new();
    // Half is held, half is pending, and one attempt is in flight.
    let attempt = run_step(&backlog.store, backlog.tenant, &[]).remove(0);
    backlog.set_enabled(false);
    let (tenant, id) = (backlog.tenant, backlog.id);
    let delete = backlog.write(move |tx| Box::pin(crud::delete::<WebhookSubscription>(tx, tenant, id)));
    assert_eq!(delete, Ok(()));
    let log = log(1, 500);
    run_step(&backlog.store, tenant, &[Outcome { delivery: attempt.delivery.clone(), log, retry_after: None }]);
    assert!(backlog.settle().is_empty());
    assert_eq!((backlog.count(DeliveryStatus::Failed), backlog.stopped_at()), (Backlog::SIZE, None));
    assert_eq!(backlog.earliest_due_at(), None);
    let all = backlog
        .write(move |tx| Box::pin(async move { Ok(tx.list_deliveries(tenant, &DeliveryFilter::default()).await?) }));
    for delivery in all.unwrap() {
        assert_eq!(delivery.failure_reason, Some(FailureReason::SubscriptionDeleted), "{delivery:?}");
    }
}

#[test]
fn a_pause_holds_a_long_backlog_in_steps_also_when_its_retries_are_hours_away() {
    let backlog = Backlog::new();
    let (tenant, id) = (backlog.tenant, backlog.id);
    let far = backlog.store.env().now().checked_add(Duration::from_secs(4 * 3_600));
    let attempt = run_step(&backlog.store, tenant, &[]).remove(0);
    let claimed = attempt.delivery.id;
    let wait = backlog.write(move |tx| {
        Box::pin(async move {
            for delivery in tx.list_deliveries(tenant, &DeliveryFilter::default()).await? {
                if delivery.id != claimed {
                    let lease = delivery.lease;
                    tx.update_delivery(&Delivery { next_attempt_at: far, lease: None, ..delivery }, lease).await?;
                }
            }
            let subscription = Repository::<WebhookSubscription>::get(tx, tenant, id).await?.unwrap();
            let failing = WebhookSubscription { consecutive_failures: 9, ..subscription };
            Ok(Repository::<WebhookSubscription>::update(tx, tenant, &failing).await?)
        })
    });
    assert_eq!(wait, Ok(()));
    run_step(&backlog.store, tenant, &[Outcome { delivery: attempt.delivery, log: log(1, 500), retry_after: None }]);
    assert!(backlog.stopped_at().is_some());
    assert!(backlog.settle().is_empty());
    assert_eq!((backlog.count(DeliveryStatus::Held), backlog.stopped_at()), (Backlog::SIZE, None));
}

#[test]
fn the_newest_attempts_of_a_day_keep_their_response_bodies() {
    let backlog = Backlog::new();
    let (tenant, id) = (backlog.tenant, backlog.id);
    let record = |attempts: Vec<Attempt>, body: &str| {
        let outcome = |Attempt { delivery, .. }: Attempt| Outcome {
            log: AttemptLog { response_body: Some(body.to_owned()), ..log(delivery.attempts, 204) },
            delivery,
            retry_after: None,
        };
        let outcomes: Vec<Outcome> = attempts.into_iter().map(outcome).collect();
        let batch = Arc::new(Batch::outcomes_only(tenant, outcomes));
        let run = backlog.write(move |tx| {
            let batch = Arc::clone(&batch);
            Box::pin(async move { run_batch(tx, &Policy::default(), &batch).await })
        });
        run.unwrap();
    };
    let claim = |count: usize| {
        let mut attempts = Vec::new();
        while attempts.len() < count {
            attempts.extend(run_step(&backlog.store, tenant, &[]));
        }
        attempts
    };
    let subscription = || {
        let get = backlog.write(move |tx| {
            Box::pin(async move { Ok(Repository::<WebhookSubscription>::get(tx, tenant, id).await?) })
        });
        get.unwrap().unwrap()
    };
    let body = |delivery: Uuid| {
        let log = backlog.write(move |tx| Box::pin(async move { Ok(tx.attempts(tenant, delivery).await?) }));
        log.unwrap().pop().unwrap().response_body
    };
    let first = claim(200);
    let ids: Vec<Uuid> = first.iter().map(|attempt| attempt.delivery.id).collect();
    record(first, "old");
    assert_eq!(subscription().responses_kept, 200);
    record(claim(4), "");
    assert_eq!(subscription().responses_kept, 200, "an empty body takes no room");

    // As if there had been many more.
    let kept = responses::KEPT + responses::STEP;
    let full = WebhookSubscription { responses_kept: kept, ..subscription() };
    let fill = backlog.write(move |tx| {
        let full = full.clone();
        Box::pin(async move { Ok(Repository::<WebhookSubscription>::update(tx, tenant, &full).await?) })
    });
    assert_eq!(fill, Ok(()));
    let next = claim(4);
    let new = next[3].delivery.id;
    record(next, "new");
    assert_eq!(subscription().responses_kept, kept - responses::STEP + 4);
    assert_eq!(body(ids[0]), None, "the oldest are gone");
    assert_eq!(body(ids[99]), None);
    assert_eq!(body(ids[100]).as_deref(), Some("old"));
    assert_eq!(body(new).as_deref(), Some("new"));

    // Another day has its own bodies.
    backlog.clock.advance(Duration::from_secs(24 * 3_600));
    record(claim(4), "tomorrow");
    assert_eq!(subscription().responses_kept, 4);
    assert_eq!(body(ids[100]).as_deref(), Some("old"));
}

#[test]
fn a_search_reads_a_bounded_number_of_deliveries() {
    let store = store();
    let (tenant, subscription) = fill(&store, 10_002);
    let find = |kind, until| {
        let filter =
            DeliveryFilter { subscription_id: Some(subscription.id), kind, until, ..DeliveryFilter::default() };
        let search = (&store as &dyn Store).read("search", move |tx| {
            let filter = filter.clone();
            Box::pin(async move { deliveries::search(tx, tenant, &filter).await })
        });
        search.now_or_never().unwrap().unwrap()
    };
    let newest = find(None, None);
    assert!(newest.deliveries.is_sorted_by_key(|delivery| std::cmp::Reverse(delivery.id)));
    let rest = find(None, newest.next_until);
    assert!(newest.next_until.is_some() && rest.next_until.is_none());
    let ids: BTreeSet<Uuid> = newest.deliveries.iter().chain(&rest.deliveries).map(|delivery| delivery.id).collect();
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
        let rotate = store.write("rotate", move |tx| Box::pin(subscriptions::rotate_secret(tx, tenant, id, overlap)));
        rotate.now_or_never().unwrap().unwrap()
    };
    let secrets = |subscription: &WebhookSubscription| subscription.signing_secrets(store.env().now());
    let hour = Duration::from_secs(3600);
    let second = rotate(hour);
    assert_eq!(secrets(&second), [second.secret.clone(), first.clone()]);
    let third = rotate(hour);
    assert_eq!(secrets(&third), [third.secret.clone(), first]);
    let finish = || {
        let finish = store.write("finish", move |tx| Box::pin(subscriptions::finish_rotation(tx, tenant, id)));
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
    delivery.id = Uuid::from_u128(0x019c_ece5_2687_7e62_a676_64fd_ffa1_d8fa);
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
}
