//! Rate limits (`docs/contract.md`, "Rate limits"): fixed windows of 60 seconds that start with their first request.
//!
//! An API key has one window for all its requests and one for each kind of write. A write counts in both, and a refused
//! request in neither. Requests without a valid key count against their address and never against a key. A window
//! stores a count only; the limit comes with each request, so a changed limit also applies to windows that have started.
//!
//! Where several processes share a database, the store counts for all of them ([`svc_core::store::RequestCounts`]), and
//! this process keeps the counts that the store returned last. If the store fails or takes longer than half a second,
//! this process continues to count alone.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt as _;
use http::{HeaderMap, HeaderName, HeaderValue};
use svc_core::accounts::grants::GrantId;
use svc_core::accounts::keys::{Caller, KeyId};
use svc_core::accounts::limits::{CappedCollection, RateLimits};
use svc_core::accounts::platform_keys::PlatformKeyId;
use svc_core::accounts::tenants::Tenant;
use svc_core::crypto::sha256;
use svc_core::store::{CountChange, RequestWindow, Store};
use svc_core::sync::lock;
use svc_core::values::Timestamp;
use uuid::Uuid;

/// The length of a window.
pub const WINDOW: Duration = Duration::from_secs(60);

/// How long a request waits for the store to count it.
const STORE_TIMEOUT: Duration = Duration::from_millis(500);

/// The least time between two warnings about a store that fails to count.
const WARNING_INTERVAL: Duration = Duration::from_secs(10);

/// The number of windows at which the ones that have ended are first removed.
const MIN_CLEANUP_SIZE: usize = 4096;

/// The bucket of all requests of an API key.
const GENERAL: &str = "general";
/// The bucket of requests without a valid key.
const PEER: &str = "peer";
/// The bucket of revocations by apps.
const REVOCATIONS: &str = "revocations";
/// The bucket of an app's requests for tokens with one grant.
const TOKENS: &str = "tokens";
/// The bucket of pages of the dashboard.
const PAGES: &str = "pages";
/// The pages of the dashboard per window of a session, or of an address where nobody is signed in.
const PAGE_LIMIT: u32 = 300;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");
const IETF: HeaderName = HeaderName::from_static("ratelimit");
const IETF_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The client whose requests are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Subject {
    /// A valid API key, by its id; or a platform key together with an account, by a digest of both ids.
    Key(KeyId),
    /// The address of a client without a valid key. Of an IPv6 address only the first 64 bits count, as providers assign
    /// them to one customer.
    Peer(IpAddr),
}

/// Returns what an address counts as: of an IPv6 address the first 64 bits, as providers assign them to one customer.
pub(crate) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => std::net::Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
        v4 @ IpAddr::V4(_) => v4,
    }
}

impl Subject {
    /// Returns the subject of a request without a valid key.
    fn peer(address: IpAddr) -> Self {
        Self::Peer(network_of(address))
    }

    /// Returns the id that the store counts the subject under.
    fn id(self) -> Uuid {
        match self {
            Self::Key(id) => id.uuid(),
            Self::Peer(IpAddr::V4(address)) => Uuid::from_u128(address.to_ipv6_mapped().to_bits()),
            Self::Peer(IpAddr::V6(address)) => Uuid::from_u128(address.to_bits()),
        }
    }
}

/// The limit of one kind of write, in addition to the limit of all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLimit {
    /// The id of the operation that is counted.
    pub operation: &'static str,
    /// The collection of the operation, by which a tenant can have a limit of its own.
    pub collection: CappedCollection,
    /// Requests per window.
    pub limit: u32,
}

/// The windows that a request counts in, with their limits.
#[derive(Clone, Copy, Debug)]
pub struct RateLimitKey {
    subject: Subject,
    /// The bucket that all requests of the subject count in.
    general_bucket: &'static str,
    general_limit: u32,
    write_limit: Option<WriteLimit>,
}

/// One of the windows that a request counts in.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    name: &'static str,
    limit: u32,
}

impl RateLimitKey {
    fn buckets(self) -> impl Iterator<Item = Bucket> {
        let write = self.write_limit.map(|write| Bucket { name: write.operation, limit: write.limit });
        std::iter::once(Bucket { name: self.general_bucket, limit: self.general_limit }).chain(write)
    }

    fn changes(self, at: Timestamp, by: i32) -> Vec<CountChange> {
        let subject = self.subject.id();
        self.buckets().map(|bucket| CountChange { subject, bucket: bucket.name, at, by }).collect()
    }
}

/// The state of the tighter one of the windows of a request, which the response headers show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimitStatus {
    limit: u32,
    remaining: u32,
    resets_at: Timestamp,
    reset_in: Duration,
    policy: &'static str,
}

/// The refusal of a request because a window is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimited {
    /// The state of the window.
    pub status: RateLimitStatus,
    /// The time until the window ends.
    pub retry_after: Duration,
}

/// Counts requests and refuses those over a limit.
pub struct RateLimiter {
    general_limit: u32,
    enforced: bool,
    store: Arc<dyn Store>,
    windows: Mutex<Windows>,
}

/// The windows that this process knows: its own counts, or the counts that the store returned last.
struct Windows {
    by_bucket: HashMap<(Subject, &'static str), RequestWindow>,
    /// The number of windows at which the ones that have ended are removed.
    cleanup_size: usize,
    /// When the last warning about a failing store was logged.
    warned_at: Option<Timestamp>,
}

impl RateLimiter {
    /// Creates a limiter of `general_limit` requests per window and subject. Unless `enforced`, requests are neither
    /// counted nor refused, and the headers always show the whole limit.
    pub fn new(general_limit: u32, enforced: bool, store: Arc<dyn Store>) -> Self {
        let windows = Windows { by_bucket: HashMap::new(), cleanup_size: MIN_CLEANUP_SIZE, warned_at: None };
        Self { general_limit, enforced, store, windows: Mutex::new(windows) }
    }

    /// Returns how many requests of a key count in its current window, as far as this process knows, and how many may. `None`
    /// when nothing is limited.
    pub(crate) fn usage(&self, key: KeyId, limits: &RateLimits, now: Timestamp) -> Option<(u32, u32)> {
        let general_limit = limits.rate_limit.map_or(self.general_limit, NonZeroU32::get);
        let status = self.status(
            RateLimitKey { subject: Subject::Key(key), general_bucket: GENERAL, general_limit, write_limit: None },
            now,
        );
        self.enforced.then_some((status.limit - status.remaining, status.limit))
    }

    /// Returns the windows of a request with a valid key. The limits of the tenant replace those of the server.
    pub fn key_of_caller(&self, caller: &Caller, write_limit: Option<WriteLimit>) -> RateLimitKey {
        self.key_with_limits(Subject::Key(caller.id.key_id()), &caller.limits, write_limit)
    }

    /// Returns the windows of a request with a valid platform key. It has windows for each account, with the limits of the
    /// account, so that work on one holds none on another up. An account that does not exist has no window of its own.
    pub fn key_of_platform_key(
        &self,
        key: PlatformKeyId,
        account: Option<&Tenant>,
        write_limit: Option<WriteLimit>,
    ) -> RateLimitKey {
        let id = match account {
            Some(account) => {
                let digest = sha256(&[key.uuid().as_bytes().as_slice(), account.id.0.as_bytes()].concat());
                digest.first_chunk().map_or(key.uuid(), |half| Uuid::from_bytes(*half))
            }
            None => key.uuid(),
        };
        let limits = account.map(|account| account.limits).unwrap_or_default();
        self.key_with_limits(Subject::Key(id.into()), &limits, write_limit)
    }

    fn key_with_limits(&self, subject: Subject, limits: &RateLimits, write_limit: Option<WriteLimit>) -> RateLimitKey {
        let limit_or = |own: Option<NonZeroU32>, default| own.map_or(default, NonZeroU32::get);
        let general_limit = limit_or(limits.rate_limit, self.general_limit);
        let write_limit = write_limit.map(|write| {
            let limit = limit_or(limits.write_rate_limits.of(write.collection), write.limit);
            WriteLimit { limit, ..write }
        });
        RateLimitKey { subject, general_bucket: GENERAL, general_limit, write_limit }
    }

    /// Returns the window of a request without a valid key.
    pub fn key_of_peer(&self, address: IpAddr) -> RateLimitKey {
        let subject = Subject::peer(address);
        RateLimitKey { subject, general_bucket: PEER, general_limit: self.general_limit, write_limit: None }
    }

    /// Returns the window of the revocations from an address, whichever app they are for. Anyone may send them, as public apps
    /// have no secret.
    pub(crate) fn revocations_of_peer(&self, address: IpAddr) -> RateLimitKey {
        RateLimitKey { general_bucket: REVOCATIONS, ..self.key_of_peer(address) }
    }

    /// Returns the window of the requests for tokens that an app sends with a grant. Their limit is that of all its requests to the
    /// API, which they do not use up.
    pub(crate) fn tokens_of_grant(&self, grant: GrantId, limits: &RateLimits) -> RateLimitKey {
        let subject = Subject::Key(grant.uuid().into());
        RateLimitKey { general_bucket: TOKENS, ..self.key_with_limits(subject, limits, None) }
    }

    /// Returns the window of pages for someone who is signed in, by the secret of the session.
    pub(crate) fn pages_of_session(&self, secret: &str) -> RateLimitKey {
        let digest = sha256(secret.as_bytes());
        let id = digest.first_chunk().map_or(Uuid::nil(), |half| Uuid::from_bytes(*half));
        Self::pages(Subject::Key(id.into()))
    }

    /// Returns the window of pages for an address where nobody is signed in.
    pub(crate) fn pages_of_peer(&self, address: IpAddr) -> RateLimitKey {
        Self::pages(Subject::peer(address))
    }

    fn pages(subject: Subject) -> RateLimitKey {
        RateLimitKey { subject, general_bucket: PAGES, general_limit: PAGE_LIMIT, write_limit: None }
    }

    /// Counts a request.
    ///
    /// # Errors
    ///
    /// Returns [`RateLimited`], and counts nothing, when a window is used up.
    pub async fn count(&self, limit_key: RateLimitKey, now: Timestamp) -> Result<RateLimitStatus, RateLimited> {
        if let Some(counts) = self.store.request_counts().filter(|_| self.enforced) {
            self.check(limit_key, now)?;
            let changes = limit_key.changes(now, 1);
            match tokio::time::timeout(STORE_TIMEOUT, counts.add(&changes, WINDOW)).await {
                Ok(Ok(windows)) => return self.apply_store_counts(limit_key, now, &windows),
                Ok(Err(error)) => self.warn_store_failed(&error, now),
                Err(_) => self.warn_store_failed(&"timed out", now),
            }
        }
        self.count_locally(limit_key, now)
    }

    /// Checks a request against the counts that this process knows, without counting it.
    ///
    /// # Errors
    ///
    /// Returns [`RateLimited`] when a window is used up.
    pub fn check(&self, limit_key: RateLimitKey, now: Timestamp) -> Result<(), RateLimited> {
        if !self.enforced {
            return Ok(());
        }
        self.windows().status(limit_key, now).check_remaining().map(drop)
    }

    /// Takes back the count of a request, such as one with a 304 response.
    pub fn refund(&self, limit_key: RateLimitKey, now: Timestamp) -> RateLimitStatus {
        if self.enforced && self.store.request_counts().is_some() {
            let store = Arc::clone(&self.store);
            let mut refund = Box::pin(async move {
                let Some(counts) = store.request_counts() else { return };
                if let Err(error) = counts.add(&limit_key.changes(now, -1), WINDOW).await {
                    tracing::debug!(%error, "cannot take back the count of a request");
                }
            });
            // Polled once before the response is sent, so that the store has it before the client's next request.
            if refund.as_mut().now_or_never().is_none() {
                tokio::spawn(refund);
            }
        }
        let mut windows = self.windows();
        for bucket in limit_key.buckets() {
            if let Some(window) = windows.by_bucket.get_mut(&(limit_key.subject, bucket.name)) {
                window.used = window.used.saturating_sub(1);
            }
        }
        windows.status(limit_key, now)
    }

    /// Returns the state of the windows without counting a request.
    pub fn status(&self, limit_key: RateLimitKey, now: Timestamp) -> RateLimitStatus {
        self.windows().status(limit_key, now)
    }

    fn count_locally(&self, limit_key: RateLimitKey, now: Timestamp) -> Result<RateLimitStatus, RateLimited> {
        let mut windows = self.windows();
        let status = windows.status(limit_key, now);
        if !self.enforced {
            return Ok(status);
        }
        status.check_remaining()?;
        windows.remove_ended(now);
        for bucket in limit_key.buckets() {
            let new = RequestWindow { started: now, used: 0 };
            let window = windows.by_bucket.entry((limit_key.subject, bucket.name)).or_insert(new);
            if has_ended(*window, now) {
                *window = new;
            }
            window.used += 1;
        }
        Ok(windows.status(limit_key, now))
    }

    /// Keeps the counts that the store returned for a request, which it has counted in them.
    fn apply_store_counts(
        &self,
        limit_key: RateLimitKey,
        now: Timestamp,
        counts: &[RequestWindow],
    ) -> Result<RateLimitStatus, RateLimited> {
        let mut windows = self.windows();
        windows.remove_ended(now);
        let mut over_limit = false;
        for (bucket, window) in limit_key.buckets().zip(counts) {
            windows.by_bucket.insert((limit_key.subject, bucket.name), *window);
            over_limit |= window.used > bucket.limit;
        }
        let status = windows.status(limit_key, now);
        drop(windows);
        if over_limit {
            // Requests at other nodes used the window up, and a refused request does not count.
            self.refund(limit_key, now);
            return Err(RateLimited { status, retry_after: status.reset_in });
        }
        Ok(status)
    }

    fn warn_store_failed(&self, error: &dyn std::fmt::Display, now: Timestamp) {
        let mut windows = self.windows();
        if windows.warned_at.is_none_or(|warned_at| now.since(warned_at) >= WARNING_INTERVAL || now < warned_at) {
            windows.warned_at = Some(now);
            tracing::warn!(%error, "cannot count requests in the database; this node counts alone");
        }
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        lock(&self.windows)
    }
}

impl Windows {
    /// Removes the windows that have ended whenever the number of windows has doubled, so that the cost per request is
    /// constant on average.
    fn remove_ended(&mut self, now: Timestamp) {
        if self.by_bucket.len() >= self.cleanup_size {
            self.by_bucket.retain(|_, window| !has_ended(*window, now));
            self.cleanup_size = (self.by_bucket.len() * 2).max(MIN_CLEANUP_SIZE);
        }
    }

    /// Returns the state of the window of all requests or of that of writes, whichever is tighter.
    fn status(&self, limit_key: RateLimitKey, now: Timestamp) -> RateLimitStatus {
        let RateLimitKey { subject, general_bucket, general_limit, write_limit } = limit_key;
        let status = |bucket, limit: u32, policy| {
            let window = self.by_bucket.get(&(subject, bucket)).copied().filter(|window| !has_ended(*window, now));
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
        let general = status(general_bucket, general_limit, "default");
        let Some(write_limit) = write_limit else { return general };
        let write = status(write_limit.operation, write_limit.limit, "write");
        // When both windows are used up, the client has to wait for the later reset.
        let tightness = |status: &RateLimitStatus| (status.remaining, std::cmp::Reverse(status.resets_at));
        if tightness(&general) < tightness(&write) { general } else { write }
    }
}

/// Returns whether a window has ended.
///
/// A window that starts a whole window length in the future has ended too, as the clock was set back. One that starts a
/// little later has not: it was started by a node whose clock is ahead.
fn has_ended(window: RequestWindow, now: Timestamp) -> bool {
    window.started.since(now) >= WINDOW || now.since(window.started) >= WINDOW
}

impl RateLimitStatus {
    fn check_remaining(self) -> Result<Self, RateLimited> {
        if self.remaining == 0 { Err(RateLimited { status: self, retry_after: self.reset_in }) } else { Ok(self) }
    }

    /// Returns the name of the window: `default` for that of all requests, `write` for that of writes.
    pub fn policy(&self) -> &'static str {
        self.policy
    }

    /// Adds the `X-RateLimit-*` headers and the fields of draft-ietf-httpapi-ratelimit-headers.
    pub fn write(&self, headers: &mut HeaderMap) {
        let resets_at = self.resets_at.as_seconds() + i64::from(self.resets_at.as_micros() % 1_000_000 != 0);
        let seconds_left = self.reset_in.as_secs() + u64::from(self.reset_in.subsec_nanos() > 0);
        headers.insert(LIMIT, self.limit.into());
        headers.insert(REMAINING, self.remaining.into());
        headers.insert(RESET, resets_at.into());
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
