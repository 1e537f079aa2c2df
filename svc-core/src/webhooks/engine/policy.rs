//! The settings of the engine.

use std::time::Duration;

use crate::store::WaitingFor;
use crate::webhooks::deliveries::{MAX_RETRY_AFTER, RetrySchedule};

/// How deliveries are attempted and retried.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The longest time that one attempt may take, from resolving the host name to the end of the response.
    pub timeout: Duration,
    /// The delays between a failed attempt and its retry.
    pub retry: RetrySchedule,
    /// The highest number of attempts in flight in this process. One tenant can use half of them.
    pub concurrency: usize,
}

impl Default for Policy {
    /// 10 seconds per attempt, the default [`RetrySchedule`], and 2048 attempts in flight.
    fn default() -> Self {
        Self { timeout: Duration::from_secs(10), retry: RetrySchedule::default(), concurrency: 2048 }
    }
}

impl Policy {
    /// Returns how long a lease lasts: twice the timeout and 10 seconds more, so that an attempt has always ended before
    /// its lease does.
    pub fn lease(&self) -> Duration {
        self.timeout * 2 + Duration::from_secs(10)
    }

    /// Returns the longest time that a pending delivery waits, by what it waits for.
    pub(super) fn longest_waits(&self) -> Vec<(WaitingFor, Duration)> {
        let retries = (1..).map_while(|failures| self.retry.delay(failures, u8::MAX, None));
        let attempts = std::iter::once(Duration::ZERO).chain(retries);
        let mut waits: Vec<(WaitingFor, Duration)> =
            (0..).zip(attempts).map(|(failures, longest)| (WaitingFor::Attempt { failures }, longest)).collect();
        let longest_retry = waits.iter().map(|(_, longest)| *longest).max().unwrap_or_default();
        waits.push((WaitingFor::AttemptAfterBackpressure, longest_retry.max(MAX_RETRY_AFTER)));
        waits.push((WaitingFor::Outcome, self.lease()));
        waits
    }
}
