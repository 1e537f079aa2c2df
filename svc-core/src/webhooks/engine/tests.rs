//! The engine, one step at a time.

use std::sync::Arc;

use futures_util::FutureExt as _;
use serde_json::json;

use super::*;
use crate::accounts::audit::Entry;
use crate::accounts::tenants::{self, TenantCreate};
use crate::env::{Env, ManualClock, SeededEntropy};
use crate::input::Input as _;
use crate::resources::crud;
use crate::store::memory::MemoryStore;
use crate::store::{DeliveryFilter, Store};
use crate::values::EventKind;
use crate::webhooks::events;
use crate::webhooks::subscriptions::WebhookCreate;

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

/// A tenant with one endpoint and this many events.
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

/// One look and the round that follows from it, by a sender that knows nothing of the others.
fn take_step(store: &dyn Store, tenant: TenantId, outcomes: &[Outcome]) -> Vec<Attempt> {
    let due_work = store.read("look", |tx| Box::pin(poll(tx))).now_or_never().unwrap().unwrap();
    let outcomes = BTreeMap::from([(tenant, outcomes.to_vec())]);
    let mut batches = InFlight::default().plan(&Policy::default(), &due_work, outcomes);
    let planned = Arc::new(batches.remove(0));
    let begun = store.write("round", move |tx| {
        let planned = Arc::clone(&planned);
        Box::pin(async move { run_batch(tx, &Policy::default(), &planned).await })
    });
    begun.now_or_never().unwrap().unwrap().attempts
}

#[test]
fn the_tenth_failure_in_a_row_pauses() {
    let (_, mut subscription) = fill(&store(), 0);
    let ended = Timestamp::from_micros(1_773_500_999_000_000);
    let mut note = |status, ended| {
        let pauses = subscription.record_attempt(&log(1, status), ended);
        if pauses {
            subscription.pause(ended);
        }
        let noted = (subscription.last_delivery_at, subscription.last_delivery_status);
        (pauses, subscription.consecutive_failures, noted)
    };
    for count in 1..=9 {
        assert_eq!(note(500, ended), (false, count, (Some(ended), Some(500))));
    }
    assert_eq!(note(204, ended), (false, 0, (Some(ended), Some(204))));
    for count in 1..=9 {
        assert_eq!(note(0, ended).1, count);
    }
    // An attempt that ended earlier, and is told of later, counts, but is not the last.
    assert_eq!(note(-1, ended.minus(Duration::from_secs(5))), (true, 10, (Some(ended), Some(0))));
    // What was in flight then adds nothing.
    for status in [500, 0, -1] {
        assert_eq!(note(status, ended.next()), (false, 10, (Some(ended.next()), Some(status))));
    }
    assert_eq!(note(200, ended).1, 0);
    assert_eq!(note(500, ended).1, 0);
}

#[test]
fn many_that_fail_at_once_pause_once() {
    let store = store();
    let (tenant, subscription) = fill(&store, 15);
    let mut attempts = Vec::new();
    while attempts.len() < 15 {
        attempts.extend(take_step(&store, tenant, &[]));
    }
    let outcome = |Attempt { delivery, .. }: &Attempt| Outcome {
        log: log(delivery.attempts, 500),
        delivery: delivery.clone(),
        retry_after: None,
    };
    let outcomes: Vec<Outcome> = attempts.iter().map(outcome).collect();
    // The second time, as after an answer that was lost, nothing is left to store.
    for _ in 0..2 {
        assert!(take_step(&store, tenant, &outcomes).is_empty());
        let read = (&store as &dyn Store).read("look", move |tx| {
            Box::pin(async move {
                let deliveries = tx.list_deliveries(tenant, &DeliveryFilter::default()).await?;
                let stored = Repository::<WebhookSubscription>::get(tx, tenant, subscription.id).await?;
                let log = tx.audit_entries(tenant, Timestamp::from_micros(0), 100).await?;
                Ok((deliveries, stored, log))
            })
        });
        let (deliveries, stored, mut noted) = read.now_or_never().unwrap().unwrap();
        noted.retain(|entry| entry.action == "pause");
        assert_eq!(noted.len(), 1);
        let Entry { actor, object_kind, object_id, before, after, .. } = noted.remove(0);
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

#[test]
fn an_attempt_names_and_signs_its_delivery() {
    let store = store();
    let (tenant, subscription) = fill(&store, 1);
    let attempt = take_step(&store, tenant, &[]).remove(0);
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
        ("x-svc-signature", signatures::webhook_signature(&new, &body)),
        ("x-svc-delivery", "019cece5-2687-7e62-a676-64fdffa1d8fa".to_owned()),
        ("x-svc-attempt", "3".to_owned()),
        ("webhook-signature", format!("{} {}", standard(&new), standard(&old))),
        ("webhook-id", "019cece5-2687-7e62-a676-64fdffa1d8fa".to_owned()),
        ("webhook-timestamp", "1773500966".to_owned()),
    ];
    assert_eq!(attempt.headers(now, &body), want);
}
