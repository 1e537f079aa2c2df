//! Metrics for operators, in OpenMetrics text on the operations listener.
//!
//! Names and units follow OpenMetrics: seconds, `_total` for counters. Labels have few values each: no tenant, key,
//! address or id stands in one.

mod store;

use std::fmt::Write as _;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use svc_core::store::{Access, Observer};
use svc_core::values::Timestamp;
use svc_core::webhooks::deliveries::{AttemptLog, Backlog, DeliveryStatus};

pub use self::store::metered;

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The latencies that are told apart: from a quarter of a millisecond to eight seconds, doubling.
fn latencies() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
}

/// The sizes of groups that are told apart: 1 to 256, doubling.
fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 9))
}

/// What is counted and measured. One per process; all parts of it share it.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Family<OperationLabel, Histogram, fn() -> Histogram>,
    rate_limited: Family<WindowLabel, Counter>,
    job_seconds: Family<JobLabels, Histogram, fn() -> Histogram>,
    group_sizes: Family<AccessLabel, Histogram, fn() -> Histogram>,
    store_retries: Family<JobLabel, Counter>,
    attempt_seconds: Family<OutcomeLabel, Histogram, fn() -> Histogram>,
    delivery_delay: Histogram,
    paused: Counter,
    in_flight: Gauge,
    overdue: Gauge<f64, AtomicU64>,
    deliveries: Family<StateLabel, Gauge>,
    oldest: Family<StateLabel, Gauge<f64, AtomicU64>>,
    resident_bytes: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: &'static str,
    status: Status,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OperationLabel {
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WindowLabel {
    window: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabels {
    name: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabel {
    name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AccessLabel {
    access: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Status(StatusCode);

impl EncodeLabelValue for Status {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), std::fmt::Error> {
        encoder.write_str(self.0.as_str())
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("svc"),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(latencies),
            rate_limited: Family::default(),
            job_seconds: Family::new_with_constructor(latencies),
            group_sizes: Family::new_with_constructor(sizes),
            store_retries: Family::default(),
            attempt_seconds: Family::new_with_constructor(latencies),
            delivery_delay: latencies(),
            paused: Counter::default(),
            in_flight: Gauge::default(),
            overdue: Gauge::default(),
            deliveries: Family::default(),
            oldest: Family::default(),
            resident_bytes: Gauge::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program that runs", build);
        registry.register("http_requests", "Requests answered", self.requests.clone());
        let help = "From the head of a request to its answer";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, self.request_seconds.clone());
        registry.register("rate_limited", "Requests refused with 429, by window", self.rate_limited.clone());
        let help = "From handing a job to the store to its end, waiting included";
        registry.register_with_unit("store_job_duration", help, Unit::Seconds, self.job_seconds.clone());
        registry.register("store_group_size", "Jobs that shared a transaction", self.group_sizes.clone());
        registry.register("store_retries", "Jobs that were run again after a conflict", self.store_retries.clone());
        let help = "Delivery attempts, by outcome";
        registry.register_with_unit("delivery_attempt_duration", help, Unit::Seconds, self.attempt_seconds.clone());
        let help = "From an event to the first attempt at its delivery";
        registry.register_with_unit("delivery_delay", help, Unit::Seconds, self.delivery_delay.clone());
        registry.register("subscriptions_paused", "Subscriptions paused after ten failures", self.paused.clone());
        registry.register("deliveries_in_flight", "Attempts that are being made", self.in_flight.clone());
        let help = "How long the endpoint has been waiting whose turn came first";
        registry.register_with_unit("deliveries_overdue", help, Unit::Seconds, self.overdue.clone());
        let help = "Deliveries of all tenants, by state; 10000 stands for so many or more";
        registry.register("deliveries", help, self.deliveries.clone());
        let help = "Since the event of the oldest of these deliveries; 0 when there is none";
        registry.register_with_unit("deliveries_oldest", help, Unit::Seconds, self.oldest.clone());
        let help = "Memory of the process that is resident";
        registry.register_with_unit("process_resident", help, Unit::Bytes, self.resident_bytes.clone());
    }

    /// All of it, as OpenMetrics text.
    pub fn render(&self) -> String {
        self.resident_bytes.set(resident_bytes().unwrap_or_default());
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            // Writing to a string never fails.
            let _ = text.write_str("# EOF\n");
        }
        text
    }

    pub(crate) fn request(&self, operation: Option<&'static str>, status: StatusCode, elapsed: Duration) {
        let operation = operation.unwrap_or("none");
        self.requests.get_or_create(&RequestLabels { operation, status: Status(status) }).inc();
        self.request_seconds.get_or_create(&OperationLabel { operation }).observe(elapsed.as_secs_f64());
    }

    pub(crate) fn rate_limited(&self, window: &'static str) {
        self.rate_limited.get_or_create(&WindowLabel { window }).inc();
    }

    fn job(&self, name: &'static str, result: &'static str, elapsed: Duration) {
        self.job_seconds.get_or_create(&JobLabels { name, result }).observe(elapsed.as_secs_f64());
    }

    /// An attempt was made, of a delivery whose event is this old.
    pub(crate) fn attempt(&self, log: &AttemptLog, delay: Duration) {
        let class = log.error.as_deref().map_or("succeeded", |error| error.split(':').next().unwrap_or(error));
        let outcome = OutcomeLabel { outcome: class.to_owned() };
        self.attempt_seconds.get_or_create(&outcome).observe(f64::from(log.duration_ms) / 1000.0);
        if log.attempt == 1 {
            self.delivery_delay.observe(delay.as_secs_f64());
        }
    }

    pub(crate) fn subscription_paused(&self) {
        self.paused.inc();
    }

    pub(crate) fn in_flight(&self, attempts: usize) {
        self.in_flight.set(i64::try_from(attempts).unwrap_or(i64::MAX));
    }

    /// What waits in this state, in the whole database.
    pub(crate) fn backlog(&self, state: DeliveryStatus, backlog: Backlog, now: Timestamp) {
        let label = StateLabel { state: state.as_str() };
        self.deliveries.get_or_create(&label).set(i64::try_from(backlog.deliveries).unwrap_or(i64::MAX));
        let age = backlog.oldest.map_or(Duration::ZERO, |oldest| now.since(oldest));
        self.oldest.get_or_create(&label).set(age.as_secs_f64());
    }

    pub(crate) fn overdue(&self, overdue: Duration) {
        self.overdue.set(overdue.as_secs_f64());
    }
}

impl Observer for Metrics {
    fn group(&self, access: Access, jobs: usize) {
        let access = match access {
            Access::Read => "read",
            Access::Write => "write",
        };
        self.group_sizes
            .get_or_create(&AccessLabel { access })
            .observe(f64::from(u32::try_from(jobs).unwrap_or(u32::MAX)));
    }

    fn retry(&self, name: &'static str) {
        self.store_retries.get_or_create(&JobLabel { name }).inc();
    }
}

/// From the kernel; `None` where it does not say.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests;
