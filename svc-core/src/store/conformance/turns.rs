//! The turns of endpoints, bulk replays, and what wakes the sender (decisions §7).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::json;
use uuid::Uuid;

use super::Harness;
use super::deliveries::{call, held, plus};
use crate::error::Error;
use crate::resources::contacts::Contact;
use crate::values::EventKind;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::DeliveryStatus;
use crate::webhooks::replays::Replay;

pub(super) async fn turns_come_in_order(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let start = h.advance_clock(tenant).await;
    assert_eq!(call!(h.next_endpoint_due()), None);
    assert_eq!(call!(h.due_endpoints(plus(start, 99), 100)), []);
    let mut want = Vec::new();
    for (position, seconds) in [30, 10, 40, 20].into_iter().enumerate() {
        let tenant = if position % 2 == 0 { tenant } else { other };
        let (to, at) = (h.endpoint(tenant).await, plus(start, seconds));
        call!(h.schedule_endpoint(tenant, to, Some(at)));
        want.push((at, tenant, to));
    }
    want.sort();
    let names: Vec<(TenantId, Uuid)> = want.iter().map(|(_, tenant, to)| (*tenant, *to)).collect();
    for (count, (at, ..)) in want.iter().copied().enumerate() {
        assert_eq!(call!(h.due_endpoints(at, 100)), names[..=count], "at its very time");
        let before = at.minus(Duration::from_micros(1));
        assert_eq!(call!(h.due_endpoints(before, 100)), names[..count]);
    }
    assert_eq!(call!(h.due_endpoints(plus(start, 99), 2)), names[..2]);
    assert_eq!(call!(h.next_endpoint_due()), Some(want[0].0));

    // Set anew, it goes behind; taken away, it is gone, once and again.
    let (last, (_, tenant, to)) = (plus(start, 50), want[0]);
    call!(h.schedule_endpoint(tenant, to, Some(last)));
    assert_eq!(call!(h.due_endpoints(last, 100)), [&names[1..], &names[..1]].concat());
    assert_eq!(call!(h.next_endpoint_due()), Some(want[1].0));
    for _ in 0..2 {
        call!(h.schedule_endpoint(tenant, to, None));
        assert_eq!(call!(h.due_endpoints(last, 100)), names[1..]);
    }
}

pub(super) async fn a_turn_is_brought_forward_only(h: Harness) {
    let tenant = h.tenant().await;
    let to = h.endpoint(tenant).await;
    let start = h.advance_clock(tenant).await;
    for (seconds, want) in [(20, 20), (30, 20), (20, 20), (10, 10), (15, 10)] {
        call!(h.schedule_endpoint_by(tenant, to, plus(start, seconds)));
        assert_eq!(call!(h.next_endpoint_due()), Some(plus(start, want)));
    }
    call!(h.schedule_endpoint(tenant, to, None));
    // A new delivery does the same, unless nothing is due.
    let elsewhere = h.endpoint(tenant).await;
    h.added(tenant, elsewhere, held).await;
    assert_eq!(call!(h.next_endpoint_due()), None);
    for (seconds, want) in [(90, 90), (99, 90), (80, 80)] {
        let at = plus(start, seconds);
        h.added(tenant, to, |delivery| delivery.next_attempt_at = Some(at)).await;
        assert_eq!(call!(h.next_endpoint_due()), Some(plus(start, want)));
    }
    assert_eq!(call!(h.due_endpoints(plus(start, 99), 9)), [(tenant, to)], "one turn per endpoint");
}

/// Remembers that it was woken.
#[derive(Default)]
struct Bell(AtomicBool);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(super) async fn a_commit_wakes_the_sender(h: Harness) {
    let tenant = h.tenant().await;
    let to = h.endpoint(tenant).await;
    let released = || h.store.delivery_wakeup().notified().now_or_never().is_some();
    assert!(!released(), "nothing yet");

    let event = h.event_of(tenant, EventKind::JobCreated).await;
    let delivery = event.delivery_to(h.store.env().id(event.created_at), to, false);
    let doomed = delivery.clone();
    let failed = h.write(move |tx| {
        let doomed = doomed.clone();
        Box::pin(async move {
            tx.insert_delivery(&doomed).await?;
            Err::<(), _>(Error::NotFound)
        })
    });
    assert_eq!(failed.await, Err(Error::NotFound));
    assert!(!released(), "a rollback has nothing to send");
    assert_eq!((h.stored(&delivery).await, call!(h.next_endpoint_due())), (None, None));

    h.try_add(&delivery).await.unwrap();
    assert!(released() && !released(), "once");
    h.endpoint(tenant).await;
    call!(h.schedule_endpoint(tenant, to, None));
    let idle = h.advance_clock(tenant).await;
    assert!(!released(), "nothing to send in these");
    call!(h.schedule_endpoint_by(tenant, to, idle));
    assert!(released());

    // Whoever waits is woken, by a change of a record as well.
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    let mut waiting = Box::pin(h.store.delivery_wakeup().notified());
    assert_eq!(waiting.poll_unpin(&mut Context::from_waker(&waker)), Poll::Pending);
    assert!(!bell.0.load(Ordering::SeqCst));
    h.create::<Contact>(tenant, json!({ "email": "ada@example.com" })).await.unwrap();
    assert!(bell.0.load(Ordering::SeqCst));
    assert_eq!(waiting.poll_unpin(&mut Context::from_waker(&waker)), Poll::Ready(()));
}

/// A replay of nothing that is asked for at `now`.
fn bare(tenant_id: TenantId, subscription_id: Uuid, id: Uuid, now: Timestamp) -> Replay {
    let since = Timestamp::from_micros(0);
    Replay {
        id,
        tenant_id,
        subscription_id,
        since,
        until: now,
        statuses: vec![DeliveryStatus::Failed],
        missed: false,
        position: since,
        stepped_at: now,
        replayed: 0,
        created_at: now,
        finished_at: None,
    }
}

impl Harness {
    async fn add_replay(&self, replay: &Replay) {
        let replay = replay.clone();
        let write = self.write(move |tx| {
            let replay = replay.clone();
            Box::pin(async move { Ok(tx.insert_replay(&replay).await?) })
        });
        write.await.unwrap();
    }
}

pub(super) async fn replays_come_back(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let far = Timestamp::parse("9999-12-31T23:59:59.999999Z").unwrap();
    let mut rows = Vec::new();
    assert_eq!(call!(h.unfinished_replay(tenant)), None);
    assert_eq!(call!(h.tenants_with_replays(9)), []);
    for (tenant, statuses, missed) in [
        (tenant, vec![DeliveryStatus::Held], true),
        (other, DeliveryStatus::ALL.to_vec(), false),
        (tenant, vec![DeliveryStatus::Failed, DeliveryStatus::Held], false),
    ] {
        let (subscription_id, now) = (h.endpoint(tenant).await, h.advance_clock(tenant).await);
        let id = h.store.env().id(now);
        let row = Replay { statuses, missed, until: far, position: now, ..bare(tenant, subscription_id, id, now) };
        h.add_replay(&row).await;
        assert_eq!(call!(h.replay(tenant, id)).as_ref(), Some(&row));
        rows.push(row);
    }
    let first = rows[0].id;
    assert_eq!(call!(h.replay(other, first)), None, "another tenant's");
    assert_eq!(call!(h.replay(tenant, Uuid::nil())), None);
    assert!(h.store.delivery_wakeup().notified().now_or_never().is_some());
    // The one that waited longest first, whosever it is.
    rows.sort_by_key(|row| (row.stepped_at, row.id));
    let latest = rows[rows.len() - 1].stepped_at;
    for wait in 1..=3 {
        let names: Vec<TenantId> = rows.iter().map(|row| row.tenant_id).collect();
        assert_eq!(call!(h.tenants_with_replays(9)), names);
        assert_eq!(call!(h.tenants_with_replays(2)), names[..2]);
        let mut row = rows.remove(0);
        let whose = row.tenant_id;
        assert_eq!(call!(h.unfinished_replay(whose)).as_ref(), Some(&row));
        row.stepped_at = latest.checked_add(Duration::from_secs(wait)).unwrap();
        rows.push(row.clone());
        let write = h.write(move |tx| {
            let row = row.clone();
            Box::pin(async move { Ok(tx.update_replay(&row).await?) })
        });
        write.await.unwrap();
    }
    for position in 0..rows.len() {
        let row = &mut rows[position];
        let whose = row.tenant_id;
        assert_eq!(call!(h.unfinished_replay(whose)).as_ref(), Some(&*row));
        row.position = far;
        row.replayed = 1_000_000;
        row.finished_at = Some(far);
        let changed = row.clone();
        let write = h.write(move |tx| {
            let row = changed.clone();
            Box::pin(async move { Ok(tx.update_replay(&row).await?) })
        });
        write.await.unwrap();
        for row in &rows {
            let (tenant, id) = (row.tenant_id, row.id);
            assert_eq!(call!(h.replay(tenant, id)).as_ref(), Some(row), "and no other is touched");
        }
    }
    assert_eq!(call!(h.unfinished_replay(tenant)), None);
    assert_eq!(call!(h.tenants_with_replays(9)), []);
}

pub(super) async fn replays_of_a_tenant(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    assert_eq!(call!(h.replays(tenant, 9)), []);
    let endpoint = h.endpoint(tenant).await;
    let mut want = Vec::new();
    for count in 0..4 {
        let elsewhere = h.endpoint(other).await;
        let now = h.advance_clock(other).await;
        h.add_replay(&bare(other, elsewhere, h.store.env().id(now), now)).await;
        let now = h.advance_clock(tenant).await;
        let mut replay = bare(tenant, endpoint, h.store.env().id(now), now);
        // Finished or not, they are listed.
        replay.finished_at = (count % 2 == 0).then_some(now);
        h.add_replay(&replay).await;
        want.insert(0, replay);
    }
    for limit in [1, 3, 4, 9] {
        let limited = &want[..want.len().min(limit as usize)];
        assert_eq!(call!(h.replays(tenant, limit)), limited, "the newest first");
    }
    assert_eq!(call!(h.replays(other, 9)).len(), 4);
}
