//! Tests of the rules of one delivery, without a store.

use serde_json::value::RawValue;

use super::*;
use crate::webhooks::events::Event;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn log(status: i32, error: Option<&str>) -> AttemptLog {
    AttemptLog {
        attempt: 1,
        started_at: Timestamp::from_micros(0),
        duration_ms: 5,
        status,
        error: error.map(str::to_owned),
        cause: None,
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    }
}

#[test]
fn delays_grow_with_jitter_and_retry_after() {
    let schedule = RetrySchedule::default();
    let minutes = |minutes: u32| Some(MINUTE * minutes);
    for (failures, jitter, asked, want) in [
        (0, 0, None, None),
        (1, 0, None, minutes(1)),
        (2, 0, None, minutes(4)),
        (3, 0, None, minutes(16)),
        (4, 0, None, minutes(64)),
        (5, 0, None, minutes(240)),
        (6, 0, None, None),
        (u32::MAX, 255, Some(HOUR), None),
        (1, 255, None, Some(Duration::from_secs(66))),
        (5, 255, None, minutes(264)),
        (1, 51, None, Some(Duration::from_millis(61_200))),
        (1, 0, Some(Duration::ZERO), minutes(1)),
        (1, 0, Some(Duration::from_secs(59)), minutes(1)),
        (1, 0, Some(Duration::from_secs(61)), Some(Duration::from_secs(61))),
        (1, 255, Some(Duration::from_secs(61)), Some(Duration::from_secs(66))),
        (1, 0, Some(4 * HOUR), minutes(240)),
        (1, 255, Some(Duration::MAX), minutes(240)),
        (5, 255, Some(Duration::MAX), minutes(264)),
    ] {
        assert_eq!(schedule.delay(failures, jitter, asked), want, "{failures} {jitter} {asked:?}");
    }
    for failures in 1..=5 {
        let waits = (0..=255).map(|jitter| schedule.delay(failures, jitter, None).unwrap());
        assert!(waits.is_sorted_by(|a, b| a < b), "every value of the jitter adds to the delay");
    }
    assert_eq!(RetrySchedule::new(vec![]).delay(1, 0, None), None);
}

#[test]
fn success_is_a_2xx_without_an_error() {
    for (status, error, want) in [
        (200, None, true),
        (204, None, true),
        (299, None, true),
        (199, None, false),
        (300, None, false),
        (0, None, false),
        (-1, None, false),
        (200, Some("timeout: the body never ended"), false),
    ] {
        assert_eq!(log(status, error).succeeded(), want, "{status} {error:?}");
    }
}

#[test]
fn an_outcome_decides_the_status_and_the_next_attempt() {
    let event = Event {
        id: Uuid::from_u128(1).into(),
        tenant_id: TenantId(Uuid::from_u128(2)),
        kind: EventKind::JobCreated,
        data: RawValue::NULL.to_owned(),
        created_at: Timestamp::from_micros(1_773_500_966_535_897),
        only_for: None,
    };
    let new = event.delivery_to(Uuid::from_u128(3).into(), Uuid::from_u128(4).into(), false);
    let now = new.created_at.next();
    let (success, failure) = (log(204, None), log(503, Some("status")));
    let deleted = FailureReason::SubscriptionDeleted;
    let (retry, hold, fail) = (AfterFailure::Retry, AfterFailure::Hold, AfterFailure::Fail(deleted));
    for (log, delay, after_failure, status, failure_reason) in [
        (&success, None, retry, DeliveryStatus::Succeeded, None),
        (&success, Some(MINUTE), retry, DeliveryStatus::Succeeded, None),
        (&success, Some(MINUTE), hold, DeliveryStatus::Succeeded, None),
        (&success, Some(MINUTE), fail, DeliveryStatus::Succeeded, None),
        (&failure, Some(MINUTE), retry, DeliveryStatus::Pending, None),
        (&failure, Some(MINUTE), hold, DeliveryStatus::Held, None),
        (&failure, Some(MINUTE), fail, DeliveryStatus::Failed, Some(deleted)),
        (&failure, None, retry, DeliveryStatus::Failed, None),
        (&failure, None, hold, DeliveryStatus::Failed, None),
        (&failure, None, fail, DeliveryStatus::Failed, None),
    ] {
        let mut delivery = new.clone();
        delivery.claim(Uuid::from_u128(7), now);
        assert_eq!(
            (delivery.attempts, delivery.lease, delivery.next_attempt_at),
            (1, Some(Uuid::from_u128(7)), Some(now))
        );
        delivery.record_outcome(log, delay, now, after_failure);
        let (attempts, last_status) = (1, Some(log.status));
        let next_attempt_at = now.checked_add(MINUTE).filter(|_| status == DeliveryStatus::Pending);
        let want = Delivery { status, attempts, last_status, next_attempt_at, failure_reason, ..new.clone() };
        assert_eq!(delivery, want);
    }
}
