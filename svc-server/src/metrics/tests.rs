//! Tests of the exposition that operators scrape.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Store, StoreWrapper, UnitOfWork};
use svc_core::webhooks::deliveries::AttemptCause;
use uuid::Uuid;

use super::*;

fn log(attempt: u32, cause: Option<AttemptCause>) -> AttemptLog {
    let mut log = AttemptLog {
        attempt,
        started_at: Timestamp::from_micros(0),
        duration_ms: 3,
        status: 0,
        error: None,
        cause: None,
        response_body: None,
        response_truncated: false,
        remote_addr: None,
    };
    if let Some(cause) = cause {
        log.fail(cause, "no response");
    }
    log
}

/// Returns metrics with at least one sample of each kind.
fn all_kinds() -> Metrics {
    let metrics = Metrics::default();
    let second = Duration::from_secs(1);
    metrics.request(Some("contacts.list"), StatusCode::OK, second);
    metrics.request(Some("contacts.list"), StatusCode::OK, second);
    metrics.request(None, StatusCode::NOT_FOUND, second);
    metrics.rate_limited("write");
    metrics.given_up("connections");
    metrics.refused("request_memory");
    metrics.requests_not_logged(4);
    metrics.transaction("contacts.list", "done", second);
    metrics.group(Access::Write, 7);
    metrics.retry("contacts.create");
    metrics.partitions(Duration::from_secs(7 * 24 * 60 * 60), true);
    metrics.partitions(Duration::from_secs(6 * 24 * 60 * 60), false);
    metrics.partitions(Duration::from_secs(5 * 24 * 60 * 60), true);
    metrics.attempt(&log(1, None), second);
    metrics.attempt(&log(2, Some(AttemptCause::ResponseTimeout)), second);
    metrics.subscription_paused();
    metrics.in_flight(3);
    metrics.overdue(second);
    let (oldest, now) = (Timestamp::from_micros(2_000_000), Timestamp::from_micros(5_500_000));
    metrics.backlog(DeliveryStatus::Held, Backlog { deliveries: 12, oldest: Some(oldest) }, now);
    metrics.backlog(DeliveryStatus::Pending, Backlog::default(), now);
    metrics.stream_step(StreamBroker::Nats, 7, 1);
    let key = |number| StreamKey { id: Uuid::from_u128(number).into(), ..StreamKey::SERVER };
    let lag = |accounts, seconds| Lag { accounts, oldest: Some(now.minus(Duration::from_secs(seconds))) };
    metrics.stream_lag(StreamKey::SERVER, StreamBroker::Nats, lag(2, 1), now);
    metrics.stream_lag(key(1), StreamBroker::Nats, lag(1, 2), now);
    // One that has caught up.
    metrics.stream_lag(key(2), StreamBroker::Nats, lag(5, 9), now);
    metrics.stream_lag(key(2), StreamBroker::Nats, Lag::default(), now);
    metrics
}

#[test]
fn each_metric_is_exported() {
    let text = all_kinds().render();
    for line in [
        r#"svc_build_info{version=""#,
        r#"svc_http_requests_total{operation="contacts.list",status="200"} 2"#,
        r#"svc_http_requests_total{operation="none",status="404"} 1"#,
        r#"svc_http_request_duration_seconds_bucket{le="1.024",operation="contacts.list"} 2"#,
        r#"svc_rate_limited_total{window="write"} 1"#,
        r#"svc_unfinished_given_up_total{used_up="connections"} 1"#,
        r#"svc_overloaded_total{used_up="request_memory"} 1"#,
        "svc_requests_not_logged_total 4\n",
        r#"svc_store_transaction_duration_seconds_count{name="contacts.list",result="done"} 1"#,
        r#"svc_store_group_size_bucket{le="8.0",access="write"} 1"#,
        r#"svc_store_retries_total{name="contacts.create"} 1"#,
        r#"svc_delivery_attempt_duration_seconds_count{outcome="succeeded"} 1"#,
        r#"svc_delivery_attempt_duration_seconds_count{outcome="timeout"} 1"#,
        "svc_partitions_ahead_seconds 432000.0\n",
        "svc_partitions_blocked_total 2\n",
        "svc_delivery_delay_seconds_count 1",
        "svc_subscriptions_paused_total 1",
        "svc_deliveries_in_flight 3",
        "svc_deliveries_overdue_seconds 1.0",
        r#"svc_deliveries{status="held"} 12"#,
        r#"svc_deliveries_oldest_seconds{status="held"} 3.5"#,
        r#"svc_deliveries{status="pending"} 0"#,
        r#"svc_deliveries_oldest_seconds{status="pending"} 0.0"#,
        r#"svc_stream_events_total{broker="nats"} 7"#,
        r#"svc_stream_failures_total{broker="nats"} 1"#,
        r#"svc_stream_behind_seconds{broker="nats"} 2.0"#,
        r#"svc_stream_accounts_behind{broker="nats"} 3"#,
        "svc_process_resident_bytes ",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"));
}

/// In the text format 0.0.4 each sample belongs to the family that was described last, by the name of the family or with one of
/// the endings of a histogram.
#[test]
fn the_plain_text_has_the_same_samples_below_their_own_families() {
    let metrics = all_kinds();
    let (open, plain) = (metrics.render(), metrics.render_plain());
    let samples = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#') && !line.starts_with("svc_process_resident"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(samples(&plain), samples(&open));
    let (mut family, mut kind, mut described) = ("", "", BTreeSet::new());
    for line in plain.lines() {
        let mut words = line.split(' ');
        match (words.next(), words.next(), words.next()) {
            (Some("#"), Some("HELP"), Some(name)) => assert!(described.insert(name.to_owned()), "{name} comes twice"),
            (Some("#"), Some("TYPE"), Some(name)) => {
                (family, kind) = (name, words.next().unwrap());
                assert!(described.contains(name), "{name} has no text");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            }
            (Some(sample), Some(value), None) => {
                let name = sample.split('{').next().unwrap();
                let endings: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(
                    endings.iter().any(|ending| name.strip_suffix(ending) == Some(family)),
                    "{line} below {family}"
                );
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            }
            _ => panic!("{line}"),
        }
    }
    assert!(plain.contains("# TYPE svc_http_requests_total counter\n"), "{plain}");
    assert!(plain.contains("# TYPE svc_build_info gauge\n"), "{plain}");
}

/// A dashboard or an alert on a name that is not exported would show nothing, without an error.
#[test]
fn the_metrics_of_the_dashboard_and_the_alerts_are_exported() {
    let text = all_kinds().render();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let exported: BTreeSet<&str> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
    for file in [include_str!("../../ops/dashboard.json"), include_str!("../../ops/alerts.yaml")] {
        for name in metrics_in(file) {
            assert!(exported.contains(name), "{name} is not in\n{text}");
        }
    }
}

/// Returns the words of a text that begin like a metric.
fn metrics_in(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| c != '_' && !c.is_ascii_lowercase()).filter(|word| word.starts_with("svc_")).collect()
}

#[test]
fn each_metric_is_described_and_on_the_dashboard() {
    let text = all_kinds().render();
    let mut described: BTreeSet<&str> = BTreeSet::new();
    for line in include_str!("../../docs/operations/monitor.md").lines() {
        described.extend(line.strip_prefix("| `svc_").and_then(|rest| rest.split('`').next()));
    }
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE svc_")?.split_once(' '));
    let ending = |kind: &str| match kind {
        "counter" => "_total",
        "info" => "_info",
        _ => "",
    };
    let exported: BTreeSet<String> = kinds.map(|(name, kind)| format!("{name}{}", ending(kind))).collect();
    assert_eq!(described, exported.iter().map(String::as_str).collect(), "docs/operations/monitor.md");
    let shown = metrics_in(include_str!("../../ops/dashboard.json"));
    for name in &exported {
        let is_shown = |shown: &&str| shown.strip_prefix("svc_").is_some_and(|shown| shown.starts_with(name));
        assert!(shown.iter().any(is_shown), "{name} is not in ops/dashboard.json");
    }
}

#[test]
fn each_alert_says_what_to_do() {
    let page = include_str!("../../docs/operations/alerts.md");
    let rules = include_str!("../../ops/alerts.yaml");
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.contains(&"SvcPartitionsLate"), "{alerts:?}");
    for alert in alerts {
        assert!(page.contains(&format!("\n## {alert}\n")), "{alert}");
    }
    let used = metrics_in(rules);
    for name in ["svc_partitions_ahead_seconds", "svc_partitions_blocked_total"] {
        assert!(used.contains(name), "{name}");
    }
}

/// Counts the reads in place that reach it.
struct CountsReadsInPlace {
    store: MemoryStore,
    reads: AtomicUsize,
}

#[async_trait]
impl StoreWrapper for CountsReadsInPlace {
    fn inner(&self) -> &dyn Store {
        &self.store
    }

    async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.store.run(access, name, work).await
    }

    async fn run_in_place_wrapped(&self, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.run_in_place(name, work).await
    }
}

#[tokio::test]
async fn a_read_in_place_is_measured_and_stays_in_place() {
    let inner = CountsReadsInPlace { store: MemoryStore::new(Env::system()), reads: AtomicUsize::new(0) };
    let (inner, metrics) = (Arc::new(inner), Arc::new(Metrics::default()));
    let store = store::metered(Arc::clone(&inner) as Arc<dyn Store>, Arc::clone(&metrics));
    store.read_in_place("deliver.due_work", (), async |_, ()| Ok(())).await.unwrap();
    assert_eq!(inner.reads.load(Ordering::Relaxed), 1);
    assert!(metrics.render().contains(r#"duration_seconds_count{name="deliver.due_work",result="done"} 1"#));
}
