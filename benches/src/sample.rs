//! What was measured in a round, and the middle of several rounds.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One round.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct Sample {
    /// Requests or jobs that ended.
    pub(crate) count: usize,
    /// In how long.
    pub(crate) elapsed: Duration,
    /// Half of them took no longer, in microseconds.
    pub(crate) p50: u32,
    /// All but a hundredth took no longer, in microseconds.
    pub(crate) p99: u32,
    /// Processor time of the process that answered.
    pub(crate) cpu: Duration,
    /// Most memory that it held so far, in bytes.
    pub(crate) memory: u64,
}

impl Sample {
    /// From the time that each took, in microseconds.
    pub(crate) fn new(mut took: Vec<u32>, elapsed: Duration, cpu: Duration, memory: u64) -> Self {
        took.sort_unstable();
        let rank = |share: usize| took.get((took.len() * share / 100).min(took.len().saturating_sub(1)));
        let (p50, p99) = (rank(50).copied().unwrap_or(0), rank(99).copied().unwrap_or(0));
        Self { count: took.len(), elapsed, p50, p99, cpu, memory }
    }

    /// How many a second.
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.elapsed.as_secs_f64()
    }

    /// Processor time of each, in microseconds.
    pub(crate) fn cpu_each(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e6 / self.count as f64
    }
}

/// The middle one of several figures.
pub(crate) fn median(figures: impl IntoIterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.into_iter().collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => figures[middle],
        _ => f64::midpoint(figures[middle - 1], figures[middle]),
    }
}

/// Microseconds, for the sort above.
pub(crate) fn micros(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks() {
        let sample = Sample::new((1..=200).rev().collect(), Duration::from_secs(2), Duration::from_millis(1), 0);
        assert_eq!((sample.count, sample.p50, sample.p99), (200, 101, 199));
        assert!((sample.rate() - 100.0).abs() < 1e-9);
        assert!((sample.cpu_each() - 5.0).abs() < 1e-9);
        assert_eq!(Sample::new(Vec::new(), Duration::from_secs(1), Duration::ZERO, 0).p99, 0);
    }

    #[test]
    fn middles() {
        assert!((median([3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median([4.0, 1.0]) - 2.5).abs() < 1e-9);
        assert!(median([]).is_nan());
    }
}
