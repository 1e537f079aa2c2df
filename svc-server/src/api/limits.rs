//! Rate limits (decisions §8): fixed windows of 60 s that begin with the first request.
//!
//! A key has one window for everything and one for each kind of write. A refused request costs nothing in
//! either. Requests without a valid key count against their address, apart from all keys. A window only counts: how
//! many it takes comes along with each request, so a limit that changes holds in windows that have begun.
//!
//! Where several processes share a database, the store counts for all of them ([`svc_core::store::RequestCounts`]), and what is known
//! here is what it said last. Should it fail or be slow, this process counts on by itself.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use svc_core::accounts::keys::Caller;
use svc_core::accounts::limits::CappedCollection;
use svc_core::store::{CountChange, RequestWindow, Store};
use svc_core::sync::lock;
use svc_core::values::Timestamp;
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
enum Subject {
    /// A valid key.
    Key(Uuid),
    /// An address without one; of IPv6 the first 64 bits, which one customer has.
    Peer(IpAddr),
}

impl Subject {
    /// The subject of a request without a valid key.
    fn peer(address: IpAddr) -> Self {
        Self::Peer(match address {
            IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
                Some(v4) => v4.into(),
                None => std::net::Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
            },
            v4 => v4,
        })
    }

    /// The bucket that all its requests count in.
    fn all(self) -> &'static str {
        match self {
            Self::Key(_) => GENERAL,
            Self::Peer(_) => PEER,
        }
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
    /// Of which collection that is.
    pub collection: CappedCollection,
    /// Requests per window.
    pub limit: u32,
}

/// A request as it counts: whose it is, and how many such a window takes.
#[derive(Clone, Copy, Debug)]
pub struct RateLimitKey {
    subject: Subject,
    general: u32,
    cap: Option<Cap>,
}

impl RateLimitKey {
    /// The buckets that it counts in, with their limits.
    fn buckets(self) -> impl Iterator<Item = (&'static str, u32)> {
        let cap = self.cap.map(|cap| (cap.operation, cap.limit));
        std::iter::once((self.subject.all(), self.general)).chain(cap)
    }

    fn changes(self, at: Timestamp, by: i32) -> Vec<CountChange> {
        self.buckets().map(|(bucket, _)| CountChange { subject: self.subject.id(), bucket, at, by }).collect()
    }
}

/// Where a subject stands after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitStatus {
    limit: u32,
    remaining: u32,
    resets_at: Timestamp,
    reset_in: Duration,
    policy: &'static str,
}

/// A window is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimited {
    /// Where the subject stands.
    pub status: RateLimitStatus,
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

    /// How a request of a key counts: by the limits of its tenant, where that has its own.
    pub fn of_key(&self, caller: &Caller, cap: Option<Cap>) -> RateLimitKey {
        let own = |limit: Option<NonZeroU32>, default| limit.map_or(default, NonZeroU32::get);
        let general = own(caller.limits.rate_limit, self.general);
        let cap = cap.map(|cap| {
            let limit = own(caller.limits.write_rate_limits.of(cap.collection), cap.limit);
            Cap { limit, ..cap }
        });
        RateLimitKey { subject: Subject::Key(caller.key_id), general, cap }
    }

    /// How a request without a valid key counts.
    pub fn of_peer(&self, address: IpAddr) -> RateLimitKey {
        RateLimitKey { subject: Subject::peer(address), general: self.general, cap: None }
    }

    /// Counts a request, unless a window is used up.
    ///
    /// # Errors
    /// [`RateLimited`].
    pub async fn take(&self, limit_key: RateLimitKey, now: Timestamp) -> Result<RateLimitStatus, RateLimited> {
        if let Some(counts) = self.store.request_counts().filter(|_| self.enforced) {
            self.check(limit_key, now)?;
            let changes = limit_key.changes(now, 1);
            match tokio::time::timeout(PATIENCE, counts.add(&changes, WINDOW)).await {
                Ok(Ok(windows)) => return self.judge(limit_key, now, &windows),
                Ok(Err(error)) => self.tell(&error, now),
                Err(_) => self.tell(&"it takes too long", now),
            }
        }
        self.take_alone(limit_key, now)
    }

    /// Whether a request would pass, as far as is known here.
    ///
    /// # Errors
    /// [`RateLimited`].
    pub fn check(&self, limit_key: RateLimitKey, now: Timestamp) -> Result<(), RateLimited> {
        if !self.enforced {
            return Ok(());
        }
        self.known().status(limit_key, now).unless_used_up().map(drop)
    }

    /// Gives a counted request back: a 304 costs nothing.
    pub fn refund(&self, limit_key: RateLimitKey, now: Timestamp) -> RateLimitStatus {
        if self.enforced && self.store.request_counts().is_some() {
            let store = Arc::clone(&self.store);
            let mut giving = Box::pin(async move {
                let Some(counts) = store.request_counts() else { return };
                if let Err(error) = counts.add(&limit_key.changes(now, -1), WINDOW).await {
                    tracing::debug!(%error, "a request that costs nothing was not given back");
                }
            });
            // Asked for before the answer goes out, so that the client's next request finds it given back.
            if giving.as_mut().now_or_never().is_none() {
                tokio::spawn(giving);
            }
        }
        let mut known = self.known();
        for (bucket, _) in limit_key.buckets() {
            if let Some(window) = known.windows.get_mut(&(limit_key.subject, bucket)) {
                window.used = window.used.saturating_sub(1);
            }
        }
        known.status(limit_key, now)
    }

    /// Where a subject stands, without counting.
    pub fn peek(&self, limit_key: RateLimitKey, now: Timestamp) -> RateLimitStatus {
        self.known().status(limit_key, now)
    }

    fn take_alone(&self, limit_key: RateLimitKey, now: Timestamp) -> Result<RateLimitStatus, RateLimited> {
        let mut known = self.known();
        let status = known.status(limit_key, now);
        if !self.enforced {
            return Ok(status);
        }
        status.unless_used_up()?;
        known.sweep(now);
        for (bucket, _) in limit_key.buckets() {
            let fresh = RequestWindow { started: now, used: 0 };
            let window = known.windows.entry((limit_key.subject, bucket)).or_insert(fresh);
            if ended(*window, now) {
                *window = fresh;
            }
            window.used += 1;
        }
        Ok(known.status(limit_key, now))
    }

    /// What follows from the windows that the store has counted this request in.
    fn judge(
        &self,
        limit_key: RateLimitKey,
        now: Timestamp,
        windows: &[RequestWindow],
    ) -> Result<RateLimitStatus, RateLimited> {
        let mut known = self.known();
        known.sweep(now);
        let mut over = false;
        for ((bucket, limit), window) in limit_key.buckets().zip(windows) {
            known.windows.insert((limit_key.subject, bucket), *window);
            over |= window.used > limit;
        }
        let status = known.status(limit_key, now);
        drop(known);
        if over {
            // Requests elsewhere came first.
            self.refund(limit_key, now);
            return Err(RateLimited { status, retry_after: status.reset_in });
        }
        Ok(status)
    }

    /// Says in the log, now and then, that limits are this process's own for the time being.
    fn tell(&self, error: &dyn std::fmt::Display, now: Timestamp) {
        let mut known = self.known();
        if known.told_at.is_none_or(|told_at| now.since(told_at) >= SILENCE || now < told_at) {
            known.told_at = Some(now);
            tracing::warn!(%error, "requests are not counted for all nodes together: each node counts by itself");
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        lock(&self.known)
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

    /// The tighter of the general window and that of the cap.
    fn status(&self, limit_key: RateLimitKey, now: Timestamp) -> RateLimitStatus {
        let RateLimitKey { subject, general, cap } = limit_key;
        let of = |bucket, limit: u32, policy| {
            let window = self.windows.get(&(subject, bucket)).copied().filter(|window| !ended(*window, now));
            let started = window.map_or(now, |window| window.started);
            let resets_at = started.checked_add(WINDOW).unwrap_or(started);
            RateLimitStatus {
                limit,
                remaining: limit.saturating_sub(window.map_or(0, |window| window.used)),
                resets_at,
                reset_in: resets_at.since(now),
                policy,
            }
        };
        let general = of(subject.all(), general, "default");
        let Some(cap) = cap else { return general };
        let own = of(cap.operation, cap.limit, "write");
        // Of two windows that are used up the later reset is the one to wait for.
        let tightness = |status: &RateLimitStatus| (status.remaining, std::cmp::Reverse(status.resets_at));
        if tightness(&general) < tightness(&own) { general } else { own }
    }
}

/// Also a window that lies far in the future has ended: the clock was set back. One that begins a little later is
/// that of a node whose clock is ahead.
fn ended(window: RequestWindow, now: Timestamp) -> bool {
    window.started.since(now) >= WINDOW || now.since(window.started) >= WINDOW
}

impl RateLimitStatus {
    fn unless_used_up(self) -> Result<Self, RateLimited> {
        if self.remaining == 0 { Err(RateLimited { status: self, retry_after: self.reset_in }) } else { Ok(self) }
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
        let status = format!("\"{}\";r={};t={seconds_left}", self.policy, self.remaining);
        for (name, value) in [(IETF_POLICY, policy), (IETF, status)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
