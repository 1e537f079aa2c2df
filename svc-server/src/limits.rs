//! Rate limits (decisions §8): fixed windows of 60 s that begin with the first request.
//!
//! A key has one window for everything and one for each kind of write. A refused request costs nothing in
//! either. Requests without a valid key count against their address, apart from all keys.
//!
//! Where several processes share a database, the store counts for all of them ([`svc_core::store::RequestCounts`]), and what is known
//! here is what it said last. Should it fail or be slow, this process counts on by itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use svc_core::store::{CountChange, RequestWindow, Store};
use svc_core::types::Timestamp;
use uuid::Uuid;

/// Length of a window.
pub const WINDOW: Duration = Duration::from_secs(60);

/// How long a request waits for the store to count it.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long the log keeps silent about a store that does not count.
const SILENCE: Duration = Duration::from_secs(10);

/// Windows that are kept before ended ones are swept out.
const SWEEP_AT: usize = 4096;

/// The bucket of all requests of a key.
const GENERAL: &str = "general";
/// The bucket of an address.
const PEER: &str = "peer";

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const IETF: HeaderName = HeaderName::from_static("ratelimit");
const IETF_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Who is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Subject {
    /// A valid key.
    Key(Uuid),
    /// An address without one; of IPv6 the first 64 bits, which one customer has.
    Peer(IpAddr),
}

impl Subject {
    /// The subject of a request without a valid key.
    pub fn peer(address: IpAddr) -> Self {
        Self::Peer(match address {
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => v4.into(),
                None => std::net::Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
            },
            v4 => v4,
        })
    }
}

impl Subject {
    /// The bucket that all its requests count in.
    fn all(self) -> &'static str {
        match self {
            Self::Key(_) => GENERAL,
            Self::Peer(_) => PEER,
        }
    }

    /// The buckets that a request counts in.
    fn buckets(self, cap: Option<Cap>) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.all()).chain(cap.map(|cap| cap.operation))
    }

    fn id(self) -> Uuid {
        match self {
            Self::Key(id) => id,
            Self::Peer(IpAddr::V4(address)) => Uuid::from_u128(address.to_ipv6_mapped().to_bits()),
            Self::Peer(IpAddr::V6(address)) => Uuid::from_u128(address.to_bits()),
        }
    }
}

/// A cap of its own, beside the general one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Which operation it counts.
    pub operation: &'static str,
    /// Requests per window.
    pub limit: u32,
}

/// Where a subject stands after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    limit: u32,
    remaining: u32,
    resets_at: Timestamp,
    reset_in: Duration,
    policy: &'static str,
}

/// A window is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Where the subject stands.
    pub standing: Standing,
    /// How long to wait.
    pub retry_after: Duration,
}

/// Counts requests.
pub struct Limits {
    general: u32,
    enforced: bool,
    store: Arc<dyn Store>,
    known: Mutex<Known>,
}

/// What this process knows of the windows: all there is, or what the store said last.
struct Known {
    windows: HashMap<(Subject, &'static str), RequestWindow>,
    sweep_at: usize,
    /// When the log last told that this process counts by itself.
    told_at: Option<Timestamp>,
}

impl Limits {
    /// `general` requests per window and subject. Without `enforced` nothing is counted or refused, and the
    /// headers tell of the whole limit.
    pub fn new(general: u32, enforced: bool, store: Arc<dyn Store>) -> Self {
        let known = Known { windows: HashMap::new(), sweep_at: SWEEP_AT, told_at: None };
        Self { general, enforced, store, known: Mutex::new(known) }
    }

    /// Counts a request, unless a window is used up.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn take(&self, subject: Subject, cap: Option<Cap>, now: Timestamp) -> Result<Standing, Refused> {
        if let Some(counts) = self.store.request_counts().filter(|_| self.enforced) {
            self.check(subject, cap, now)?;
            let changes = changes(subject, cap, now, 1);
            match tokio::time::timeout(PATIENCE, counts.add(&changes, WINDOW)).await {
                Ok(Ok(windows)) => return self.judge(subject, cap, now, &windows),
                Ok(Err(why)) => self.tell(&why, now),
                Err(_) => self.tell(&"it takes too long", now),
            }
        }
        self.take_alone(subject, cap, now)
    }

    /// Whether a request would pass, as far as is known here.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn check(&self, subject: Subject, cap: Option<Cap>, now: Timestamp) -> Result<(), Refused> {
        if !self.enforced {
            return Ok(());
        }
        self.standing(&self.known(), subject, cap, now).unless_used_up().map(drop)
    }

    /// Gives a counted request back: a 304 costs nothing.
    pub fn refund(&self, subject: Subject, cap: Option<Cap>, now: Timestamp) -> Standing {
        if self.enforced && self.store.request_counts().is_some() {
            let store = Arc::clone(&self.store);
            let mut giving = Box::pin(async move {
                let Some(counts) = store.request_counts() else { return };
                if let Err(why) = counts.add(&changes(subject, cap, now, -1), WINDOW).await {
                    tracing::debug!(%why, "a request that costs nothing was not given back");
                }
            });
            // Asked for before the answer goes out, so that the client's next request finds it given back.
            if giving.as_mut().now_or_never().is_none() {
                tokio::spawn(giving);
            }
        }
        let mut known = self.known();
        for bucket in subject.buckets(cap) {
            if let Some(window) = known.windows.get_mut(&(subject, bucket)) {
                window.used = window.used.saturating_sub(1);
            }
        }
        self.standing(&known, subject, cap, now)
    }

    /// Where a subject stands, without counting.
    pub fn peek(&self, subject: Subject, now: Timestamp) -> Standing {
        self.standing(&self.known(), subject, None, now)
    }

    fn take_alone(&self, subject: Subject, cap: Option<Cap>, now: Timestamp) -> Result<Standing, Refused> {
        let mut known = self.known();
        let standing = self.standing(&known, subject, cap, now);
        if !self.enforced {
            return Ok(standing);
        }
        standing.unless_used_up()?;
        known.sweep(now);
        for bucket in subject.buckets(cap) {
            let window = known.windows.entry((subject, bucket)).or_insert(RequestWindow { started: now, used: 0 });
            if ended(*window, now) {
                *window = RequestWindow { started: now, used: 0 };
            }
            window.used += 1;
        }
        Ok(self.standing(&known, subject, cap, now))
    }

    /// What follows from the windows that the store has counted this request in.
    fn judge(
        &self,
        subject: Subject,
        cap: Option<Cap>,
        now: Timestamp,
        windows: &[RequestWindow],
    ) -> Result<Standing, Refused> {
        let mut known = self.known();
        known.sweep(now);
        for (bucket, window) in subject.buckets(cap).zip(windows) {
            known.windows.insert((subject, bucket), *window);
        }
        let limits = [Some(self.general), cap.map(|cap| cap.limit)].into_iter().flatten();
        let over = windows.iter().zip(limits).any(|(window, limit)| window.used > limit);
        let standing = self.standing(&known, subject, cap, now);
        drop(known);
        if over {
            // Requests elsewhere came first.
            self.refund(subject, cap, now);
            return Err(Refused { standing, retry_after: standing.reset_in });
        }
        Ok(standing)
    }

    /// Says in the log, now and then, that limits are this process's own for the time being.
    fn tell(&self, why: &dyn std::fmt::Display, now: Timestamp) {
        let mut known = self.known();
        if known.told_at.is_none_or(|told_at| now.since(told_at) >= SILENCE || now < told_at) {
            known.told_at = Some(now);
            tracing::warn!(%why, "requests are not counted for all nodes together: each node counts by itself");
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tighter of the general window and that of the cap.
    fn standing(&self, known: &Known, subject: Subject, cap: Option<Cap>, now: Timestamp) -> Standing {
        let of = |bucket, limit: u32, policy| {
            let window = known.windows.get(&(subject, bucket)).copied().filter(|window| !ended(*window, now));
            let started = window.map_or(now, |window| window.started);
            let resets_at = started.checked_add(WINDOW).unwrap_or(started);
            Standing {
                limit,
                remaining: limit.saturating_sub(window.map_or(0, |window| window.used)),
                resets_at,
                reset_in: resets_at.since(now),
                policy,
            }
        };
        let general = of(subject.all(), self.general, "default");
        let Some(cap) = cap else { return general };
        let own = of(cap.operation, cap.limit, "write");
        // Of two windows that are used up the later reset is the one to wait for.
        let tightness = |standing: &Standing| (standing.remaining, std::cmp::Reverse(standing.resets_at));
        if tightness(&general) < tightness(&own) { general } else { own }
    }
}

impl Known {
    /// Drops ended windows whenever their number has doubled, so each request pays a constant share.
    fn sweep(&mut self, now: Timestamp) {
        if self.windows.len() >= self.sweep_at {
            self.windows.retain(|_, window| !ended(*window, now));
            self.sweep_at = (self.windows.len() * 2).max(SWEEP_AT);
        }
    }
}

/// Also a window that lies far in the future has ended: the clock was set back. One that begins a little later is
/// that of a node whose clock is ahead.
fn ended(window: RequestWindow, now: Timestamp) -> bool {
    window.started.since(now) >= WINDOW || now.since(window.started) >= WINDOW
}

fn changes(subject: Subject, cap: Option<Cap>, at: Timestamp, by: i32) -> Vec<CountChange> {
    subject.buckets(cap).map(|bucket| CountChange { subject: subject.id(), bucket, at, by }).collect()
}

impl Standing {
    fn unless_used_up(self) -> Result<Self, Refused> {
        if self.remaining == 0 { Err(Refused { standing: self, retry_after: self.reset_in }) } else { Ok(self) }
    }

    /// Which window it is about: `default` or `write`.
    pub fn policy(&self) -> &'static str {
        self.policy
    }

    /// Writes `X-RateLimit-*` and the IETF fields (draft-ietf-httpapi-ratelimit-headers).
    pub fn write(&self, headers: &mut HeaderMap) {
        let ceiling = self.resets_at.as_seconds() + i64::from(self.resets_at.as_micros() % 1_000_000 != 0);
        let seconds_left = self.reset_in.as_secs() + u64::from(self.reset_in.subsec_nanos() > 0);
        headers.insert(LIMIT, self.limit.into());
        headers.insert(REMAINING, self.remaining.into());
        headers.insert(RESET, ceiling.into());
        let policy = format!("\"{}\";q={};w={}", self.policy, self.limit, WINDOW.as_secs());
        let standing = format!("\"{}\";r={};t={seconds_left}", self.policy, self.remaining);
        for (name, value) in [(IETF_POLICY, policy), (IETF, standing)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
