//! The time of a database that has a clock of its own, as a process knows it between two comparisons.
//!
//! All processes on one database go by its time, whatever their machines show: the times of records, the windows of rate
//! limits, the expiry of keys, sessions and tokens, and leases. A process knows the time of the database that was seen last, and
//! adds what its machine has counted since.
//!
//! That count stands still while a machine sleeps. So a process whose own clock differs from the time that it knows by more than
//! [`MAX_SKEW`] takes no writes until the clocks were compared again. This is checked when a write takes its time, not only when
//! it is queued: it may wait for a connection and for the row of its account in between.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use svc_core::env::{Clock, Env};
use svc_core::error::StoreError;
use svc_core::store::StoreResult;
use svc_core::sync::lock;
use svc_core::values::Timestamp;
use tokio::sync::Notify;

/// The largest difference between the clocks with which a process takes writes.
pub(crate) const MAX_SKEW: Duration = Duration::from_secs(10);

/// The time of the database. Its clones share what was seen last.
#[derive(Clone)]
pub(crate) struct DatabaseClock(Arc<State>);

struct State {
    /// The clock of this machine.
    machine: Env,
    /// `None` before the first comparison, and for a simulated clock, which is not compared.
    reference: Mutex<Option<Reference>>,
    /// Asks for a comparison before the next minute.
    requested: Notify,
}

/// A time of the database, and when it was that time.
#[derive(Clone, Copy)]
struct Reference {
    database: Timestamp,
    seen_at: Instant,
}

impl DatabaseClock {
    /// Returns the time of a database that was not asked for it yet: until then, it is that of the machine.
    pub(crate) fn new(machine: Env) -> Self {
        Self(Arc::new(State { machine, reference: Mutex::default(), requested: Notify::new() }))
    }

    /// Sets the time of the database that was seen last, and by how much it may be wrong. A difference that is no larger is none,
    /// so that processes whose machines have one time go by one time.
    pub(crate) fn set(&self, database: Timestamp, seen_at: Instant, error: Duration) {
        let machine = self.0.machine.now().minus(seen_at.elapsed());
        let difference = machine.since(database).max(database.since(machine));
        let database = if difference <= error { machine } else { database };
        *lock(&self.0.reference) = Some(Reference { database, seen_at });
    }

    /// Returns the time of the database, if it was seen.
    fn seen(&self) -> Option<Timestamp> {
        let Reference { database, seen_at } = (*lock(&self.0.reference))?;
        Some(database.checked_add(seen_at.elapsed()).unwrap_or(database))
    }

    /// Returns the error of a write if the clock of the machine differs too much from that of the database, and asks for a
    /// comparison.
    pub(crate) fn check(&self) -> StoreResult<()> {
        let checked = self.compare();
        if checked.is_err() {
            self.0.requested.notify_one();
        }
        checked
    }

    pub(crate) fn compare(&self) -> StoreResult<()> {
        let Some(database) = self.seen() else { return Ok(()) };
        let now = self.0.machine.now();
        let skew = now.since(database).max(database.since(now));
        if skew <= MAX_SKEW {
            return Ok(());
        }
        let direction = if now > database { "ahead of" } else { "behind" };
        Err(StoreError::ClockSkew(format!(
            "the clock of this machine shows {now}, {} s {direction} the database's; at most {} s are allowed. Set it, and \
             keep NTP running on both machines",
            skew.as_secs(),
            MAX_SKEW.as_secs()
        )))
    }

    /// Waits until a write has asked for a comparison.
    pub(crate) async fn requested(&self) {
        self.0.requested.notified().await;
    }
}

impl Clock for DatabaseClock {
    fn now(&self) -> Timestamp {
        self.seen().unwrap_or_else(|| self.0.machine.now())
    }

    fn is_simulated(&self) -> bool {
        self.0.machine.is_clock_simulated()
    }
}

#[cfg(test)]
mod tests {
    use svc_core::env::SystemEntropy;

    use super::*;

    #[derive(Clone)]
    struct Fixed(Timestamp);

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    #[test]
    fn a_difference_that_may_be_none_is_none() {
        let at = Timestamp::from_micros(1_800_000_000_000_000);
        let error = Duration::from_secs(1);
        for (ahead, is_seen) in [(0, false), (900, false), (1_100, true)] {
            let ahead = Duration::from_millis(ahead);
            for machine in [at.checked_add(ahead).unwrap(), at.minus(ahead)] {
                let clock = DatabaseClock::new(Env::new(Fixed(machine), SystemEntropy));
                clock.set(at, Instant::now(), error);
                let wanted = if is_seen { at } else { machine };
                let shown = clock.now();
                assert!(shown.since(wanted).max(wanted.since(shown)) < Duration::from_millis(100), "{shown}, {wanted}");
            }
        }
    }
}
