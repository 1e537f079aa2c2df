//! The settings of the engine.

use std::time::Duration;

use crate::webhooks::deliveries::RetrySchedule;

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
}
