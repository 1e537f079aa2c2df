//! The times of the retries of a failed delivery.

use std::time::Duration;

/// How long an endpoint gets no further attempt after the first failure in a row. The delay doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
/// The longest delay that a `Retry-After` header can ask for; a longer one is shortened to this.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(4 * 60 * 60);

/// The delays before the retries of a delivery, one per retry. A delivery fails for good when they are used up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySchedule(Vec<Duration>);

impl Default for RetrySchedule {
    /// 1, 4, 16, 64 and 240 minutes.
    fn default() -> Self {
        Self([1, 4, 16, 64, 240].map(|minutes| Duration::from_secs(minutes * 60)).to_vec())
    }
}

impl RetrySchedule {
    /// Creates a schedule with these delays, one per retry.
    pub fn new(delays: Vec<Duration>) -> Self {
        Self(delays)
    }

    /// Returns the delay after the `failures`th failure, or `None` when the retries are used up.
    ///
    /// `jitter` (0 to 255) adds 0 to 10 % to the delay of the schedule. If the endpoint asked for a longer delay by
    /// `Retry-After`, that applies, up to [`MAX_RETRY_AFTER`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// let schedule = svc_core::webhooks::deliveries::RetrySchedule::default();
    /// assert_eq!(schedule.delay(1, 0, None), Some(Duration::from_secs(60)));
    /// assert_eq!(schedule.delay(5, 255, None), Some(Duration::from_secs(264 * 60)));
    /// assert_eq!(schedule.delay(6, 0, None), None);
    /// ```
    pub fn delay(&self, failures: u32, jitter: u8, retry_after: Option<Duration>) -> Option<Duration> {
        let index = usize::try_from(failures.checked_sub(1)?).ok()?;
        let delay = *self.0.get(index)?;
        let delay = delay.saturating_add(delay.saturating_mul(u32::from(jitter)) / 2550);
        Some(delay.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER)))
    }

    /// Returns how long an endpoint gets no attempt at all after this number of failures in a row: 1 second after the
    /// first, and twice as long after each further one, up to the first delay of the schedule. A schedule without retries
    /// has no such delay. If the endpoint asked for a longer one by `Retry-After`, that applies, up to
    /// [`MAX_RETRY_AFTER`].
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// let schedule = svc_core::webhooks::deliveries::RetrySchedule::default();
    /// let seconds = [1, 2, 3, 6, 7, 9].map(|failures| schedule.backoff(failures, None).as_secs());
    /// assert_eq!(seconds, [1, 2, 4, 32, 60, 60]);
    /// ```
    pub fn backoff(&self, failures: u32, retry_after: Option<Duration>) -> Duration {
        let longest = self.0.first().copied().unwrap_or_default();
        let delay = FIRST_BACKOFF.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(longest);
        delay.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER))
    }
}
