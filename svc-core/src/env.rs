//! The clock, the source of randomness, and the identifiers made from both.
//!
//! No other code of the workspace asks the machine for the time or for randomness. A test that passes in its own clock
//! and entropy gets the same ids, times and signatures in every run.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use uuid::Uuid;

use crate::sync::lock;
use crate::values::{EventKinds, HostPolicy, Timestamp};

/// A source of the time of day.
pub trait Clock: Send + Sync {
    /// Returns the current time. It may jump, also backwards.
    fn now(&self) -> Timestamp;

    /// Returns whether the time is made up, as in a test. A store compares only other clocks with that of its database.
    fn is_simulated(&self) -> bool {
        false
    }
}

/// A source of random bytes, fit for keys and secrets unless its documentation says otherwise.
pub trait Entropy: Send + Sync {
    /// Fills the whole of `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// The number of live webhook subscriptions that a tenant may have unless an operator sets another one.
pub const DEFAULT_MAX_WEBHOOKS: u32 = 100;

/// The environment of the rules: a clock, a source of randomness, the operator's policy for webhooks, and the kinds of
/// events. Cheap to clone.
#[derive(Clone)]
pub struct Env {
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    /// Which hosts may receive webhooks.
    pub webhook_hosts: HostPolicy,
    /// How many live webhook subscriptions a tenant may have that has no limit of its own.
    pub max_webhooks: u32,
    /// The kinds of events, to which an application can add its own.
    pub event_kinds: EventKinds,
}

impl Env {
    /// Returns an environment with this clock and this source of randomness. Only public hosts may receive webhooks, and
    /// a tenant may have [`DEFAULT_MAX_WEBHOOKS`] subscriptions.
    pub fn new(clock: impl Clock + 'static, entropy: impl Entropy + 'static) -> Self {
        Self {
            clock: Arc::new(clock),
            entropy: Arc::new(entropy),
            webhook_hosts: HostPolicy::Public,
            max_webhooks: DEFAULT_MAX_WEBHOOKS,
            event_kinds: EventKinds::default(),
        }
    }

    /// Returns an environment with the machine's clock and randomness.
    pub fn system() -> Self {
        Self::new(SystemClock, SystemEntropy)
    }

    /// Returns this environment with another clock.
    #[must_use]
    pub fn with_clock(&self, clock: impl Clock + 'static) -> Self {
        Self { clock: Arc::new(clock), ..self.clone() }
    }

    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns whether the time is made up, as in a test.
    pub fn is_clock_simulated(&self) -> bool {
        self.clock.is_simulated()
    }

    /// Returns `N` random bytes.
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes);
        bytes
    }

    /// Returns a new UUIDv7 (RFC 9562 §5.7) for something that is created at `at`.
    ///
    /// The twelve bits after the version have the fraction of the millisecond (method 3), so the ids of one tenant sort
    /// like their `created_at`.
    ///
    /// ```
    /// use svc_core::env::Env;
    /// let env = Env::system();
    /// let now = env.now();
    /// let (first, second): (uuid::Uuid, uuid::Uuid) = (env.id(now), env.id(now.next()));
    /// assert!(first < second);
    /// ```
    pub fn id<I: From<Uuid>>(&self, at: Timestamp) -> I {
        let random = u128::from(u64::from_be_bytes(self.bytes()) >> 2);
        Uuid::from_u128(first_id_at(at).as_u128() | random).into()
    }
}

/// Returns the smallest id that [`Env::id`] can return for `at`. Every id of an earlier microsecond sorts before it.
pub fn first_id_at(at: Timestamp) -> Uuid {
    let micros = u128::from(at.as_micros().max(0).unsigned_abs());
    let (millis, rest) = (micros / 1000, micros % 1000);
    let bits = (millis & 0xffff_ffff_ffff) << 80 | 0x7 << 76 | (rest * 4096 / 1000) << 64 | 0b10 << 62;
    Uuid::from_u128(bits)
}

/// Returns the time that an id was made for.
///
/// For a UUIDv7 of another program, this is the microsecond that it sorts in: the id is at or after [`first_id_at`] of that
/// time, and before [`first_id_at`] of the next microsecond.
pub fn time_of_id(id: Uuid) -> Timestamp {
    let bits = id.as_u128();
    // The last microsecond whose twelve bits, rounded down, are not greater than these.
    let rest = ((bits >> 64 & 0xfff) * 1000 + 1000).div_ceil(4096) - 1;
    Timestamp::from_micros(i64::try_from((bits >> 80) * 1000 + rest).unwrap_or(i64::MAX))
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Env")
            .field("webhook_hosts", &self.webhook_hosts)
            .field("max_webhooks", &self.max_webhooks)
            .field("event_kinds", &self.event_kinds)
            .finish_non_exhaustive()
    }
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the only place that asks the machine for the time")]
    fn now(&self) -> Timestamp {
        let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }
}

/// Secure random bytes, from one generator per thread that the operating system seeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(clippy::disallowed_methods, reason = "the only place that asks the machine for randomness")]
    fn fill(&self, bytes: &mut [u8]) {
        rand::rng().fill_bytes(bytes);
    }
}

/// A clock that stands still until [`advance`](Self::advance) or [`set`](Self::set), for tests and simulations. Its clones
/// share one time.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<Timestamp>>);

impl ManualClock {
    /// Returns a clock that shows `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    /// Moves the clock forward by `step`.
    pub fn advance(&self, step: Duration) {
        let mut now = lock(&self.0);
        *now = now.checked_add(step).unwrap_or(*now);
    }

    /// Sets the clock to `now`, which may be in its past.
    pub fn set(&self, now: Timestamp) {
        *lock(&self.0) = now;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *lock(&self.0)
    }

    fn is_simulated(&self) -> bool {
        true
    }
}

/// Random bytes that are the same in every run, for tests and simulations. Never use it to make real secrets.
#[derive(Debug)]
pub struct SeededEntropy(Mutex<StdRng>);

impl SeededEntropy {
    /// Returns a source that gives the same bytes for the same seed.
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(StdRng::seed_from_u64(seed)))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        lock(&self.0).fill_bytes(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuid_v7_and_sort_by_time() {
        let env = Env::new(SystemClock, SeededEntropy::new(1));
        let start = Timestamp::parse("2026-03-14T15:09:26.999998Z").unwrap();
        let mut last = Uuid::nil();
        let mut at = start;
        for _ in 0..2_000 {
            let id: Uuid = env.id(at);
            assert_eq!((id.get_version_num(), id.get_variant()), (7, uuid::Variant::RFC4122));
            assert!(id > last && id >= first_id_at(at) && id < first_id_at(at.next()));
            assert_eq!(time_of_id(id), at);
            (last, at) = (id, at.next());
        }
    }

    #[test]
    fn an_id_from_elsewhere_sorts_within_the_microsecond_of_its_time() {
        let millisecond = first_id_at(Timestamp::parse("2026-03-14T15:09:26.999Z").unwrap()).as_u128();
        for twelve_bits in 0..4096_u128 {
            for rest in [0, (1 << 62) - 1] {
                let id = Uuid::from_u128(millisecond | twelve_bits << 64 | rest);
                let at = time_of_id(id);
                assert!(first_id_at(at) <= id && id < first_id_at(at.next()), "{twelve_bits}");
            }
        }
    }
}
