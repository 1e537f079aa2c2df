//! Rate limits (decisions §8): fixed windows of 60 s that begin with the first request.
//!
//! A key has one window for everything and one for each kind of write. A refused request costs nothing in
//! either. Requests without a valid key count against their address, apart from all keys.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use svc_core::types::Timestamp;
use uuid::Uuid;

/// Length of a window.
pub const WINDOW: Duration = Duration::from_secs(60);

/// Windows that are kept before ended ones are swept out.
const SWEEP_AT: usize = 4096;

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

/// A cap of its own, beside the general one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Which operation it counts: its position in the route table.
    pub operation: usize,
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

/// Counts requests in the memory of this process.
pub struct Limits {
    general: u32,
    enforced: bool,
    windows: Mutex<Windows>,
}

#[derive(Default)]
struct Windows {
    open: HashMap<(Subject, Option<usize>), Window>,
    sweep_at: usize,
}

#[derive(Clone, Copy)]
struct Window {
    started: Timestamp,
    used: u32,
}

impl Limits {
    /// `general` requests per window and subject. Without `enforced` nothing is counted or refused, and the
    /// headers tell of the whole limit.
    pub fn new(general: u32, enforced: bool) -> Self {
        Self { general, enforced, windows: Mutex::new(Windows { open: HashMap::new(), sweep_at: SWEEP_AT }) }
    }

    /// Counts a request, unless a window is used up.
    ///
    /// # Errors
    /// The standing and how long to wait.
    pub fn take(&self, subject: Subject, cap: Option<Cap>, now: Timestamp) -> Result<Standing, (Standing, Duration)> {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = self.standing(&windows, subject, cap, now);
        if !self.enforced {
            return Ok(standing);
        }
        if standing.remaining == 0 {
            return Err((standing, standing.reset_in));
        }
        windows.sweep(now);
        windows.count(subject, None, now);
        if let Some(cap) = cap {
            windows.count(subject, Some(cap.operation), now);
        }
        Ok(self.standing(&windows, subject, cap, now))
    }

    /// Gives a counted request back: a 304 costs nothing.
    pub fn refund(&self, subject: Subject, cap: Option<Cap>, now: Timestamp) -> Standing {
        let mut windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        for bucket in std::iter::once(None).chain(cap.map(|cap| Some(cap.operation))) {
            if let Some(window) = windows.open.get_mut(&(subject, bucket)) {
                window.used = window.used.saturating_sub(1);
            }
        }
        self.standing(&windows, subject, cap, now)
    }

    /// Where a subject stands, without counting.
    pub fn peek(&self, subject: Subject, now: Timestamp) -> Standing {
        let windows = self.windows.lock().unwrap_or_else(PoisonError::into_inner);
        self.standing(&windows, subject, None, now)
    }

    /// The tighter of the general window and that of the cap.
    fn standing(&self, windows: &Windows, subject: Subject, cap: Option<Cap>, now: Timestamp) -> Standing {
        let of = |bucket, limit: u32, policy| {
            let window = windows.current(subject, bucket, now);
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
        let general = of(None, self.general, "default");
        let Some(cap) = cap else { return general };
        let own = of(Some(cap.operation), cap.limit, "write");
        // Of two windows that are used up the later reset is the one to wait for.
        let tightness = |standing: &Standing| (standing.remaining, std::cmp::Reverse(standing.resets_at));
        if tightness(&general) < tightness(&own) { general } else { own }
    }
}

impl Windows {
    fn current(&self, subject: Subject, bucket: Option<usize>, now: Timestamp) -> Option<Window> {
        self.open.get(&(subject, bucket)).copied().filter(|window| !window.ended(now))
    }

    fn count(&mut self, subject: Subject, bucket: Option<usize>, now: Timestamp) {
        let fresh = Window { started: now, used: 0 };
        let window = self.open.entry((subject, bucket)).or_insert(fresh);
        if window.ended(now) {
            *window = fresh;
        }
        window.used += 1;
    }

    /// Drops ended windows whenever their number has doubled, so each request pays a constant share.
    fn sweep(&mut self, now: Timestamp) {
        if self.open.len() >= self.sweep_at {
            self.open.retain(|_, window| !window.ended(now));
            self.sweep_at = (self.open.len() * 2).max(SWEEP_AT);
        }
    }
}

impl Window {
    /// Also a window that lies in the future has ended: the clock was set back.
    fn ended(self, now: Timestamp) -> bool {
        now < self.started || now.since(self.started) >= WINDOW
    }
}

impl Standing {
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
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_micros(1_000_000_000_000_000 + millis * 1000)
    }

    fn key(n: u128) -> Subject {
        Subject::Key(Uuid::from_u128(n))
    }

    #[test]
    fn a_window_begins_with_the_first_request_and_lasts_a_minute() {
        let limits = Limits::new(2, true);
        assert_eq!(limits.take(key(1), None, at(500)).unwrap().remaining, 1);
        assert_eq!(limits.take(key(1), None, at(900)).unwrap().remaining, 0);
        let (standing, wait) = limits.take(key(1), None, at(1500)).unwrap_err();
        assert_eq!((standing.remaining, wait), (0, Duration::from_secs(59)));
        assert!(limits.take(key(1), None, at(60_499)).is_err());
        assert_eq!(limits.take(key(1), None, at(60_500)).unwrap().remaining, 1);
        assert!(limits.take(key(2), None, at(1500)).is_ok(), "keys do not share");
    }

    #[test]
    fn a_refused_write_costs_nothing_in_either_window() {
        let limits = Limits::new(3, true);
        let cap = Some(Cap { operation: 7, limit: 1 });
        assert_eq!(limits.take(key(1), cap, at(0)).unwrap().limit, 1, "the tighter one is told");
        assert!(limits.take(key(1), cap, at(1)).is_err());
        assert_eq!(limits.take(key(1), None, at(2)).unwrap().remaining, 1);
        assert!(limits.take(key(1), Some(Cap { operation: 8, limit: 9 }), at(3)).is_ok());
        let (standing, _) = limits.take(key(1), Some(Cap { operation: 8, limit: 9 }), at(4)).unwrap_err();
        assert_eq!(standing.limit, 3, "now the general one is tighter");
    }

    #[test]
    fn a_refund_gives_back() {
        let limits = Limits::new(3, true);
        limits.take(key(1), None, at(0)).unwrap();
        limits.take(key(1), None, at(0)).unwrap();
        assert_eq!(limits.refund(key(1), None, at(1)).remaining, 2, "one, not more");
    }

    #[test]
    fn a_clock_set_back_locks_nobody_out() {
        let limits = Limits::new(1, true);
        limits.take(key(1), None, at(3_600_000)).unwrap();
        assert!(limits.take(key(1), None, at(0)).is_ok());
    }

    #[test]
    fn ended_windows_are_swept() {
        let limits = Limits::new(1, true);
        for n in 0..SWEEP_AT as u128 {
            limits.take(key(n), None, at(0)).unwrap();
        }
        limits.take(key(0), None, at(60_000)).unwrap();
        assert_eq!(limits.windows.lock().unwrap().open.len(), 1);
    }

    #[test]
    fn an_ipv6_customer_is_one_peer() {
        let peer = |text: &str| Subject::peer(text.parse().unwrap());
        assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
        assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
        assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
    }
}
