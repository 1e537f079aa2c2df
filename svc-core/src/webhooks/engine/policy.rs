//! The settings of the engine.

use std::borrow::Cow;
use std::time::Duration;

use crate::store::WaitingFor;
use crate::webhooks::deliveries::{MAX_RETRY_AFTER, RetrySchedule};
use crate::webhooks::options::RetryDelays;
use crate::webhooks::subscriptions::WebhookSubscription;

/// How deliveries are attempted and retried.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The longest time that one attempt may take, from resolving the host name to the end of the response.
    pub timeout: Duration,
    /// The delays between a failed attempt and its retry.
    pub retry: RetrySchedule,
    /// The highest number of attempts in flight in this process. One tenant can use half of them.
    pub concurrency: usize,
    /// The longest timeout that a subscription can ask for.
    pub max_timeout: Duration,
}

impl Default for Policy {
    /// 10 seconds per attempt and 30 at most, the default [`RetrySchedule`], and 2048 attempts in flight.
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            retry: RetrySchedule::default(),
            concurrency: 2048,
            max_timeout: Duration::from_secs(30),
        }
    }
}

impl Policy {
    /// The length of time whose deliveries one claim takes for an endpoint with a rate.
    pub const PACE: Duration = Duration::from_millis(100);

    /// Returns the policy for a subscription, which may ask for another timeout and other retries.
    pub(super) fn of(&self, subscription: &WebhookSubscription) -> Cow<'_, Self> {
        let WebhookSubscription { timeout, retry_schedule, .. } = subscription;
        if timeout.is_none() && retry_schedule.is_none() {
            return Cow::Borrowed(self);
        }
        let timeout = timeout.map_or(self.timeout, |timeout| timeout.duration().min(self.max_timeout));
        let retry = retry_schedule.as_ref().map_or_else(|| self.retry.clone(), RetryDelays::schedule);
        Cow::Owned(Self { timeout, retry, ..*self })
    }

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
