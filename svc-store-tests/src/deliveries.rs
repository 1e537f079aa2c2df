//! Deliveries.

use std::time::Duration;

use serde_json::{json, value::to_raw_value};
use svc_core::error::{Error, StoreError};
use svc_core::resources::NewRecord;
use svc_core::store::{DeliveryFilter, DueDelivery, Endpoint, WaitingFor};
use svc_core::values::EventKind;
use svc_core::values::{Id, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryStatus, FailureReason};
use svc_core::webhooks::events::Event;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};
use uuid::Uuid;

use crate::Harness;
use crate::samples::{Links, Sample, far};

/// Calls a method of the interface in its own transaction. The arguments are copied.
macro_rules! call {
    ($h:ident.$method:ident()) => {
        $h.write((), async |tx, ()| Ok(tx.$method().await?)).await.unwrap()
    };
    ($h:ident.$method:ident($a:expr)) => {
        $h.write($a, async |tx, &a| Ok(tx.$method(a).await?)).await.unwrap()
    };
    ($h:ident.$method:ident($a:expr, $b:expr)) => {
        $h.write(($a, $b), async |tx, &(a, b)| Ok(tx.$method(a, b).await?)).await.unwrap()
    };
    ($h:ident.$method:ident($a:expr, $b:expr, $c:expr)) => {
        $h.write(($a, $b, $c), async |tx, &(a, b, c)| Ok(tx.$method(a, b, c).await?)).await.unwrap()
    };
    ($h:ident.$method:ident($a:expr, $b:expr, $c:expr, $d:expr)) => {
        $h.write(($a, $b, $c, $d), async |tx, &(a, b, c, d)| Ok(tx.$method(a, b, c, d).await?)).await.unwrap()
    };
}

pub(super) use call;

impl Harness {
    pub(super) async fn endpoint(&self, tenant: TenantId) -> SubscriptionId {
        self.insert(tenant, |new| WebhookSubscription { enabled: true, ..WebhookSubscription::bare(new) }).await.id
    }

    pub(super) async fn event_of(&self, tenant: TenantId, kind: EventKind) -> Event {
        let created_at = self.advance_clock(tenant).await;
        let data = to_raw_value(&json!({ "id": 1 })).unwrap();
        let event =
            Event { id: self.store.env().id(created_at), tenant_id: tenant, kind, data, created_at, only_for: None };
        self.insert_event(&event).await;
        event
    }

    async fn insert_event(&self, event: &Event) {
        let event = event.clone();
        let write = self.write(event, async |tx, event| Ok(tx.insert_event(event).await?));
        write.await.unwrap();
    }

    pub(super) async fn try_insert_delivery(&self, delivery: &Delivery) -> Result<(), Error> {
        let delivery = delivery.clone();
        let write = self.write(delivery, async |tx, delivery| Ok(tx.insert_delivery(delivery).await?));
        write.await
    }

    /// Inserts a pending delivery of a new event, after applying `change` to it.
    pub(super) async fn insert_delivery(
        &self,
        tenant: TenantId,
        to: SubscriptionId,
        change: impl FnOnce(&mut Delivery),
    ) -> Delivery {
        let event = self.event_of(tenant, EventKind::JobCreated).await;
        let mut delivery = event.delivery_to(self.store.env().id(event.created_at), to, false);
        change(&mut delivery);
        self.try_insert_delivery(&delivery).await.unwrap();
        delivery
    }

    pub(super) async fn stored(&self, delivery: &Delivery) -> Option<Delivery> {
        let (tenant, id) = (delivery.tenant_id, delivery.id);
        call!(self.delivery(tenant, id))
    }

    /// Updates a delivery, and returns whether it was stored.
    async fn update_delivery(&self, delivery: &Delivery, lease: Option<Uuid>) -> bool {
        self.store_delivery(delivery, lease, false).await
    }

    /// Stores the claim of a delivery, and returns whether it was stored.
    async fn claim_delivery(&self, delivery: &Delivery, lease: Option<Uuid>) -> bool {
        self.store_delivery(delivery, lease, true).await
    }

    async fn store_delivery(&self, delivery: &Delivery, lease: Option<Uuid>, claims: bool) -> bool {
        let (before, updated) = (self.stored(delivery).await, delivery.clone());
        let write = self.write((updated, claims, lease), async |tx, (updated, claims, lease)| {
            let delivery = updated.clone();

            if *claims {
                return Ok(tx.claim_delivery(&delivery, *lease).await?);
            }
            Ok(tx.update_delivery(&delivery, *lease).await?)
        });
        write.await.unwrap();
        let after = self.stored(delivery).await;
        assert!(after == before || after.as_ref() == Some(delivery), "the update is all or nothing: {after:?}");
        after.as_ref() == Some(delivery)
    }

    async fn listed(&self, tenant: TenantId, filter: &DeliveryFilter) -> Vec<Delivery> {
        let filter = filter.clone();
        let read =
            self.read((tenant, filter), async |tx, (tenant, filter)| Ok(tx.list_deliveries(*tenant, filter).await?));
        read.await.unwrap()
    }

    async fn due(&self, tenant: TenantId, to: SubscriptionId, now: Timestamp, limit: u32) -> Vec<DeliveryId> {
        let due = call!(self.due_deliveries(tenant, to, now, limit));
        let ids = due.into_iter().map(|DueDelivery { delivery, event, .. }| {
            assert_eq!((event.id, event.kind, event.tenant_id), (delivery.event_id, delivery.kind, tenant));
            delivery.id
        });
        ids.collect()
    }
}

pub(super) fn plus(at: Timestamp, seconds: u64) -> Timestamp {
    at.checked_add(Duration::from_secs(seconds)).unwrap()
}

pub(super) fn hold(delivery: &mut Delivery) {
    delivery.status = DeliveryStatus::Held;
    delivery.next_attempt_at = None;
}

pub(super) async fn every_field_of_a_delivery_is_stored(h: Harness) {
    let tenant = h.tenant().await;
    let to = h.endpoint(tenant).await;
    let far = Timestamp::parse("9999-12-31T23:59:59.999999Z").unwrap();
    let mut id = None;
    for (position, status) in DeliveryStatus::ALL.iter().copied().cycle().take(8).enumerate() {
        let delivery = h
            .insert_delivery(tenant, to, |delivery| {
                delivery.status = status;
                delivery.attempts = [0, 7, 1_000_000][position % 3];
                delivery.failures = delivery.attempts / 7;
                delivery.last_status = [None, Some(-1), Some(0), Some(599)][position / 2];
                delivery.next_attempt_at = (status == DeliveryStatus::Pending).then_some(far);
                delivery.lease = [None, Some(Uuid::nil()), Some(Uuid::max())][position % 3];
                delivery.failure_reason = [None, Some(FailureReason::SubscriptionDeleted)][position / 4];
            })
            .await;
        assert_eq!(h.stored(&delivery).await.as_ref(), Some(&delivery));
        let mut changed = delivery.clone();
        changed.claim(Uuid::from_u128(7), far);
        changed.status = DeliveryStatus::Pending;
        changed.failures = changed.attempts;
        changed.last_status = Some(302);
        assert!(h.update_delivery(&changed, delivery.lease).await);
        assert_eq!(h.stored(&delivery).await, Some(changed));
        id = Some(delivery);
    }
    let taken = h.try_insert_delivery(&id.unwrap()).await;
    assert!(matches!(taken, Err(Error::Store(StoreError::Conflict { .. }))), "an id is unique: {taken:?}");
    assert_eq!(call!(h.delivery(tenant, Id::nil())), None);
}

pub(super) async fn a_list_supports_every_filter(h: Harness) {
    let tenant = h.tenant().await;
    let other = h.tenant().await;
    let endpoints = [h.endpoint(tenant).await, h.endpoint(tenant).await];
    // Another tenant has the same deliveries with the same ids.
    for id in endpoints {
        h.insert(other, move |new| WebhookSubscription { id, ..WebhookSubscription::bare(new) }).await;
    }
    let mut all = Vec::new();
    for position in 0..12 {
        let kind = [EventKind::JobCreated, EventKind::JobUpdated][position / 2 % 2];
        let event = h.event_of(tenant, kind).await;
        for to in endpoints {
            let mut delivery = event.delivery_to(h.store.env().id(event.created_at), to, false);
            delivery.status = DeliveryStatus::ALL[all.len() % 3];
            delivery.next_attempt_at = delivery.next_attempt_at.filter(|_| delivery.status == DeliveryStatus::Pending);
            h.try_insert_delivery(&delivery).await.unwrap();
            all.push(delivery);
        }
        h.insert_event(&Event { tenant_id: other, ..event }).await;
        for delivery in &all[2 * position..] {
            h.try_insert_delivery(&Delivery { tenant_id: other, ..delivery.clone() }).await.unwrap();
        }
    }
    all.sort_by_key(|delivery| std::cmp::Reverse(delivery.id));
    let middle = all[9].clone();
    for bits in 0..64 {
        let has = |bit: u32| bits & (1 << bit) != 0;
        let filter = DeliveryFilter {
            subscription_id: has(0).then_some(middle.subscription_id),
            event_id: has(1).then_some(middle.event_id),
            status: has(2).then_some(middle.status),
            kind: has(3).then_some(middle.kind),
            since: has(4).then_some(middle.created_at),
            until: has(5).then_some(all[3].created_at),
            oldest_first: false,
            limit: 0,
        };
        let mut want = all.clone();
        want.retain(|delivery| {
            filter.subscription_id.is_none_or(|wanted| wanted == delivery.subscription_id)
                && filter.event_id.is_none_or(|wanted| wanted == delivery.event_id)
                && filter.status.is_none_or(|wanted| wanted == delivery.status)
                && filter.kind.is_none_or(|wanted| wanted == delivery.kind)
                && filter.since.is_none_or(|since| delivery.created_at >= since)
                && filter.until.is_none_or(|until| delivery.created_at < until)
        });
        assert!(want.contains(&middle), "the filter selects the sample");
        assert_eq!(h.listed(tenant, &filter).await, want, "{filter:?}");
        let first = DeliveryFilter { limit: 1, ..filter.clone() };
        assert_eq!(h.listed(tenant, &first).await, want[..1], "{first:?}");
        let mut read = all.clone();
        read.retain(|delivery| {
            filter.subscription_id.is_none_or(|wanted| wanted == delivery.subscription_id)
                && filter.event_id.is_none_or(|wanted| wanted == delivery.event_id)
                && filter.indexed_status().is_none_or(|wanted| wanted == delivery.status)
                && filter.since.is_none_or(|since| delivery.created_at >= since)
                && filter.until.is_none_or(|until| delivery.created_at < until)
        });
        for n in [0, 1, 5, 24] {
            let filter = filter.clone();
            let nth = h.read((tenant, filter, n), async |tx, (tenant, filter, n)| {
                Ok(tx.nth_listed(*tenant, filter, *n).await?)
            });
            assert_eq!(nth.await, Ok(read.get(n as usize).map(|delivery| delivery.created_at)), "{n}");
        }
        want.reverse();
        let oldest_first = DeliveryFilter { oldest_first: true, limit: 0, ..first };
        assert_eq!(h.listed(tenant, &oldest_first).await, want, "{oldest_first:?}");
    }
    let from = all[0].created_at.next();
    assert_eq!(h.listed(tenant, &DeliveryFilter { since: Some(from), ..Default::default() }).await, []);
    let until = all[23].created_at;
    assert_eq!(h.listed(tenant, &DeliveryFilter { until: Some(until), ..Default::default() }).await, []);
}

pub(super) async fn an_update_requires_the_lease(h: Harness) {
    let tenant = h.tenant().await;
    let to = h.endpoint(tenant).await;
    let free = h.insert_delivery(tenant, to, |_| {}).await;
    let bystander = h.insert_delivery(tenant, to, |_| {}).await;
    let (own_lease, other_lease) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let mut leased = free.clone();
    leased.claim(own_lease, plus(free.created_at, 30));

    assert!(!h.claim_delivery(&leased, Some(own_lease)).await, "the delivery has no lease");
    assert_eq!(h.stored(&free).await.as_ref(), Some(&free));
    assert!(h.claim_delivery(&leased, None).await);
    assert_eq!(h.stored(&free).await.as_ref(), Some(&leased));

    let mut done = leased.clone();
    done.status = DeliveryStatus::Succeeded;
    (done.lease, done.next_attempt_at) = (None, None);
    let mut claimed = leased.clone();
    claimed.claim(other_lease, plus(free.created_at, 60));
    for wrong in [None, Some(other_lease), Some(Uuid::nil())] {
        assert!(!h.update_delivery(&done, wrong).await, "{wrong:?}");
        assert!(!h.claim_delivery(&claimed, wrong).await, "{wrong:?}");
        assert_eq!(h.stored(&free).await.as_ref(), Some(&leased));
    }
    // Another holder takes over an expired lease. The first holder can no longer update the delivery.
    assert!(h.claim_delivery(&claimed, Some(own_lease)).await);
    assert!(!h.update_delivery(&done, Some(own_lease)).await);
    assert!(h.update_delivery(&done, Some(other_lease)).await);
    assert_eq!(h.stored(&free).await.as_ref(), Some(&done));

    let unknown = Delivery { id: Uuid::from_u128(9).into(), ..free };
    assert!(!h.update_delivery(&unknown, None).await && !h.claim_delivery(&unknown, None).await);
    assert_eq!(h.stored(&unknown).await, None);
    assert_eq!(h.stored(&bystander).await.as_ref(), Some(&bystander));
}

pub(super) async fn due_deliveries_are_returned_in_order(h: Harness) {
    let tenant = h.tenant().await;
    let (to, elsewhere) = (h.endpoint(tenant).await, h.endpoint(tenant).await);
    let start = h.advance_clock(tenant).await;
    assert_eq!(call!(h.next_delivery_due(tenant, to)), None);
    let mut due = Vec::new();
    for seconds in [40, 10, 30, 20] {
        let at = plus(start, seconds);
        due.push((at, h.insert_delivery(tenant, to, |delivery| delivery.next_attempt_at = Some(at)).await.id));
    }
    // A leased delivery is due when its lease ends.
    let at = plus(start, 15);
    due.push((at, h.insert_delivery(tenant, to, |delivery| delivery.claim(Uuid::from_u128(3), at)).await.id));
    due.sort();
    for state in [DeliveryStatus::Succeeded, DeliveryStatus::Failed, DeliveryStatus::Held] {
        h.insert_delivery(tenant, to, |delivery| (delivery.status, delivery.next_attempt_at) = (state, None)).await;
    }
    let first = plus(start, 1);
    h.insert_delivery(tenant, elsewhere, |delivery| delivery.next_attempt_at = Some(first)).await;

    let ids: Vec<_> = due.iter().map(|(_, id)| *id).collect();
    for (count, (at, _)) in due.iter().enumerate() {
        assert_eq!(h.due(tenant, to, *at, 100).await, ids[..=count], "it is due at its time");
        assert_eq!(h.due(tenant, to, at.minus(Duration::from_micros(1)), 100).await, ids[..count]);
    }
    assert_eq!(h.due(tenant, to, plus(start, 99), 2).await, ids[..2]);
    assert!(h.due(tenant, to, plus(start, 99), 0).await.is_empty());
    assert_eq!(call!(h.next_delivery_due(tenant, to)), Some(due[0].0));
    assert_eq!(call!(h.next_delivery_due(tenant, elsewhere)), Some(first));
}

pub(super) async fn only_pending_deliveries_of_the_endpoint_are_held(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let (to, elsewhere) = (h.endpoint(tenant).await, h.endpoint(tenant).await);
    let pending = h.insert_delivery(tenant, to, |delivery| delivery.failures = 0).await;
    let at = plus(pending.created_at, 30);
    let leased = h.insert_delivery(tenant, to, |delivery| delivery.claim(Uuid::from_u128(3), at)).await;
    let mut untouched = vec![h.insert_delivery(tenant, elsewhere, |_| {}).await];
    for state in [DeliveryStatus::Succeeded, DeliveryStatus::Failed, DeliveryStatus::Held] {
        let change = |delivery: &mut Delivery| {
            (delivery.status, delivery.next_attempt_at, delivery.attempts) = (state, None, 3);
        };
        untouched.push(h.insert_delivery(tenant, to, change).await);
    }
    let theirs = h.endpoint(other).await;
    untouched.push(h.insert_delivery(other, theirs, |_| {}).await);

    call!(h.hold_deliveries(other, to, far(), 100));
    assert_eq!(h.stored(&pending).await.as_ref(), Some(&pending), "another tenant holds none of these deliveries");
    assert_eq!(call!(h.hold_deliveries(tenant, to, far(), 100)), 2);
    for mut before in [pending, leased] {
        hold(&mut before);
        assert_eq!(h.stored(&before).await.as_ref(), Some(&before), "attempts and lease are kept");
    }
    for same in untouched {
        assert_eq!(h.stored(&same).await.as_ref(), Some(&same));
    }
    assert_eq!(call!(h.next_delivery_due(tenant, to)), None);
}

pub(super) async fn deliveries_are_held_and_failed_in_steps(h: Harness) {
    let tenant = h.tenant().await;
    let (to, elsewhere) = (h.endpoint(tenant).await, h.endpoint(tenant).await);
    let reason = FailureReason::SubscriptionDeleted;
    let mut all = Vec::new();
    for position in 0..6 {
        // Those with an attempt in flight and those that wait for a retry as well.
        let change = |delivery: &mut Delivery| {
            let at = plus(delivery.created_at, 60 - position);
            match position % 3 {
                0 => {}
                1 => delivery.claim(Uuid::from_u128(3), at),
                _ => delivery.next_attempt_at = Some(at),
            }
        };
        all.push(h.insert_delivery(tenant, to, change).await);
    }
    let bystander = h.insert_delivery(tenant, elsewhere, |_| {}).await;
    let count = async |status| call!(h.count_deliveries(tenant, to, status));

    let before = all[4].created_at;
    assert_eq!(call!(h.hold_deliveries(tenant, to, before, 0)), 0);
    assert_eq!(call!(h.hold_deliveries(tenant, to, before, 3)), 3);
    assert_eq!((count(DeliveryStatus::Held).await, count(DeliveryStatus::Pending).await), (3, 3));
    assert_eq!(call!(h.hold_deliveries(tenant, to, before, 3)), 1, "later ones are left out");
    for delivery in &all[4..] {
        assert_eq!(h.stored(delivery).await.as_ref(), Some(delivery));
    }

    for want in [4, 2, 0] {
        assert_eq!(call!(h.fail_deliveries(tenant, to, reason, 4)), want);
    }
    for delivery in &all {
        let (status, failure_reason) = (DeliveryStatus::Failed, Some(reason));
        let want = Delivery { status, failure_reason, next_attempt_at: None, ..delivery.clone() };
        assert_eq!(h.stored(delivery).await, Some(want), "attempts and lease are kept");
    }
    assert_eq!(h.stored(&bystander).await, Some(bystander));
    assert_eq!(call!(h.next_delivery_due(tenant, to)), None);
}

pub(super) async fn an_outcome_updates_six_columns(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let links = Links::of(&h, tenant).await;
    let rows = [
        h.insert(tenant, WebhookSubscription::bare).await,
        h.insert(tenant, move |new| WebhookSubscription::full(new, links)).await,
    ];
    let bystander = h.insert(tenant, WebhookSubscription::bare).await;
    let update_outcome = async |tenant: TenantId, row: &WebhookSubscription| {
        let row = row.clone();
        let write =
            h.write((tenant, row), async |tx, (tenant, row)| Ok(tx.update_delivery_outcome(*tenant, row).await?));
        write.await.unwrap();
    };
    for row in rows {
        let id = row.id;
        let new = NewRecord { tenant_id: tenant, id: id.uuid(), now: h.advance_clock(tenant).await };
        for (at, status, failures) in [(Some(new.now), Some(503), 9), (None, None, 0)] {
            let changed = [WebhookSubscription::full(new, links), WebhookSubscription::bare(new)];
            for mut changed in changed {
                changed.deleted_at = Some(new.now);
                changed.last_delivery_at = at;
                changed.last_delivery_status = status;
                changed.consecutive_failures = failures;
                changed.backoff_until = at;
                (changed.responses_kept, changed.responses_deleted_until) = (failures, Some(id.uuid().into()));
                update_outcome(tenant, &changed).await;
            }
            let want = WebhookSubscription {
                last_delivery_at: at,
                last_delivery_status: status,
                consecutive_failures: failures,
                backoff_until: at,
                responses_kept: failures,
                responses_deleted_until: Some(id.uuid().into()),
                ..row.clone()
            };
            assert_eq!(h.row(tenant, id).await.as_ref(), Some(&want));
            update_outcome(other, &WebhookSubscription { consecutive_failures: 5, ..want.clone() }).await;
            assert_eq!(h.row(tenant, id).await, Some(want), "another tenant's");
        }
    }
    assert_eq!(h.row(tenant, bystander.id).await, Some(bystander));
}

pub(super) async fn deliveries_are_brought_forward_by_what_they_wait_for(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let (to, elsewhere) = (h.endpoint(tenant).await, h.endpoint(tenant).await);
    let now = h.advance_clock(tenant).await;
    let lease = h.store.env().id(now);
    let waiting = |failures: u32, last_status: Option<i32>, lease: Option<Uuid>, seconds: u64| {
        move |delivery: &mut Delivery| {
            (delivery.attempts, delivery.failures) = (9, failures);
            (delivery.last_status, delivery.lease) = (last_status, lease);
            delivery.next_attempt_at = Some(plus(now, seconds));
        }
    };
    let kinds = [
        (WaitingFor::Attempt { failures: 0 }, waiting(0, None, None, 50)),
        (WaitingFor::Attempt { failures: 0 }, waiting(0, Some(503), None, 50)),
        (WaitingFor::Attempt { failures: 2 }, waiting(2, Some(500), None, 50)),
        (WaitingFor::AttemptAfterBackpressure, waiting(2, Some(429), None, 50)),
        (WaitingFor::AttemptAfterBackpressure, waiting(1, Some(503), None, 50)),
        (WaitingFor::Outcome, waiting(0, None, Some(lease), 50)),
        (WaitingFor::Outcome, waiting(1, Some(503), Some(lease), 50)),
        (WaitingFor::Outcome, waiting(1, Some(500), Some(lease), 20)),
    ];
    let mut rows = Vec::new();
    for (kind, change) in kinds {
        let delivery = h.insert_delivery(tenant, to, change).await;
        assert_eq!(WaitingFor::of(&delivery), Some(kind));
        rows.push(delivery);
    }
    let held = h.insert_delivery(tenant, to, hold).await;
    assert_eq!(WaitingFor::of(&held), None);
    let bystander = h.insert_delivery(tenant, elsewhere, waiting(0, None, None, 50)).await;
    let kinds = [0, 1, 2].map(|failures| WaitingFor::Attempt { failures });
    for (seconds, kind) in
        (30..).zip(kinds.into_iter().chain([WaitingFor::AttemptAfterBackpressure, WaitingFor::Outcome]))
    {
        let latest = plus(now, seconds);
        call!(h.bring_deliveries_forward(other, to, kind, plus(now, 1)));
        call!(h.bring_deliveries_forward(tenant, to, kind, latest));
        for row in &mut rows {
            if WaitingFor::of(row) == Some(kind) {
                row.next_attempt_at = row.next_attempt_at.min(Some(latest));
            }
            assert_eq!(h.stored(row).await.as_ref(), Some(&*row), "{kind:?}");
        }
    }
    for row in [held, bystander] {
        assert_eq!(h.stored(&row).await, Some(row));
    }
}

pub(super) async fn deliveries_of_another_tenant_are_not_returned(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let to = h.endpoint(tenant).await;
    let delivery = h.insert_delivery(tenant, to, |_| {}).await;
    let (id, event, now) = (delivery.id, delivery.event_id, plus(delivery.created_at, 99));
    let log = AttemptLog {
        attempt: 1,
        started_at: now,
        duration_ms: 1,
        status: 200,
        error: None,
        cause: None,
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    };
    let write =
        h.write((tenant, id, log), async |tx, (tenant, id, log)| Ok(tx.insert_attempt(*tenant, *id, log).await?));
    write.await.unwrap();

    assert_eq!(call!(h.delivery(other, id)), None);
    assert_eq!(h.listed(other, &DeliveryFilter::default()).await, []);
    assert_eq!(h.listed(other, &DeliveryFilter::of_event(event)).await, []);
    let to_it = DeliveryFilter { subscription_id: Some(to), ..Default::default() };
    assert_eq!(h.listed(other, &to_it).await, []);
    assert_eq!(h.listed(tenant, &to_it).await, std::slice::from_ref(&delivery));
    assert!(h.due(other, to, now, 9).await.is_empty());
    assert_eq!(call!(h.next_delivery_due(other, to)), None);
    assert_eq!(call!(h.attempts(other, id, u32::MAX, 10)), []);
    assert_eq!(call!(h.attempts(tenant, id, u32::MAX, 10)).len(), 1);
    let mut foreign = Delivery { tenant_id: other, ..delivery.clone() };
    hold(&mut foreign);
    assert!(!h.update_delivery(&foreign, None).await && !h.claim_delivery(&foreign, None).await);
    let reason = FailureReason::SubscriptionDeleted;
    assert_eq!(call!(h.hold_deliveries(other, to, far(), 100)), 0);
    assert_eq!(call!(h.fail_deliveries(other, to, reason, 100)), 0);
    call!(h.schedule_endpoint(other, to, None));
    assert_eq!(h.stored(&delivery).await, Some(delivery));
    assert_eq!(call!(h.due_endpoints(now, &[], 9)), [Endpoint { tenant_id: tenant, subscription_id: to }]);
}
