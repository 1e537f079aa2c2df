//! The metrics for operators on the operations listener, as OpenMetrics text, or in the text format 0.0.4 of Prometheus for
//! scrapers that ask for it.
//!
//! Names and units follow OpenMetrics: durations in seconds, sizes in bytes, and counters with the suffix `_total`. Each
//! label has few values: none is an account, a key, an address or an id.
//!
//! Metrics are counted where things happen. Backlogs in the database are counted every ten seconds and not at each scrape, by
//! partial indexes and up to a bound, so they cost the same whatever the backlog.

mod plain;
mod store;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Mutex;
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
use svc_core::sync::lock;
use svc_core::values::{StreamBroker, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, Backlog, DeliveryStatus};
use svc_core::webhooks::streams::{Lag, StreamKey};

pub use self::store::metered;

/// The media type of [`Metrics::render`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The media type of [`Metrics::render_plain`].
pub const PLAIN_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Returns a histogram of latencies, with buckets that double from a quarter of a millisecond to eight seconds.
fn latencies() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
}

/// Returns a histogram of group sizes, with buckets that double from 1 to 256.
fn sizes() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 9))
}

/// A label with its value.
type Label = [(&'static str, &'static str); 1];
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The metrics of one process. All parts of the server share them.
pub struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    request_seconds: Histograms<Label>,
    rate_limited: Family<Label, Counter>,
    given_up: Family<Label, Counter>,
    refused: Family<Label, Counter>,
    requests_not_logged: Counter,
    transaction_seconds: Histograms<[(&'static str, &'static str); 2]>,
    group_sizes: Histograms<Label>,
    store_retries: Family<Label, Counter>,
    attempt_seconds: Histograms<[(&'static str, String); 1]>,
    delivery_delay: Histogram,
    paused: Counter,
    in_flight: Gauge,
    overdue: Gauge<f64, AtomicU64>,
    partitions_ahead: Gauge<f64, AtomicU64>,
    partitions_blocked: Counter,
    deliveries: Family<Label, Gauge>,
    oldest: Family<Label, Gauge<f64, AtomicU64>>,
    stream_events: Family<Label, Counter>,
    stream_failures: Family<Label, Counter>,
    stream_behind: Family<Label, Gauge<f64, AtomicU64>>,
    stream_accounts_behind: Family<Label, Gauge>,
    /// How far each stream of this process is behind.
    stream_lags: Mutex<HashMap<StreamKey, (StreamBroker, Lag)>>,
    resident_bytes: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    operation: &'static str,
    status: HttpStatus,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct HttpStatus(StatusCode);

impl EncodeLabelValue for HttpStatus {
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
            given_up: Family::default(),
            refused: Family::default(),
            requests_not_logged: Counter::default(),
            transaction_seconds: Family::new_with_constructor(latencies),
            group_sizes: Family::new_with_constructor(sizes),
            store_retries: Family::default(),
            attempt_seconds: Family::new_with_constructor(latencies),
            delivery_delay: latencies(),
            paused: Counter::default(),
            in_flight: Gauge::default(),
            overdue: Gauge::default(),
            partitions_ahead: Gauge::default(),
            partitions_blocked: Counter::default(),
            deliveries: Family::default(),
            oldest: Family::default(),
            stream_events: Family::default(),
            stream_failures: Family::default(),
            stream_behind: Family::default(),
            stream_accounts_behind: Family::default(),
            stream_lags: Mutex::default(),
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
        registry.register("build", "The version of the running program", build);
        let help = "Requests that were responded to, by operation and HTTP status";
        registry.register("http_requests", help, self.requests.clone());
        let help = "Time in seconds from receiving the head of a request to its response, by operation";
        registry.register_with_unit("http_request_duration", help, Unit::Seconds, self.request_seconds.clone());
        let help = "Requests that were refused with 429, by rate limit window";
        registry.register("rate_limited", help, self.rate_limited.clone());
        let help = "Idle connections and unfinished handshakes, heads and bodies that were given up for other clients, by \
                    what was used up";
        registry.register("unfinished_given_up", help, self.given_up.clone());
        let help = "Connections and requests that had to wait or were refused with 503, by what was used up";
        registry.register("overloaded", help, self.refused.clone());
        let help =
            "Requests that are missing in the request log, as too many waited to be written or the database failed";
        registry.register("requests_not_logged", help, self.requests_not_logged.clone());
        let help = "Time in seconds from handing a transaction to the store to its end, including the time in the queue, \
                    by name and result";
        registry.register_with_unit(
            "store_transaction_duration",
            help,
            Unit::Seconds,
            self.transaction_seconds.clone(),
        );
        let help = "Units of work that shared one transaction of the database, by access";
        registry.register("store_group_size", help, self.group_sizes.clone());
        let help = "Transactions that were run again after a conflict or a lost connection, by name";
        registry.register("store_retries", help, self.store_retries.clone());
        let help = "Duration in seconds of webhook delivery attempts, by outcome";
        registry.register_with_unit("delivery_attempt_duration", help, Unit::Seconds, self.attempt_seconds.clone());
        let help = "Time in seconds from an event to the first attempt at its delivery";
        registry.register_with_unit("delivery_delay", help, Unit::Seconds, self.delivery_delay.clone());
        let help = "Webhook subscriptions that were paused after ten failed attempts in a row";
        registry.register("subscriptions_paused", help, self.paused.clone());
        let help = "Webhook delivery attempts in progress";
        registry.register("deliveries_in_flight", help, self.in_flight.clone());
        let help = "Time in seconds for which the longest due endpoint has been waiting to be selected";
        registry.register_with_unit("deliveries_overdue", help, Unit::Seconds, self.overdue.clone());
        let help = "Time in seconds until the first partition begins that has no end, on PostgreSQL; 0 before the first upkeep";
        registry.register_with_unit("partitions_ahead", help, Unit::Seconds, self.partitions_ahead.clone());
        let help = "Partitions that were not made or dropped in time, as writes would have waited";
        registry.register("partitions_blocked", help, self.partitions_blocked.clone());
        let help = "Deliveries of all accounts, by status; 10000 means 10000 or more";
        registry.register("deliveries", help, self.deliveries.clone());
        let help = "Age in seconds of the oldest event among the counted deliveries, by status; 0 if there is none";
        registry.register_with_unit("deliveries_oldest", help, Unit::Seconds, self.oldest.clone());
        let help = "Events that the broker of a stream has confirmed, by broker";
        registry.register("stream_events", help, self.stream_events.clone());
        let help = "Attempts to publish an event to the broker of a stream that failed, by broker";
        registry.register("stream_failures", help, self.stream_failures.clone());
        let help = "Age in seconds of the oldest event that a stream of this process has still to send, by broker; 0 if \
                    there is none, or another process sends it";
        registry.register_with_unit("stream_behind", help, Unit::Seconds, self.stream_behind.clone());
        let help = "Accounts with changes that a stream of this process has not read yet, by broker; 1000 means 1000 or \
                    more";
        registry.register("stream_accounts_behind", help, self.stream_accounts_behind.clone());
        let help = "Resident memory of the process in bytes";
        registry.register_with_unit("process_resident", help, Unit::Bytes, self.resident_bytes.clone());
    }

    /// Returns all metrics as OpenMetrics text.
    pub fn render(&self) -> String {
        self.resident_bytes.set(resident_bytes().unwrap_or_default());
        let mut text = String::new();
        if encode(&mut text, &self.registry).is_err() {
            // Writing to a string does not fail.
            let _ = text.write_str("# EOF\n");
        }
        text
    }

    /// Returns all metrics in the text format 0.0.4 of Prometheus.
    pub fn render_plain(&self) -> String {
        plain::from_openmetrics(&self.render())
    }

    /// Records a request. `operation` is `None` for one that matches no route.
    pub(crate) fn request(&self, operation: Option<&'static str>, status: StatusCode, elapsed: Duration) {
        let operation = operation.unwrap_or("none");
        self.requests.get_or_create(&RequestLabels { operation, status: HttpStatus(status) }).inc();
        self.request_seconds.get_or_create(&[("operation", operation)]).observe(elapsed.as_secs_f64());
    }

    /// Records a request that was refused with 429.
    pub(crate) fn rate_limited(&self, window: &'static str) {
        self.rate_limited.get_or_create(&[("window", window)]).inc();
    }

    /// Records what was left unfinished or idle, and was given up since others needed what it had.
    pub(crate) fn given_up(&self, used_up: &'static str) {
        self.given_up.get_or_create(&[("used_up", used_up)]).inc();
    }

    /// Records a request or a connection that could not get what it needed, as all of it was in use.
    pub(crate) fn refused(&self, used_up: &'static str) {
        self.refused.get_or_create(&[("used_up", used_up)]).inc();
    }

    /// Records requests that are missing in the request log.
    pub(crate) fn requests_not_logged(&self, requests: usize) {
        self.requests_not_logged.inc_by(requests as u64);
    }

    /// Records a transaction of the store.
    fn transaction(&self, name: &'static str, result: &'static str, elapsed: Duration) {
        self.transaction_seconds.get_or_create(&[("name", name), ("result", result)]).observe(elapsed.as_secs_f64());
    }

    /// Records a delivery attempt. `delay` is the age of the event when the attempt started.
    pub(crate) fn attempt(&self, log: &AttemptLog, delay: Duration) {
        let class = log.cause.map_or("succeeded", |cause| cause.class().as_str());
        let outcome = [("outcome", class.to_owned())];
        self.attempt_seconds.get_or_create(&outcome).observe(f64::from(log.duration_ms) / 1000.0);
        if log.attempt == 1 {
            self.delivery_delay.observe(delay.as_secs_f64());
        }
    }

    /// Records that a subscription was paused.
    pub(crate) fn subscription_paused(&self) {
        self.paused.inc();
    }

    /// Sets the number of delivery attempts in progress.
    pub(crate) fn in_flight(&self, attempts: usize) {
        self.in_flight.set(i64::try_from(attempts).unwrap_or(i64::MAX));
    }

    /// Sets the number and the age of the deliveries with a status, in the whole database.
    pub(crate) fn backlog(&self, status: DeliveryStatus, backlog: Backlog, now: Timestamp) {
        let label = [("status", status.as_str())];
        self.deliveries.get_or_create(&label).set(i64::try_from(backlog.deliveries).unwrap_or(i64::MAX));
        let age = backlog.oldest.map_or(Duration::ZERO, |oldest| now.since(oldest));
        self.oldest.get_or_create(&label).set(age.as_secs_f64());
    }

    /// Records what a step of a stream has done.
    pub(crate) fn stream_step(&self, broker: StreamBroker, sent: u64, failures: usize) {
        let label = [("broker", broker.as_str())];
        self.stream_events.get_or_create(&label).inc_by(sent);
        self.stream_failures.get_or_create(&label).inc_by(failures as u64);
    }

    /// Sets how far a stream is behind. Those of a broker are shown together: the oldest event, and all accounts.
    pub(crate) fn stream_lag(&self, key: StreamKey, broker: StreamBroker, lag: Lag, now: Timestamp) {
        let mut lags = lock(&self.stream_lags);
        if lag == Lag::default() {
            lags.remove(&key);
        } else {
            lags.insert(key, (broker, lag));
        }
        let of_broker = || lags.values().filter(|(of, _)| *of == broker).map(|(_, lag)| lag);
        let age = of_broker().filter_map(|lag| lag.oldest).min().map_or(Duration::ZERO, |oldest| now.since(oldest));
        let label = [("broker", broker.as_str())];
        self.stream_behind.get_or_create(&label).set(age.as_secs_f64());
        self.stream_accounts_behind.get_or_create(&label).set(of_broker().map(|lag| i64::from(lag.accounts)).sum());
    }

    /// Sets how long the longest due endpoint has been waiting.
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
        let size = f64::from(u32::try_from(jobs).unwrap_or(u32::MAX));
        self.group_sizes.get_or_create(&[("access", access)]).observe(size);
    }

    fn retry(&self, name: &'static str) {
        self.store_retries.get_or_create(&[("name", name)]).inc();
    }

    fn partitions(&self, ahead: Duration, is_blocked: bool) {
        self.partitions_ahead.set(ahead.as_secs_f64());
        if is_blocked {
            self.partitions_blocked.inc();
        }
    }
}

/// Returns the resident memory of the process as the kernel reports it, or `None` where it does not.
fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: i64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests;
