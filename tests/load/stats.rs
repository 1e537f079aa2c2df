//! The measurements: latencies, delivery lags, errors and memory.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use svc_test_support::Result;

use crate::traffic::Kind;

/// The longest recorded time, in microseconds. Longer times count as this one.
const MAX_MICROS: u64 = 120_000_000;
/// Significant digits of recorded times.
const DIGITS: u8 = 3;
/// How many error texts are kept.
const SHOWN_ERRORS: usize = 10;

/// The measurements of an interval or of the whole run.
#[derive(Clone)]
pub(crate) struct Stats {
    /// Latencies by kind of request, in microseconds.
    latencies: [Histogram<u64>; Kind::ALL.len()],
    /// Times from the response to a change until its delivery, in microseconds.
    lag: Histogram<u64>,
    pub(crate) errors: u64,
}

impl Stats {
    pub(crate) fn new() -> Result<Self> {
        let empty = Histogram::new_with_bounds(1, MAX_MICROS, DIGITS)?;
        Ok(Self { latencies: std::array::from_fn(|_| empty.clone()), lag: empty, errors: 0 })
    }

    fn add(&mut self, other: &Self) -> Result<()> {
        for (all, some) in self.latencies.iter_mut().zip(&other.latencies) {
            all.add(some)?;
        }
        self.lag.add(&other.lag)?;
        self.errors += other.errors;
        Ok(())
    }

    fn count(&self) -> u64 {
        self.latencies.iter().map(Histogram::len).sum()
    }

    /// Returns a line of the table, with percentiles in milliseconds.
    pub(crate) fn row(&self, name: &str, length: Duration, memory: u64) -> String {
        let per_second = self.count() as f64 / length.as_secs_f64();
        let mut row = format!("{name:>8} {per_second:>7.0} {:>6}", self.errors);
        for latencies in &self.latencies {
            let _ = write!(row, "  {}", percentiles(latencies, &[0.5, 0.99, 0.999]));
        }
        let _ = write!(row, "  {}  {:>6.1}", percentiles(&self.lag, &[0.5, 0.99]), megabytes(memory));
        row
    }
}

/// Returns the header of the table.
pub(crate) fn header() -> String {
    let mut line = format!("{:>8} {:>7} {:>6}", "", "per s", "errors");
    for kind in Kind::ALL {
        let _ = write!(line, "  {:<20}", format!("{} p50 p99 p99.9", kind.name()));
    }
    line + "  lag p50 p99        MB   (times in ms)"
}

fn percentiles(of: &Histogram<u64>, wanted: &[f64]) -> String {
    let texts = wanted.iter().map(|share| format!("{:>6.1}", of.value_at_quantile(*share) as f64 / 1000.0));
    texts.collect::<Vec<_>>().join(" ")
}

pub(crate) fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1_000_000.0
}

/// A change that was either acknowledged or delivered; the other is still missing.
enum OneSide {
    /// Acknowledged at this time.
    Acknowledged(Instant),
    /// Delivered at this time.
    Delivered(Instant),
}

/// The measurements so far.
pub(crate) struct Measurements {
    interval: Stats,
    pub(crate) total: Stats,
    /// By id and `updated_at` of the record.
    unmatched: HashMap<String, OneSide>,
    pub(crate) delivered: u64,
    /// The texts of the first errors.
    pub(crate) first_errors: Vec<String>,
}

impl Measurements {
    pub(crate) fn new() -> Result<Self> {
        let (interval, total) = (Stats::new()?, Stats::new()?);
        Ok(Self { interval, total, unmatched: HashMap::new(), delivered: 0, first_errors: Vec::new() })
    }

    pub(crate) fn record_latency(&mut self, kind: Kind, latencies: Duration) {
        self.interval.latencies[kind as usize].saturating_record(micros(latencies));
    }

    pub(crate) fn record_error(&mut self, reason: String) {
        self.interval.errors += 1;
        if self.first_errors.len() < SHOWN_ERRORS {
            self.first_errors.push(reason);
        }
    }

    /// Records that a change was acknowledged now.
    pub(crate) fn record_acknowledged(&mut self, change: String) {
        let now = Instant::now();
        match self.unmatched.remove(&change) {
            Some(OneSide::Delivered(at)) => self.record_lag(at.saturating_duration_since(now)),
            _ => drop(self.unmatched.insert(change, OneSide::Acknowledged(now))),
        }
    }

    /// Records that the delivery of a change arrived now.
    pub(crate) fn record_delivered(&mut self, change: String) {
        let now = Instant::now();
        match self.unmatched.remove(&change) {
            Some(OneSide::Acknowledged(at)) => self.record_lag(now.saturating_duration_since(at)),
            _ => drop(self.unmatched.insert(change, OneSide::Delivered(now))),
        }
    }

    fn record_lag(&mut self, lag: Duration) {
        self.delivered += 1;
        self.interval.lag.saturating_record(micros(lag));
    }

    /// Returns the number of acknowledged changes that were not delivered, and of deliveries that match no
    /// acknowledged change (repeats included).
    pub(crate) fn unmatched_counts(&self) -> (usize, usize) {
        let undelivered = self.unmatched.values().filter(|side| matches!(side, OneSide::Acknowledged(_))).count();
        (undelivered, self.unmatched.len() - undelivered)
    }

    /// Ends the interval, and returns its measurements.
    pub(crate) fn finish_interval(&mut self) -> Result<Stats> {
        let over = std::mem::replace(&mut self.interval, Stats::new()?);
        self.total.add(&over)?;
        Ok(over)
    }
}

fn micros(latencies: Duration) -> u64 {
    u64::try_from(latencies.as_micros()).unwrap_or(u64::MAX).max(1)
}
