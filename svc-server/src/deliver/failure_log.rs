//! The log lines of failed attempts.
//!
//! A line tells of each failed attempt, another of a delivery that has no retries left, and one of a subscription that is
//! paused. When an endpoint fails often, such as a large one that is down, the lines would fill the disk. So from the sixth
//! failure in a minute on, the rest is one line at the end of that minute, which counts them, and so is each minute after
//! it until the endpoint fails less often.
//!
//! A line names the host of the endpoint and not its URL, whose path may hold a secret of the subscriber.

use std::collections::HashMap;
use std::time::Duration;

use svc_core::webhooks::engine::FailedAttempt;
use svc_core::webhooks::subscriptions::SubscriptionId;
use tokio::time::Instant;
use tracing::field;

const MINUTE: Duration = Duration::from_secs(60);
/// The highest number of failures of an endpoint in a minute that get a line each.
const MAX_LINES: u32 = 5;
/// How often ended minutes are searched for. A sender may poll thousands of times a second.
const SEARCH_INTERVAL: Duration = Duration::from_secs(1);

/// The subject of a line. Each kind is counted by itself, so that no failed attempt hides a delivery that failed for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Attempt,
    LastAttempt,
}

/// Writes the log lines of failed attempts.
#[derive(Default)]
pub(super) struct FailureLog {
    minutes: HashMap<(SubscriptionId, Kind), Minute>,
    searched_at: Option<Instant>,
}

/// The failures of one kind at one endpoint in one minute.
struct Minute {
    began_at: Instant,
    /// Whether there were too many in the minute before, so that none gets a line of its own.
    is_flooded: bool,
    failures: u32,
    /// The last of the failures that have no line yet.
    last: Option<FailedAttempt>,
}

impl FailureLog {
    /// Writes the lines of a failed attempt, now or when the minute ends.
    pub(super) fn record(&mut self, failure: FailedAttempt, now: Instant) {
        if failure.has_paused {
            write_pause(&failure);
        }
        if failure.is_last() {
            self.count(Kind::LastAttempt, failure.clone(), now);
        }
        self.count(Kind::Attempt, failure, now);
    }

    fn count(&mut self, kind: Kind, failure: FailedAttempt, now: Instant) {
        let minute = self.minutes.entry((failure.delivery.subscription_id, kind));
        let minute = minute.or_insert_with(|| Minute::new(now, false));
        if minute.is_over(now) {
            *minute = minute.end(kind, now);
        }
        minute.count(kind, failure);
    }

    /// Writes the lines of all minutes that are over.
    pub(super) fn end_minutes(&mut self, now: Instant) {
        if self.searched_at.is_some_and(|at| now.duration_since(at) < SEARCH_INTERVAL) {
            return;
        }
        self.searched_at = Some(now);
        self.minutes.retain(|(_, kind), minute| {
            if minute.is_over(now) {
                *minute = minute.end(*kind, now);
                return minute.is_flooded;
            }
            true
        });
    }

    /// Writes the lines of all minutes, before the process ends.
    pub(super) fn finish(self) {
        for ((_, kind), minute) in self.minutes {
            minute.write(kind);
        }
    }
}

impl Minute {
    fn new(began_at: Instant, is_flooded: bool) -> Self {
        Self { began_at, is_flooded, failures: 0, last: None }
    }

    fn is_over(&self, now: Instant) -> bool {
        now.duration_since(self.began_at) >= MINUTE
    }

    fn count(&mut self, kind: Kind, failure: FailedAttempt) {
        self.failures += 1;
        if self.is_flooded || self.failures > MAX_LINES {
            self.last = Some(failure);
        } else {
            write(kind, &failure, None);
        }
    }

    /// Writes the line of the failures that have none yet.
    fn write(&self, kind: Kind) {
        if let Some(last) = &self.last {
            let written = if self.is_flooded { 0 } else { MAX_LINES };
            write(kind, last, Some(self.failures - written));
        }
    }

    /// Ends this minute, and returns the next one.
    fn end(&self, kind: Kind, now: Instant) -> Self {
        self.write(kind);
        Self::new(now, self.failures > MAX_LINES)
    }
}

/// Writes a line of one kind. With a `count` it stands for so many failures, of which `failure` is the last.
fn write(kind: Kind, failure: &FailedAttempt, count: Option<u32>) {
    let FailedAttempt { delivery, host, error, .. } = failure;
    match kind {
        Kind::Attempt => tracing::info!(
            tenant = %delivery.tenant_id,
            subscription = %delivery.subscription_id,
            host,
            delivery = %delivery.id,
            attempt = delivery.attempts,
            status = delivery.last_status,
            error,
            next_attempt_at = delivery.next_attempt_at.map(field::display),
            count,
            "a delivery attempt failed"
        ),
        Kind::LastAttempt => tracing::warn!(
            tenant = %delivery.tenant_id,
            subscription = %delivery.subscription_id,
            host,
            delivery = %delivery.id,
            attempt = delivery.attempts,
            status = delivery.last_status,
            error,
            count,
            "a delivery has failed and has no retries left; a replay sends it again"
        ),
    }
}

fn write_pause(failure: &FailedAttempt) {
    let FailedAttempt { delivery, host, error, .. } = failure;
    tracing::warn!(
        tenant = %delivery.tenant_id,
        subscription = %delivery.subscription_id,
        host,
        delivery = %delivery.id,
        status = delivery.last_status,
        error,
        "paused a subscription after ten failed attempts in a row; what is held for it is deleted after the retention"
    );
}

#[cfg(test)]
mod tests;
