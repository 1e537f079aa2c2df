use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use svc_core::env::Env;
use svc_core::sync::lock;
use svc_core::values::{EventKind, TenantId};
use svc_core::webhooks::deliveries::{Delivery, DeliveryStatus};
use uuid::Uuid;

use super::*;

/// Collects the lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        lock(&self.0).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Lines {
    /// Returns the level, the text and the number of failures of the lines since the last call.
    fn take(&self) -> Vec<(String, String, u64)> {
        let lines = String::from_utf8(std::mem::take(&mut *lock(&self.0))).unwrap();
        let parse = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| line[name].as_str().unwrap().to_owned();
            (text("level"), text("message"), line["count"].as_u64().unwrap_or(1))
        };
        lines.lines().map(parse).collect()
    }

    /// Returns the number of failures of the lines since the last call.
    fn counts(&self) -> Vec<u64> {
        self.take().into_iter().map(|(_, _, count)| count).collect()
    }
}

/// Runs `test` with a log of its own.
fn logged(test: impl FnOnce(&Lines)) {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(log, || test(&lines));
}

/// Returns a failed attempt to an endpoint, with retries left.
fn failed(subscription_id: SubscriptionId) -> FailedAttempt {
    let env = Env::system();
    let now = env.now();
    let delivery = Delivery {
        id: env.id(now),
        tenant_id: TenantId(env.id(now)),
        event_id: env.id(now),
        kind: EventKind::ContactCreated,
        subscription_id,
        status: DeliveryStatus::Pending,
        attempts: 1,
        failures: 1,
        last_status: Some(500),
        next_attempt_at: now.checked_add(MINUTE),
        lease: None,
        failure_reason: None,
        created_at: now,
        order_key: None,
    };
    let error = Some("status: 500 Internal Server Error".to_owned());
    FailedAttempt { delivery, host: "example.com".to_owned(), error, has_paused: false }
}

/// Returns a failed attempt to an endpoint, without retries left.
fn exhausted(subscription: SubscriptionId) -> FailedAttempt {
    let mut failure = failed(subscription);
    (failure.delivery.status, failure.delivery.next_attempt_at) = (DeliveryStatus::Failed, None);
    failure
}

#[test]
fn each_failure_has_a_line_and_the_last_attempt_and_a_pause_another() {
    logged(|lines| {
        let (mut log, now) = (FailureLog::default(), Instant::now());
        log.record(failed(SubscriptionId::nil()), now);
        log.record(exhausted(SubscriptionId::nil()), now);
        log.record(FailedAttempt { has_paused: true, ..failed(SubscriptionId::nil()) }, now);
        let levels: Vec<(String, bool)> =
            lines.take().into_iter().map(|(level, text, _)| (level, text == "a delivery attempt failed")).collect();
        let expected = [("INFO", true), ("WARN", false), ("INFO", true), ("WARN", false), ("INFO", true)]
            .map(|(l, a)| (l.to_owned(), a));
        assert_eq!(levels, expected);
        log.finish();
        assert!(lines.take().is_empty());
    });
}

#[test]
fn a_flood_of_failures_is_one_line_a_minute_for_each_endpoint() {
    logged(|lines| {
        let (mut log, mut now) = (FailureLog::default(), Instant::now());
        let (flooding, quiet) = (SubscriptionId::new(Uuid::from_u128(1)), SubscriptionId::new(Uuid::from_u128(2)));
        for _ in 0..100 {
            log.record(failed(flooding), now);
        }
        log.record(failed(quiet), now);
        assert_eq!(lines.counts(), [1; 6], "five of one endpoint and one of the other");
        now += MINUTE;
        log.end_minutes(now);
        assert_eq!(lines.counts(), [95]);
        for _ in 0..3 {
            for _ in 0..100 {
                log.record(failed(flooding), now);
            }
            assert!(lines.counts().is_empty());
            now += MINUTE;
            log.end_minutes(now);
            assert_eq!(lines.counts(), [100]);
        }
        log.record(failed(flooding), now);
        // Also if no search finds the end of the minute, the next failure does.
        log.record(failed(flooding), now + MINUTE);
        assert_eq!(lines.counts(), [1, 1], "the line of the minute, and that of the failure after the flood");
    });
}

#[test]
fn after_a_flood_each_failure_has_a_line_again() {
    logged(|lines| {
        let (mut log, mut now) = (FailureLog::default(), Instant::now());
        for failures in [6, 7, 2, 1, 0, 1] {
            for _ in 0..failures {
                log.record(failed(SubscriptionId::nil()), now);
            }
            now += MINUTE;
            log.end_minutes(now);
        }
        // Six are five lines and one at the end; seven and two are a line at the end; then the flood is over.
        assert_eq!(lines.counts(), [1, 1, 1, 1, 1, 1, 7, 2, 1, 1]);
        assert!(log.minutes.is_empty(), "nothing is kept of an endpoint that stopped failing");
    });
}

#[test]
fn what_has_no_line_yet_gets_it_when_the_process_ends() {
    logged(|lines| {
        let (mut log, now) = (FailureLog::default(), Instant::now());
        for _ in 0..20 {
            log.record(exhausted(SubscriptionId::nil()), now);
        }
        lines.take();
        log.finish();
        let mut lines = lines.take();
        lines.sort();
        let counted: Vec<(&str, u64)> = lines.iter().map(|(level, _, count)| (level.as_str(), *count)).collect();
        assert_eq!(counted, [("INFO", 15), ("WARN", 15)]);
    });
}
