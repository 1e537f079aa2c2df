//! Deletion of expired data, and of nothing else.

use std::time::Duration;

use serde_json::json;
use svc_core::env::first_id_at;
use svc_core::error::Error;
use svc_core::store::DeliveryFilter;
use svc_core::values::{EventKind, Id, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryStatus};
use svc_core::webhooks::events::EventId;
use svc_core::webhooks::replays::{self, ReplayCreate};
use svc_core::webhooks::retention::{self, DeletedCounts, ExpiredKind, IdRange, Positions};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};
use uuid::Uuid;

use crate::Harness;

const DAY: Duration = Duration::from_secs(24 * 3600);

impl Harness {
    async fn tenant_with_subscription(&self) -> (TenantId, SubscriptionId) {
        let tenant = self.tenant().await;
        let body = json!({ "url": "https://example.com", "events": ["contact.created"] });
        (tenant, self.create::<WebhookSubscription>(tenant, body).await.unwrap().id)
    }

    /// Creates a contact. The delivery of its event gets this status and this number of attempts.
    async fn delivered(&self, tenant: TenantId, email: &str, state: DeliveryStatus, attempts: u32) -> Delivery {
        self.contact(tenant, email).await;
        self.write((tenant, attempts, state), async |tx, &(tenant, attempts, state)| {
            let newest = DeliveryFilter { limit: 1, ..DeliveryFilter::default() };
            let mut delivery = tx.list_deliveries(tenant, &newest).await?.remove(0);
            for attempt in 1..=attempts {
                let log = AttemptLog {
                    attempt,
                    started_at: delivery.created_at,
                    duration_ms: 1,
                    status: 200,
                    error: None,
                    cause: None,
                    response_body: None,
                    response_truncated: false,
                    remote_addr: None,
                };
                tx.insert_attempt(tenant, delivery.id, &log).await?;
            }
            delivery.status = state;
            delivery.attempts = attempts;
            delivery.next_attempt_at = delivery.next_attempt_at.filter(|_| state == DeliveryStatus::Pending);
            tx.update_delivery(&delivery, None).await?;
            Ok(delivery)
        })
        .await
        .unwrap()
    }

    async fn remaining(&self, tenant: TenantId) -> (Vec<EventId>, Vec<DeliveryId>) {
        let events = self.events(tenant).await.into_iter().map(|event| event.id).collect();
        let deliveries = self.read(tenant, async |tx, &tenant| {
            let all = DeliveryFilter { oldest_first: true, ..DeliveryFilter::default() };
            Ok(tx.list_deliveries(tenant, &all).await?)
        });
        (events, deliveries.await.unwrap().into_iter().map(|delivery| delivery.id).collect())
    }

    async fn sweep(&self, before: Timestamp, dry_run: bool) -> DeletedCounts {
        let mut positions = Positions::new();
        retention::sweep(&*self.store, &mut positions, before, dry_run, || async {}).await.unwrap()
    }

    async fn delete_expired(&self, tenant: TenantId, kind: ExpiredKind, limit: u32) -> Result<u64, Error> {
        let range = IdRange { first: Uuid::nil(), end: Uuid::max() };
        self.write((tenant, kind, range, limit), async |tx, &(tenant, kind, range, limit)| {
            Ok(tx.delete_expired(tenant, kind, range, limit).await?)
        })
        .await
    }
}

pub(super) async fn expired_deliveries_that_are_not_pending_are_deleted(h: Harness) {
    let (tenant, _) = h.tenant_with_subscription().await;
    h.delivered(tenant, "a@example.com", DeliveryStatus::Succeeded, 1).await;
    h.delivered(tenant, "b@example.com", DeliveryStatus::Failed, 6).await;
    h.delivered(tenant, "c@example.com", DeliveryStatus::Held, 2).await;
    let pending = h.delivered(tenant, "d@example.com", DeliveryStatus::Pending, 3).await;
    // An event without deliveries.
    h.create::<svc_core::resources::jobs::Job>(tenant, json!({ "title": "x" })).await.unwrap();
    h.clock.advance(DAY * 30);
    let now = h.store.env().now();
    let recent = h.delivered(tenant, "e@example.com", DeliveryStatus::Succeeded, 1).await;
    let want = DeletedCounts { attempts: 9, deliveries: 3, events: 4, replays: 0, partitions: 0 };
    assert_eq!(h.sweep(now, true).await, want, "counted");
    assert_eq!(h.sweep(now, true).await, want, "counting changes nothing");
    assert_eq!(h.sweep(now, false).await, want);
    assert_eq!(h.sweep(now, false).await, DeletedCounts::default());
    let remaining = h.remaining(tenant).await;
    assert_eq!(remaining.0, [pending.event_id, recent.event_id]);
    assert_eq!(remaining.1, [pending.id, recent.id]);
    let log =
        h.read((tenant, pending.id), async |tx, &(tenant, id)| Ok(tx.attempts(tenant, id, u32::MAX, 10).await?.len()));
    assert_eq!(log.await, Ok(3));
}

pub(super) async fn a_step_has_a_limit(h: Harness) {
    let (tenant, _) = h.tenant_with_subscription().await;
    for (at, email) in ["a@example.com", "b@example.com", "c@example.com"].into_iter().enumerate() {
        h.delivered(tenant, email, DeliveryStatus::Succeeded, 2 + u32::try_from(at).unwrap()).await;
    }
    for (kind, limit, want) in [
        (ExpiredKind::Attempts, 4, [4, 4, 1, 0]),
        (ExpiredKind::Event, 4, [0, 0, 0, 0]),
        (ExpiredKind::Deliveries, 2, [2, 1, 0, 0]),
        (ExpiredKind::Event, 1, [1, 1, 1, 0]),
    ] {
        for want in want {
            assert_eq!(h.delete_expired(tenant, kind, limit).await, Ok(want), "{kind:?}");
        }
    }
    assert_eq!(h.remaining(tenant).await, (Vec::new(), Vec::new()));
}

/// A store may keep what was written at different times apart, and drop it at once.
pub(super) async fn what_expired_is_gone_whenever_it_was_written(h: Harness) {
    let retention = DAY * 30;
    let (tenant, _) = h.tenant_with_subscription().await;
    let before_the_store = h.delivered(tenant, "a@example.com", DeliveryStatus::Pending, 1).await;
    // Long after the store was made, and after a time without sweeps.
    h.clock.advance(DAY * 36_500);
    h.sweep(h.store.env().now().minus(retention), false).await;
    let mut kept = vec![before_the_store];
    for day in 0..40 {
        for (status, attempts) in
            [(DeliveryStatus::Succeeded, 1), (DeliveryStatus::Held, 2), (DeliveryStatus::Pending, 3)]
        {
            let delivery = h.delivered(tenant, &format!("{day}-{attempts}@example.com"), status, attempts).await;
            kept.extend((day >= 36 || status == DeliveryStatus::Pending).then_some(delivery));
        }
        h.clock.advance(DAY);
        if day % 3 == 0 {
            h.sweep(h.store.env().now().minus(retention), false).await;
        }
    }
    // What ended less than a sixth of the retention after its end may still be there.
    h.clock.advance(DAY * 26 + DAY * 6);
    let sweep_all =
        async || while h.sweep(h.store.env().now().minus(retention), false).await != DeletedCounts::default() {};
    sweep_all().await;
    let ids = |kept: &[Delivery]| {
        let pending = kept.iter().filter(|delivery| delivery.status == DeliveryStatus::Pending);
        pending.map(|delivery| (delivery.event_id, delivery.id)).unzip::<_, _, Vec<_>, Vec<_>>()
    };
    let remaining = h.remaining(tenant).await;
    let (events, deliveries) = ids(&kept);
    assert!(events.iter().all(|event| remaining.0.contains(event)), "an event of a pending delivery is gone");
    assert!(deliveries.iter().all(|delivery| remaining.1.contains(delivery)), "a pending delivery is gone");
    assert!(remaining.1.iter().all(|delivery| kept.iter().any(|kept| kept.id == *delivery)), "something is left");
    for delivery in kept.iter().filter(|delivery| delivery.status == DeliveryStatus::Pending) {
        let key = (tenant, delivery.id);
        let log = h.read(key, async |tx, &(tenant, id)| Ok(tx.attempts(tenant, id, u32::MAX, 10).await?.len()));
        assert_eq!(log.await, Ok(delivery.attempts as usize), "the attempts of a pending delivery");
        h.write(delivery.clone(), async |tx, delivery| {
            let mut ended = delivery.clone();
            (ended.status, ended.next_attempt_at) = (DeliveryStatus::Succeeded, None);
            Ok(tx.update_delivery(&ended, delivery.lease).await?)
        })
        .await
        .unwrap();
    }
    h.clock.advance(DAY * 60);
    sweep_all().await;
    assert_eq!(h.remaining(tenant).await, (Vec::new(), Vec::new()));
}

pub(super) async fn many_rows_take_many_small_steps(h: Harness) {
    let (tenant, _) = h.tenant_with_subscription().await;
    for number in 0..130 {
        h.delivered(tenant, &format!("c{number}@example.com"), DeliveryStatus::Failed, 6).await;
    }
    h.clock.advance(DAY);
    let now = h.store.env().now();
    let (mut after, mut rows) = (Some(Uuid::nil()), Vec::new());
    while let Some(from) = after {
        let step = h
            .write((tenant, from, now), async |tx, &(tenant, from, now)| retention::step(tx, tenant, from, now).await)
            .await
            .unwrap();
        after = step.next;
        rows.push(step.dropped.rows());
    }
    assert!(rows.iter().all(|rows| *rows <= u64::from(retention::STEP)) && rows.len() >= 3, "{rows:?}");
    assert_eq!(rows.iter().sum::<u64>(), 130 * 8);
    assert_eq!(h.remaining(tenant).await, (Vec::new(), Vec::new()));
}

pub(super) async fn deliveries_of_one_event_take_few_steps(h: Harness) {
    const DELIVERIES: u32 = 1_010;
    let (tenant, subscription) = h.tenant_with_subscription().await;
    h.delivered(tenant, "a@example.com", DeliveryStatus::Failed, 1).await;
    let event = h.event_of(tenant, EventKind::JobCreated).await;
    let ended = |delivery: Delivery| Delivery { status: DeliveryStatus::Succeeded, next_attempt_at: None, ..delivery };
    let delivery = |number| {
        let delivery = event.delivery_to(h.store.env().id(event.created_at), subscription, false);
        if number % 100 == 0 { delivery } else { ended(delivery) }
    };
    let deliveries: Vec<Delivery> = (0..DELIVERIES).map(delivery).collect();
    let mut pending: Vec<Delivery> =
        deliveries.iter().filter(|delivery| delivery.status == DeliveryStatus::Pending).cloned().collect();
    pending.sort_by_key(|delivery| delivery.id);
    let write = h.write(deliveries, async |tx, deliveries| Ok(tx.insert_deliveries(deliveries).await?));
    write.await.unwrap();
    h.delivered(tenant, "b@example.com", DeliveryStatus::Failed, 1).await;
    h.clock.advance(DAY);
    let now = h.store.env().now();
    let want = DeletedCounts { attempts: 2, deliveries: 2 + 999, events: 2, replays: 0, partitions: 0 };
    assert_eq!(h.sweep(now, true).await, want, "counted");

    let steps = async || {
        let (mut from, mut steps) = (Some(Uuid::nil()), Vec::new());
        while let Some(position) = from {
            let step = h
                .write((tenant, position, now), async |tx, &(tenant, position, now)| {
                    retention::step(tx, tenant, position, now).await
                })
                .await
                .unwrap();
            steps.push(step.dropped.rows());
            from = step.next;
        }
        steps
    };
    let rows = steps().await;
    assert_eq!(rows.iter().sum::<u64>(), want.rows());
    assert!(rows.len() <= 8, "a step covers 200 deliveries: {rows:?}");
    assert_eq!(h.remaining(tenant).await, (vec![event.id], pending.iter().map(|delivery| delivery.id).collect()));

    // The event goes with the last of its deliveries.
    let ended: Vec<Delivery> = pending.into_iter().map(ended).collect();
    let write = h.write(ended, async |tx, ended| {
        for delivery in ended {
            tx.update_delivery(delivery, None).await?;
        }
        Ok(())
    });
    write.await.unwrap();
    assert_eq!(steps().await, [12, 0]);
    assert_eq!(h.remaining(tenant).await, (Vec::new(), Vec::new()));
}

pub(super) async fn a_range_has_two_bounds(h: Harness) {
    let (tenant, _) = h.tenant_with_subscription().await;
    let mut events = Vec::new();
    for email in ["a@example.com", "b@example.com", "c@example.com", "d@example.com"] {
        events.push(h.delivered(tenant, email, DeliveryStatus::Failed, 1).await.event_id);
    }
    let times: Vec<Timestamp> = h.events(tenant).await.iter().map(|event| event.created_at).collect();
    let last = |first: EventId, end: EventId, limit: u32| {
        let range = IdRange { first: first.uuid(), end: end.uuid() };
        h.read((tenant, range, limit), async |tx, &(tenant, range, limit)| {
            Ok(tx.last_event(tenant, range, limit).await?)
        })
    };
    assert_eq!(last(Id::nil(), events[3], 10).await, Ok(Some(events[2].uuid())), "strictly before the end");
    assert_eq!(last(Id::nil(), events[3], 2).await, Ok(Some(events[1].uuid())));
    assert_eq!(last(events[2], events[3], 2).await, Ok(Some(events[2].uuid())), "from the first one on");
    assert_eq!(last(events[2], events[2], 2).await, Ok(None));
    let deliveries = h.remaining(tenant).await.1;
    let nth = |first: DeliveryId, end: DeliveryId, n: u32| {
        let range = IdRange { first: first.uuid(), end: end.uuid() };
        h.read((tenant, range, n), async |tx, &(tenant, range, n)| Ok(tx.nth_delivery(tenant, range, n).await?))
    };
    assert_eq!(nth(Id::nil(), Id::max(), 0).await, Ok(Some(deliveries[0].uuid())));
    assert_eq!(nth(deliveries[1], deliveries[3], 1).await, Ok(Some(deliveries[2].uuid())));
    assert_eq!(nth(deliveries[1], deliveries[3], 2).await, Ok(None), "strictly before the end");
    let range = IdRange { first: first_id_at(times[1]), end: first_id_at(times[3]) };
    let deleted = h.write((tenant, range), async |tx, &(tenant, range)| {
        let mut deleted = Vec::new();
        for kind in [ExpiredKind::Attempts, ExpiredKind::Deliveries, ExpiredKind::Event] {
            let counted = tx.count_expired(tenant, kind, range).await?;
            deleted.push((counted, tx.delete_expired(tenant, kind, range, 100).await?));
        }
        Ok(deleted)
    });
    assert_eq!(deleted.await, Ok(vec![(2, 2); 3]));
    assert_eq!(h.remaining(tenant).await.0, [events[0], events[3]]);
}

pub(super) async fn a_step_deletes_rows_of_one_tenant(h: Harness) {
    let ((tenant, _), (other, _)) = (h.tenant_with_subscription().await, h.tenant_with_subscription().await);
    for tenant in [tenant, other] {
        h.delivered(tenant, "a@example.com", DeliveryStatus::Succeeded, 1).await;
    }
    let before = h.remaining(other).await;
    h.clock.advance(DAY);
    let now = h.store.env().now();
    let step = h
        .write((tenant, now), async |tx, &(tenant, now)| retention::step(tx, tenant, Uuid::nil(), now).await)
        .await
        .unwrap();
    assert_eq!(step.dropped, DeletedCounts { attempts: 1, deliveries: 1, events: 1, replays: 0, partitions: 0 });
    assert_eq!((h.remaining(tenant).await, h.remaining(other).await), ((Vec::new(), Vec::new()), before));
    let mut positions = Positions::new();
    let swept = retention::sweep(&*h.store, &mut positions, now, false, || async {}).await.unwrap();
    assert_eq!(swept.rows(), 3);
    assert!(positions.contains_key(&other) && !positions.contains_key(&tenant));
}

pub(super) async fn finished_replays_are_deleted(h: Harness) {
    let (tenant, subscription) = h.tenant_with_subscription().await;
    let since = Timestamp::from_micros(0);
    let replay = ReplayCreate { subscription, since, until: None, statuses: Vec::new(), missed: true };
    let mut ids = Vec::new();
    for _ in 0..3 {
        let create = h.write((tenant, replay.clone()), async |tx, (tenant, replay)| {
            replays::create(tx, *tenant, replay.clone()).await
        });
        ids.push(create.await.unwrap().id);
    }
    for _ in 0..2 {
        h.write(tenant, async |tx, &tenant| replays::step(tx, tenant).await).await.unwrap();
    }
    let at = h.store.env().now();
    assert_eq!(h.sweep(at, false).await.replays, 0, "strictly before");
    h.clock.advance(DAY);
    let now = h.store.env().now();
    assert_eq!(h.sweep(now, true).await.replays, 2);
    let one =
        h.write((tenant, now), async |tx, &(tenant, now)| Ok(tx.delete_finished_replays(tenant, now, 1).await?)).await;
    assert_eq!(one, Ok(1));
    assert_eq!(h.sweep(now, false).await.replays, 1);
    let remaining = h.read(tenant, async |tx, &tenant| Ok(tx.replays(tenant, 10).await?)).await.unwrap();
    assert_eq!(remaining.iter().map(|replay| replay.id).collect::<Vec<_>>(), [ids[2]], "the unfinished one");
}

pub(super) async fn expired_request_records_are_counted(h: Harness) {
    let tenant = h.tenant().await;
    let now = h.store.env().now();
    let counted = h.write((now, tenant), async |tx, &(now, tenant)| {
        for (key, at) in [("a", now), ("b", now.next())] {
            let response = svc_core::accounts::idempotency::StoredResponse {
                fingerprint: [0; 32],
                status: 201,
                location: None,
                etag: None,
                body: Vec::new(),
                created_at: at,
            };
            tx.store_response(tenant, key, &response).await?;
            tx.claim_signature(tenant.0.into(), &[key.as_bytes()[0]; 32], at).await?;
        }
        let counts = [tx.count_request_records(now, now).await?, tx.count_request_records(now.next(), now).await?];
        let all = now.next().next();
        Ok((counts, tx.count_request_records(all, all).await?, tx.delete_request_records(all, all, 10).await?))
    });
    assert_eq!(counted.await, Ok(([0, 1], 4, 4)));
}
