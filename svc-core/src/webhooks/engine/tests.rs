//! Tests of single steps of the engine, against the in-memory store. The simulation in `tests/simulation` covers the rest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
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
use crate::webhooks::deliveries::{AttemptLog, DeliveryStatus};
use crate::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};
use crate::webhooks::{events, signatures, subscriptions};

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

fn store() -> MemoryStore {
    let clock = ManualClock::at(Timestamp::from_micros(1_773_500_966_535_897));
    MemoryStore::new(Env::new(clock, SeededEntropy::new(1)))
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
