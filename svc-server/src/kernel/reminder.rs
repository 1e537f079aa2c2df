//! The reminder that an API is served without its background work.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use svc_core::values::Timestamp;

/// How long an API may serve before its background work has started.
const START_GRACE: Duration = Duration::from_secs(10);
/// How often the log repeats that the background work does not run.
const REMINDER_INTERVAL: Duration = Duration::from_secs(60);

/// Reminds of background work that does not run.
///
/// It is the time in microseconds from which the next request logs an error.
pub(crate) struct Reminder(AtomicI64);

impl Reminder {
    const NEVER: i64 = i64::MAX;

    /// Creates the reminder of an API that is created at `now`.
    pub(crate) fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(micros_after(now, START_GRACE)))
    }

    /// Is quiet for as long as the work runs.
    pub(crate) fn silence_while_running(&self) -> RunningWork<'_> {
        self.0.store(Self::NEVER, Ordering::Relaxed);
        RunningWork { reminder: self, has_ended: false }
    }

    /// Logs an error if the work does not run, at most once a minute.
    pub(crate) fn check(&self, now: Timestamp) {
        if self.is_due(now) {
            tracing::error!(
                "this API is served without its background work: no webhook is sent, and nothing that has expired is \
                 deleted; build it with svc_server::Builder, and spawn `run` of the Background that `build` returns"
            );
        }
    }

    fn is_due(&self, now: Timestamp) -> bool {
        let due_at = self.0.load(Ordering::Relaxed);
        let next = micros_after(now, REMINDER_INTERVAL);
        // Of requests at the same time, one logs.
        now.as_micros() >= due_at && self.0.compare_exchange(due_at, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

fn micros_after(now: Timestamp, wait: Duration) -> i64 {
    now.checked_add(wait).unwrap_or(now).as_micros()
}

/// The background work as long as it runs. Dropped before the work has ended, as when its task is aborted, it lets the
/// reminder begin again.
pub(crate) struct RunningWork<'a> {
    reminder: &'a Reminder,
    /// Whether the work has ended as asked.
    pub(crate) has_ended: bool,
}

impl Drop for RunningWork<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.reminder.0.store(0, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(second: i64) -> Timestamp {
        Timestamp::from_micros(1_000_000_000_000_000 + second * 1_000_000)
    }

    #[test]
    fn missing_work_is_reported_within_a_minute_and_once_a_minute() {
        let reminder = Reminder::new(second(0));
        let reported: Vec<i64> = (0..200).filter(|now| reminder.is_due(second(*now))).collect();
        assert_eq!(reported, [10, 70, 130, 190]);
    }

    #[test]
    fn work_that_runs_or_has_ended_as_asked_is_not_reported() {
        let reminder = Reminder::new(second(0));
        let mut running = reminder.silence_while_running();
        assert!(!reminder.is_due(second(1_000)));
        running.has_ended = true;
        drop(running);
        assert!(!reminder.is_due(second(1_000)));
    }

    #[test]
    fn work_that_is_aborted_is_reported() {
        let reminder = Reminder::new(second(0));
        drop(reminder.silence_while_running());
        assert!(reminder.is_due(second(1)));
    }
}
