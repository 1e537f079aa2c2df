//! The measurements of a round, and the median of several rounds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The measurements of a measuring round: one contender under load for `--seconds`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Sample {
    /// Requests, transactions or deliveries that completed.
    pub(crate) count: usize,
    /// The length of the round.
    pub(crate) elapsed: Duration,
    /// The median latency in microseconds.
    pub(crate) p50: u32,
    /// The 99th percentile of the latency in microseconds.
    pub(crate) p99: u32,
    /// The processor time of the measured process.
    pub(crate) cpu: Duration,
    /// The peak memory of the measured process so far, in bytes.
    pub(crate) memory: u64,
}

impl Sample {
    /// Computes a sample from latencies in microseconds.
    pub(crate) fn new(mut took: Vec<u32>, elapsed: Duration, cpu: Duration, memory: u64) -> Self {
        took.sort_unstable();
        let rank = |share: usize| took.get((took.len() * share / 100).min(took.len().saturating_sub(1)));
        let (p50, p99) = (rank(50).copied().unwrap_or(0), rank(99).copied().unwrap_or(0));
        Self { count: took.len(), elapsed, p50, p99, cpu, memory }
    }

    /// Returns the number per second.
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the processor time of each in microseconds.
    pub(crate) fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.count as f64
    }
}

/// Returns the median.
pub(crate) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// Returns a latency in microseconds, as [`Sample::new`] takes them.
pub(crate) fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_and_rates_are_computed() {
        let sample = Sample::new((1..=200).rev().collect(), Duration::from_secs(2), Duration::from_millis(1), 0);
        assert_eq!((sample.count, sample.p50, sample.p99), (200, 101, 199));
        assert!((sample.rate() - 100.0).abs() < 1e-9);
        assert!((sample.cpu_each() - 5.0).abs() < 1e-9);
        assert_eq!(Sample::new(Vec::new(), Duration::from_secs(1), Duration::ZERO, 0).p99, 0);
    }

    #[test]
    fn the_median_is_computed() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([4.0, 1.0]) - 2.5).abs() < 1e-9);
        assert!(median([]).is_nan());
    }
}
