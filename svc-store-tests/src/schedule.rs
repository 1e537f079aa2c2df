//! The schedule of endpoints, and the wakeup of the sender.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt as _;
use serde_json::json;
use svc_core::error::Error;
use svc_core::resources::contacts::Contact;
use svc_core::store::{Endpoint, MAX_EXCEPTED_TENANTS};
use svc_core::values::EventKind;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::subscriptions::SubscriptionId;
use uuid::Uuid;

use crate::Harness;
use crate::deliveries::{call, hold, plus};

pub(super) async fn endpoints_are_returned_in_order_of_due_time(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let start = h.advance_clock(tenant).await;
    assert_eq!(call!(h.next_endpoint_due()), None);
    assert_eq!(call!(h.due_endpoints(plus(start, 99), &[], 100)), []);
    let mut want = Vec::new();
    for (position, seconds) in [30, 10, 40, 20].into_iter().enumerate() {
        let tenant = if position % 2 == 0 { tenant } else { other };
        let (to, at) = (h.endpoint(tenant).await, plus(start, seconds));
        call!(h.schedule_endpoint(tenant, to, Some(at)));
        want.push((at, tenant, to));
    }
    want.sort();
    let endpoint =
        |(_, tenant, to): &(Timestamp, TenantId, SubscriptionId)| Endpoint { tenant_id: *tenant, subscription_id: *to };
    let names: Vec<Endpoint> = want.iter().map(endpoint).collect();
    for (count, (at, ..)) in want.iter().copied().enumerate() {
        assert_eq!(call!(h.due_endpoints(at, &[], 100)), names[..=count], "it is due at its time");
        let before = at.minus(Duration::from_micros(1));
        assert_eq!(call!(h.due_endpoints(before, &[], 100)), names[..count]);
    }
    assert_eq!(call!(h.due_endpoints(plus(start, 99), &[], 2)), names[..2]);
    assert_eq!(call!(h.next_endpoint_due()), Some(want[0].0));

    // Without the endpoints of a tenant, and without those of as many tenants as can be left out.
    for left_out in [vec![tenant], [vec![tenant], vec![TenantId(Uuid::max()); MAX_EXCEPTED_TENANTS - 1]].concat()] {
        let want: Vec<Endpoint> = names.iter().copied().filter(|endpoint| endpoint.tenant_id == other).collect();
        let read = h.write((start, left_out), async |tx, (start, left_out)| {
            Ok(tx.due_endpoints(plus(*start, 99), left_out, 100).await?)
        });
        assert_eq!(read.await.unwrap(), want);
    }

    // All of them, a few at a time, whenever they are due.
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = call!(h.scheduled_endpoints(after, 3));
        let Some(last) = page.last() else { break };
        after = Some(*last);
        all.extend(page);
    }
    let mut sorted = names.clone();
    sorted.sort();
    assert_eq!(all, sorted);

    // An endpoint that is rescheduled later moves back. An endpoint can be removed twice.
    let (last, (_, tenant, to)) = (plus(start, 50), want[0]);
    call!(h.schedule_endpoint(tenant, to, Some(last)));
    assert_eq!(call!(h.due_endpoints(last, &[], 100)), [&names[1..], &names[..1]].concat());
    assert_eq!(call!(h.next_endpoint_due()), Some(want[1].0));
    for _ in 0..2 {
        call!(h.schedule_endpoint(tenant, to, None));
        assert_eq!(call!(h.due_endpoints(last, &[], 100)), names[1..]);
    }
}

pub(super) async fn a_transaction_reschedules_what_it_has_scheduled(h: Harness) {
    let tenant = h.tenant().await;
    let to = h.endpoint(tenant).await;
    let start = h.advance_clock(tenant).await;
    // What is due by a time after each of these, in one transaction that has locked the tenant.
    let steps =
        [(Some(20), false), (Some(30), true), (Some(10), true), (Some(40), false), (Some(30), true), (None, false)];
    let due_at = h.write((tenant, steps, start, to), async |tx, &(tenant, steps, start, to)| {
        tx.lock_tenant(tenant).await?;
        let mut due_at = Vec::new();
        for (seconds, brings_forward) in steps.into_iter().chain([(Some(50), true)]) {
            match seconds.map(|seconds| plus(start, seconds)) {
                Some(at) if brings_forward => tx.schedule_endpoint_by(tenant, to, at).await?,
                at => tx.schedule_endpoint(tenant, to, at).await?,
            }
            due_at.push(tx.next_endpoint_due().await?);
        }
        Ok(due_at)
    });
    let expected = [Some(20), Some(20), Some(10), Some(40), Some(30), None, Some(50)];
    assert_eq!(due_at.await.unwrap(), expected.map(|seconds| seconds.map(|seconds| plus(start, seconds))));
}

pub(super) async fn schedule_endpoint_by_never_delays(h: Harness) {
    let tenant = h.tenant().await;
    let to = h.endpoint(tenant).await;
    let start = h.advance_clock(tenant).await;
    for (seconds, want) in [(20, 20), (30, 20), (20, 20), (10, 10), (15, 10)] {
        call!(h.schedule_endpoint_by(tenant, to, plus(start, seconds)));
        assert_eq!(call!(h.next_endpoint_due()), Some(plus(start, want)));
    }
    call!(h.schedule_endpoint(tenant, to, None));
    // Inserting a pending delivery schedules its endpoint in the same way.
    let elsewhere = h.endpoint(tenant).await;
    h.insert_delivery(tenant, elsewhere, hold).await;
    assert_eq!(call!(h.next_endpoint_due()), None);
    for (seconds, want) in [(90, 90), (99, 90), (80, 80)] {
        let at = plus(start, seconds);
        h.insert_delivery(tenant, to, |delivery| delivery.next_attempt_at = Some(at)).await;
        assert_eq!(call!(h.next_endpoint_due()), Some(plus(start, want)));
    }
    assert_eq!(
        call!(h.due_endpoints(plus(start, 99), &[], 9)),
        [Endpoint { tenant_id: tenant, subscription_id: to }],
        "an endpoint is scheduled once"
    );
}

/// A waker that records that it was called.
#[derive(Default)]
struct WakeFlag(AtomicBool);

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

pub(super) async fn a_commit_wakes_the_sender(h: Harness) {
    let tenant = h.tenant().await;
    let to = h.endpoint(tenant).await;
    let is_woken = || h.store.delivery_wakeup().notified().now_or_never().is_some();
    assert!(!is_woken(), "there is no delivery yet");

    let event = h.event_of(tenant, EventKind::JobCreated).await;
    let delivery = event.delivery_to(h.store.env().id(event.created_at), to, false);
    let inserted = delivery.clone();
    let failed = h.write(inserted, async |tx, inserted| {
        tx.insert_delivery(inserted).await?;
        Err::<(), _>(Error::NotFound)
    });
    assert_eq!(failed.await, Err(Error::NotFound));
    assert!(!is_woken(), "a rollback wakes nobody");
    assert_eq!((h.stored(&delivery).await, call!(h.next_endpoint_due())), (None, None));

    h.try_insert_delivery(&delivery).await.unwrap();
    assert!(is_woken() && !is_woken(), "a commit wakes once");
    h.endpoint(tenant).await;
    call!(h.schedule_endpoint(tenant, to, None));
    let now = h.advance_clock(tenant).await;
    assert!(!is_woken(), "these commits add no due delivery");
    call!(h.schedule_endpoint_by(tenant, to, now));
    assert!(is_woken());

    // A waiting task is woken, also by a change of a record.
    let wake_flag = Arc::new(WakeFlag::default());
    let waker = Waker::from(Arc::clone(&wake_flag));
    let mut waiting = Box::pin(h.store.delivery_wakeup().notified());
    assert_eq!(waiting.poll_unpin(&mut Context::from_waker(&waker)), Poll::Pending);
    assert!(!wake_flag.0.load(Ordering::SeqCst));
    h.create::<Contact>(tenant, json!({ "email": "ada@example.com" })).await.unwrap();
    assert!(wake_flag.0.load(Ordering::SeqCst));
    assert_eq!(waiting.poll_unpin(&mut Context::from_waker(&waker)), Poll::Ready(()));
}
