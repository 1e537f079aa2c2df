//! When a request is sent again, and how long the client waits before.
//!
//! Every request of this client can be repeated: GET changes nothing, a POST carries an `Idempotency-Key`, a PATCH sets
//! the same values again, and a record that was deleted stays so.

use std::time::{Duration, UNIX_EPOCH};

use http::HeaderMap;
use http::header::RETRY_AFTER;
use svc_core::env::Env;

use crate::error::Error;

/// How often and for how long a call is attempted.
///
/// A call is repeated when the service is busy (429, 503), when a proxy does not reach it (502, 504), when no response
/// arrives, and while the first attempt of a create is still running (409 `idempotency_in_progress`). The wait before
/// attempt *n* + 1 is chosen at random between zero and `first_wait` × 2ⁿ⁻¹, at most `longest_wait`, so that clients which
/// failed together do not come back together. A `Retry-After` of the service is waited for in full, and that time is added
/// to it.
///
/// When the next wait would end after `total`, the call fails at once with the last error. An attempt that still runs then is
/// ended, and the call fails with [`TimedOut`](crate::TransportErrorKind::TimedOut).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The greatest number of attempts, 4 by default. 1 means that nothing is repeated.
    pub attempts: u32,
    /// The time for all attempts and the waits between them, 90 seconds by default: more than the window of a rate limit.
    pub total: Duration,
    /// The longest wait after the first attempt, 250 milliseconds by default.
    pub first_wait: Duration,
    /// The longest wait after any attempt without a `Retry-After`, 10 seconds by default.
    pub longest_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 4,
            total: Duration::from_secs(90),
            first_wait: Duration::from_millis(250),
            longest_wait: Duration::from_secs(10),
        }
    }
}

impl RetryPolicy {
    /// Returns the policy that makes one attempt.
    pub fn never() -> Self {
        Self { attempts: 1, ..Self::default() }
    }

    /// Sets the greatest number of attempts.
    #[must_use]
    pub fn attempts(self, attempts: u32) -> Self {
        Self { attempts, ..self }
    }

    /// Sets the time for all attempts and the waits between them.
    #[must_use]
    pub fn total(self, total: Duration) -> Self {
        Self { total, ..self }
    }

    /// Sets the longest wait after the first attempt, and after any attempt.
    #[must_use]
    pub fn waits(self, first_wait: Duration, longest_wait: Duration) -> Self {
        Self { first_wait, longest_wait, ..self }
    }

    /// Returns the wait after this attempt, or `None` if it was the last one. `spent` is the time since the first.
    pub(crate) fn wait_after(&self, attempt: u32, error: &Error, spent: Duration, env: &Env) -> Option<Duration> {
        if attempt >= self.attempts || !error.is_transient() {
            return None;
        }
        let doubled = 2_u32.saturating_pow(attempt - 1);
        let longest = self.first_wait.saturating_mul(doubled).min(self.longest_wait);
        let share = f64::from(u32::from_be_bytes(env.bytes())) / f64::from(u32::MAX);
        let wait = error.retry_after().unwrap_or_default().saturating_add(longest.mul_f64(share));
        (spent.saturating_add(wait) <= self.total).then_some(wait)
    }
}

/// Returns the delay in a `Retry-After` header: seconds, or a date. One that is in the past is no delay.
pub(crate) fn retry_after(headers: &HeaderMap, env: &Env) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let now = Duration::from_micros(u64::try_from(env.now().as_micros()).unwrap_or_default());
    Some(at.saturating_sub(now))
}
