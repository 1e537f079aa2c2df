//! The data of statistics: counts of deliveries, and the attempts within a time range.

use std::collections::BTreeMap;

use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, AttemptSummary, Backlog, Delivery, DeliveryId, DeliveryStatus};

use crate::Harness;
use crate::deliveries::call;

pub(super) async fn deliveries_are_counted_by_status(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let (to, elsewhere) = (h.endpoint(tenant).await, h.endpoint(tenant).await);
    for (count, state) in DeliveryStatus::ALL.iter().copied().enumerate() {
        assert_eq!(call!(h.count_deliveries(tenant, to, state)), 0);
        for endpoint in std::iter::repeat_n(to, count + 1).chain([elsewhere]) {
            let change = |delivery: &mut Delivery| {
                delivery.status = state;
                delivery.next_attempt_at = delivery.next_attempt_at.filter(|_| state == DeliveryStatus::Pending);
            };
            h.insert_delivery(tenant, endpoint, change).await;
        }
    }
    for (count, state) in DeliveryStatus::ALL.iter().copied().enumerate() {
        let is_backlog = u64::from(state != DeliveryStatus::Succeeded);
        assert_eq!(call!(h.count_deliveries(tenant, to, state)), (count as u64 + 1) * is_backlog, "{state}");
        assert_eq!(call!(h.count_deliveries(tenant, elsewhere, state)), is_backlog, "{state}");
        assert_eq!(call!(h.count_deliveries(other, to, state)), 0, "{state}");
    }
}

pub(super) async fn a_backlog_covers_all_tenants(h: Harness) {
    let waiting = [DeliveryStatus::Pending, DeliveryStatus::Failed, DeliveryStatus::Held];
    for state in waiting {
        assert_eq!(call!(h.backlog(state)), Backlog::default());
    }
    let mut oldest = BTreeMap::new();
    for _ in 0..2 {
        let tenant = h.tenant().await;
        let to = h.endpoint(tenant).await;
        for state in DeliveryStatus::ALL.iter().copied() {
            let change = |delivery: &mut Delivery| {
                delivery.status = state;
                delivery.next_attempt_at = delivery.next_attempt_at.filter(|_| state == DeliveryStatus::Pending);
            };
            let at = h.insert_delivery(tenant, to, change).await.created_at;
            oldest.entry(state).and_modify(|first: &mut Timestamp| *first = at.min(*first)).or_insert(at);
        }
    }
    for state in waiting {
        let want = Backlog { deliveries: 2, oldest: oldest.get(&state).copied() };
        assert_eq!(call!(h.backlog(state)), want, "{state}");
    }
    assert_eq!(call!(h.backlog(DeliveryStatus::Succeeded)), Backlog::default());
}

impl Harness {
    async fn insert_attempt(&self, tenant: TenantId, delivery: DeliveryId, summary: AttemptSummary, attempt: u32) {
        let log = AttemptLog {
            attempt,
            // The time of the attempt makes no difference.
            started_at: Timestamp::from_micros(0),
            duration_ms: summary.duration_ms,
            status: summary.status,
            error: summary.failed.then(String::new),
            cause: None,
            response_body: Some("x".repeat(1000)),
            response_truncated: false,
            remote_addr: None,
        };
        let write = self.write((tenant, delivery, log), async |tx, (tenant, delivery, log)| {
            Ok(tx.insert_attempt(*tenant, *delivery, log).await?)
        });
        write.await.unwrap();
    }
}

pub(super) async fn attempt_summaries_cover_a_time_range(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let (to, elsewhere) = (h.endpoint(tenant).await, h.endpoint(tenant).await);
    let mut made = Vec::new();
    for count in 0..5 {
        let delivery = h.insert_delivery(tenant, to, |_| {}).await;
        let bystander = h.insert_delivery(tenant, elsewhere, |_| {}).await;
        h.insert_attempt(tenant, bystander.id, AttemptSummary { status: 1, failed: false, duration_ms: 1 }, 1).await;
        let mut summaries = Vec::new();
        for attempt in 0..count {
            let status = [200, 500, 0, -1][attempt as usize];
            let summary = AttemptSummary { status, failed: attempt % 2 == 1, duration_ms: count * 10 + attempt };
            h.insert_attempt(tenant, delivery.id, summary, attempt + 1).await;
            summaries.push(summary);
        }
        made.push((delivery.created_at, summaries));
    }
    let end = made[4].0.next();
    let starts: Vec<Timestamp> = made.iter().map(|(at, _)| *at).chain([end]).collect();
    for (first, since) in starts.iter().copied().enumerate() {
        for (last, until) in starts.iter().copied().enumerate() {
            let range = made.get(first..last).unwrap_or_default();
            let mut want: Vec<AttemptSummary> = range.iter().flat_map(|(_, summaries)| summaries).copied().collect();
            let mut got = call!(h.attempt_summaries(tenant, to, since, until));
            want.sort_by_key(|summary| summary.duration_ms);
            got.sort_by_key(|summary| summary.duration_ms);
            assert_eq!(got, want, "{first}..{last}");
        }
    }
    let start = starts[0];
    assert_eq!(call!(h.attempt_summaries(other, to, start, end)), []);
}
