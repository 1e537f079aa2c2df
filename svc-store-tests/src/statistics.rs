//! The counts of attempts, for charts.

use std::time::Duration;

use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::statistics::{self, AttemptCounter, AttemptOutcome, HourOfAttempts, Tally};
use svc_core::webhooks::subscriptions::SubscriptionId;
use uuid::Uuid;

use crate::Harness;

const HOUR: Duration = Duration::from_secs(60 * 60);

fn attempt(started_at: Timestamp, status: i32, duration_ms: u32) -> AttemptLog {
    AttemptLog {
        attempt: 1,
        started_at,
        duration_ms,
        status,
        error: (status != 200).then(|| "timeout: 10s".to_owned()),
        cause: None,
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    }
}

impl Harness {
    /// Records attempts that begin now.
    pub(super) async fn record_attempts(&self, tenant: TenantId, to: SubscriptionId, attempts: &[(i32, u32)]) {
        let (now, mut counter) = (self.store.env().now(), AttemptCounter::default());
        attempts.iter().for_each(|(status, duration)| counter.add(tenant, to, &attempt(now, *status, *duration)));
        statistics::record(&*self.store, &counter.take()).await.unwrap();
        assert_eq!(counter.take(), []);
    }

    pub(super) async fn attempts_by_hour(&self, tenant: TenantId, to: Option<SubscriptionId>) -> Vec<HourOfAttempts> {
        self.read((tenant, to), async |tx, &(tenant, to)| statistics::attempts_by_hour(tx, tenant, to).await)
            .await
            .unwrap()
    }
}

/// The figures of an hour that a chart shows: attempts, succeeded, refused, without a response, p50 and p95.
fn figures(hour: &HourOfAttempts) -> (u64, u64, u64, u64, Option<u32>, Option<u32>) {
    let all = &hour.tally;
    let [succeeded, refused, no_response] =
        [AttemptOutcome::Succeeded, AttemptOutcome::Refused, AttemptOutcome::NoResponse]
            .map(|outcome| all.count(outcome));
    (all.attempts(), succeeded, refused, no_response, all.percentile(50), all.percentile(95))
}

pub(super) async fn attempts_are_counted_by_hour(h: Harness) {
    let (tenant, other) = (h.tenant().await, h.tenant().await);
    let (one, two) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
    h.clock.set(Timestamp::parse("2026-03-14T15:59:59Z").unwrap());
    h.record_attempts(tenant, one, &[(200, 9), (500, 9), (200, 100)]).await;
    h.record_attempts(tenant, one, &[(200, 9), (0, 10_000), (-1, 0)]).await;
    h.record_attempts(tenant, two, &[(200, 1)]).await;
    h.clock.advance(Duration::from_secs(1));
    h.record_attempts(tenant, one, &[(200, 2)]).await;

    let chart = h.attempts_by_hour(tenant, Some(one)).await;
    assert_eq!(chart.len(), 24);
    assert!(chart.windows(2).all(|pair| pair[1].begins_at.since(pair[0].begins_at) == HOUR));
    assert_eq!(chart[23].begins_at, Timestamp::parse("2026-03-14T16:00:00Z").unwrap(), "the current hour is the last");
    assert_eq!(figures(&chart[23]), (1, 1, 0, 0, Some(2), Some(2)));
    assert_eq!(figures(&chart[22]), (6, 3, 1, 2, Some(10), Some(10_240)), "durations are rounded up");
    assert_eq!(figures(&chart[21]), (0, 0, 0, 0, None, None));
    let chart = h.attempts_by_hour(tenant, None).await;
    assert_eq!((chart[22].tally.attempts(), chart[23].tally.attempts()), (7, 1), "all endpoints");
    let mut day = Tally::default();
    chart.iter().for_each(|hour| day.merge(&hour.tally));
    assert_eq!((day.attempts(), day.success_rate()), (8, Some(6_250)));
    let of_other = h.attempts_by_hour(other, Some(one)).await;
    assert!(of_other.iter().all(|hour| hour.tally.attempts() == 0), "another tenant has none");
}

pub(super) async fn counts_of_attempts_expire(h: Harness) {
    let tenant = h.tenant().await;
    for endpoint in 1..=100 {
        h.record_attempts(tenant, Uuid::from_u128(endpoint).into(), &[(200, 1), (200, 2), (500, 3)]).await;
    }
    h.clock.advance(HOUR * 23);
    assert_eq!(statistics::delete_expired(&*h.store).await, Ok(0));
    assert_eq!(h.attempts_by_hour(tenant, None).await[0].tally.attempts(), 300);
    h.record_attempts(tenant, Uuid::from_u128(1).into(), &[(200, 1)]).await;
    h.clock.advance(HOUR);
    let left = h.attempts_by_hour(tenant, None).await;
    assert_eq!(left.iter().map(|hour| hour.tally.attempts()).sum::<u64>(), 1);
    assert_eq!(statistics::delete_expired(&*h.store).await, Ok(303), "in steps");
    assert_eq!(statistics::delete_expired(&*h.store).await, Ok(0));
    assert_eq!(h.attempts_by_hour(tenant, None).await, left);
}
