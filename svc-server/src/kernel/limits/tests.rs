//! Tests of windows that this process counts and of windows that the store counts.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use svc_core::env::Env;
use svc_core::error::{Error, StoreError};
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Access, RequestCounts, UnitOfWork};
use svc_core::webhooks::deliveries::DeliveryWakeup;

use super::*;

/// A store that counts for several processes, unless it is set to be unavailable.
struct SharedStore {
    store: MemoryStore,
    windows: Mutex<HashMap<(Uuid, &'static str), RequestWindow>>,
    unavailable: Mutex<bool>,
}

impl SharedStore {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            store: MemoryStore::new(Env::system()),
            windows: Mutex::default(),
            unavailable: Mutex::new(false),
        })
    }

    fn used(&self, bucket: &'static str) -> u32 {
        self.windows
            .lock()
            .unwrap()
            .iter()
            .filter(|((_, name), _)| *name == bucket)
            .map(|(_, window)| window.used)
            .sum()
    }
}

#[async_trait]
impl Store for SharedStore {
    async fn run(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
        self.store.run(access, name, work).await
    }
    fn env(&self) -> &Env {
        self.store.env()
    }
    fn delivery_wakeup(&self) -> &DeliveryWakeup {
        self.store.delivery_wakeup()
    }
    fn request_counts(&self) -> Option<&dyn RequestCounts> {
        Some(self)
    }
    fn check_writable(&self) -> Result<(), StoreError> {
        self.store.check_writable()
    }
    async fn close(&self) {
        self.store.close().await;
    }
}

#[async_trait]
impl RequestCounts for SharedStore {
    async fn add(&self, changes: &[CountChange], length: Duration) -> Result<Vec<RequestWindow>, StoreError> {
        if *self.unavailable.lock().unwrap() {
            return Err(StoreError::Unavailable("gone".to_owned()));
        }
        let mut windows = self.windows.lock().unwrap();
        let add = |change: &CountChange| {
            let new = RequestWindow { started: change.at, used: 0 };
            let window = windows.entry((change.subject, change.bucket)).or_insert(new);
            if change.at.since(window.started) >= length {
                *window = new;
            }
            window.used = window.used.saturating_add_signed(change.by);
            *window
        };
        Ok(changes.iter().map(add).collect())
    }
}

fn single_node(general_limit: u32) -> RateLimiter {
    RateLimiter::new(general_limit, true, Arc::new(MemoryStore::new(Env::system())))
}

/// Returns the windows of a subject with the limits of the server.
fn limit_key(limits: &RateLimiter, subject: Subject, write_limit: Option<WriteLimit>) -> RateLimitKey {
    RateLimitKey { subject, general_bucket: GENERAL, general_limit: limits.general_limit, write_limit }
}

fn count(
    limits: &RateLimiter,
    subject: Subject,
    write_limit: Option<WriteLimit>,
    now: Timestamp,
) -> Result<RateLimitStatus, RateLimited> {
    count_with(limits, limit_key(limits, subject, write_limit), now)
}

fn count_with(limits: &RateLimiter, limit_key: RateLimitKey, now: Timestamp) -> Result<RateLimitStatus, RateLimited> {
    limits.count(limit_key, now).now_or_never().unwrap()
}

fn write_limit(operation: &'static str, collection: CappedCollection, limit: u32) -> Option<WriteLimit> {
    Some(WriteLimit { operation, collection, limit })
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_micros(1_000_000_000_000_000 + millis * 1000)
}

fn key(n: u128) -> Subject {
    Subject::Key(Uuid::from_u128(n).into())
}

#[test]
fn a_window_starts_with_the_first_request_and_lasts_60_seconds() {
    let limits = single_node(2);
    assert_eq!(count(&limits, key(1), None, at(500)).unwrap().remaining, 1);
    assert!(limits.check(limit_key(&limits, key(1), None), at(600)).is_ok(), "a check counts nothing");
    assert_eq!(count(&limits, key(1), None, at(900)).unwrap().remaining, 0);
    assert!(limits.check(limit_key(&limits, key(1), None), at(1500)).is_err());
    let RateLimited { status, retry_after: wait } = count(&limits, key(1), None, at(1500)).unwrap_err();
    assert_eq!((status.remaining, wait), (0, Duration::from_secs(59)));
    assert!(count(&limits, key(1), None, at(60_499)).is_err());
    assert_eq!(count(&limits, key(1), None, at(60_500)).unwrap().remaining, 1);
    assert!(count(&limits, key(2), None, at(1500)).is_ok(), "each key has its own window");
}

#[test]
fn a_refused_write_counts_in_neither_window() {
    let limits = single_node(3);
    let quotes = write_limit("quotes.create", CappedCollection::Quotes, 1);
    assert_eq!(count(&limits, key(1), quotes, at(0)).unwrap().limit, 1, "the status is that of the tighter window");
    assert!(count(&limits, key(1), quotes, at(1)).is_err());
    assert_eq!(count(&limits, key(1), None, at(2)).unwrap().remaining, 1);
    assert!(count(&limits, key(1), write_limit("jobs.create", CappedCollection::Jobs, 9), at(3)).is_ok());
    let RateLimited { status, .. } =
        count(&limits, key(1), write_limit("jobs.create", CappedCollection::Jobs, 9), at(4)).unwrap_err();
    assert_eq!(status.limit, 3, "the window of all requests is the tighter one now");
}

#[test]
fn the_window_of_writes_is_shown_if_both_are_equally_tight() {
    let limits = single_node(3);
    let jobs = write_limit("jobs.create", CappedCollection::Jobs, 3);
    assert_eq!(count(&limits, key(1), jobs, at(0)).unwrap().policy(), "write");
    assert_eq!(count(&limits, key(1), None, at(1)).unwrap().policy(), "default");
    assert_eq!(count(&limits, key(1), jobs, at(2)).unwrap().policy(), "default", "it is the tighter one now");
}

#[test]
fn headers_round_the_end_of_a_window_up_to_seconds() {
    let limits = single_node(3);
    let written = |subject, now| {
        let mut headers = HeaderMap::new();
        limits.status(limit_key(&limits, subject, None), at(now)).write(&mut headers);
        let text = |name: &HeaderName| headers[name].to_str().unwrap().to_owned();
        [text(&RESET), text(&IETF)]
    };
    count(&limits, key(1), None, at(500)).unwrap();
    assert_eq!(written(key(1), 500), ["1000000061", "\"default\";r=2;t=60"]);
    assert_eq!(written(key(1), 1499), ["1000000061", "\"default\";r=2;t=60"]);
    assert_eq!(written(key(1), 1500), ["1000000061", "\"default\";r=2;t=59"]);
    count(&limits, key(2), None, at(1000)).unwrap();
    assert_eq!(written(key(2), 1001), ["1000000061", "\"default\";r=2;t=60"]);
}

#[tokio::test]
async fn without_limits_nothing_is_counted() {
    let store = SharedStore::new();
    let limits = RateLimiter::new(1, false, store.clone());
    for _ in 0..3 {
        assert_eq!(count(&limits, key(1), None, at(0)).unwrap().remaining, 1, "the whole limit");
        assert_eq!(limits.refund(limit_key(&limits, key(1), None), at(0)).remaining, 1);
    }
    assert!(store.windows.lock().unwrap().is_empty() && limits.windows().by_bucket.is_empty());
}

#[test]
fn a_refund_takes_one_request_back() {
    let limits = single_node(3);
    count(&limits, key(1), None, at(0)).unwrap();
    count(&limits, key(1), None, at(0)).unwrap();
    assert_eq!(limits.refund(limit_key(&limits, key(1), None), at(1)).remaining, 2, "one, not more");
}

#[test]
fn a_changed_limit_applies_to_a_window_that_has_started() {
    let limits = single_node(5);
    let with = |general_limit, writes| {
        let write_limit = write_limit("quotes.create", CappedCollection::Quotes, writes);
        RateLimitKey { subject: key(1), general_bucket: GENERAL, general_limit, write_limit }
    };
    for _ in 0..3 {
        count_with(&limits, with(5, 3), at(0)).unwrap();
    }
    // The limits are raised one after the other; the refused requests do not count.
    assert_eq!(count_with(&limits, with(5, 3), at(1)).unwrap_err().status.limit, 3);
    assert_eq!(count_with(&limits, with(4, 9), at(2)).unwrap().remaining, 0);
    assert_eq!(count_with(&limits, with(4, 9), at(3)).unwrap_err().status.limit, 4);
    assert_eq!(count_with(&limits, with(9, 6), at(4)).unwrap().remaining, 1);
    // A limit below the count refuses requests until the window ends, and then applies to the next window.
    let refused = count_with(&limits, with(2, 6), at(5)).unwrap_err();
    assert_eq!((refused.status.limit, refused.status.remaining), (2, 0));
    assert_eq!(refused.status.resets_at, at(60_000), "the window is the same");
    assert_eq!(count_with(&limits, with(2, 6), at(60_000)).unwrap().remaining, 1);
}

#[test]
fn a_clock_that_is_set_back_starts_new_windows() {
    let limits = single_node(1);
    count(&limits, key(1), None, at(3_600_000)).unwrap();
    assert!(count(&limits, key(1), None, at(0)).is_ok());
}

#[test]
fn ended_windows_are_removed() {
    let limits = single_node(1);
    for n in 0..MIN_CLEANUP_SIZE as u128 {
        count(&limits, key(n), None, at(0)).unwrap();
    }
    count(&limits, key(0), None, at(60_000)).unwrap();
    assert_eq!(limits.windows().by_bucket.len(), 1);
}

#[test]
fn ipv6_addresses_with_the_same_first_64_bits_are_one_subject() {
    let peer = |text: &str| Subject::peer(text.parse().unwrap());
    assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
    assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
    assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
}

#[tokio::test]
async fn two_nodes_share_a_window() {
    let store = SharedStore::new();
    let nodes = [0, 1].map(|_| RateLimiter::new(60, true, store.clone()));
    let mut accepted = 0;
    for n in 0..100 {
        accepted += usize::from(count(&nodes[n % 2], key(1), None, at(100)).is_ok());
    }
    assert_eq!(accepted, 60);
    assert!(count(&nodes[1], key(2), None, at(100)).is_ok(), "each key has its own window");
    assert!(count(&nodes[1], key(1), None, at(60_100)).is_ok(), "a new window");
}

#[tokio::test]
async fn refunds_apply_to_all_nodes() {
    let store = SharedStore::new();
    let nodes = [0, 1].map(|_| RateLimiter::new(60, true, store.clone()));
    let quotes = write_limit("quotes.create", CappedCollection::Quotes, 1);
    count(&nodes[0], key(1), quotes, at(0)).unwrap();
    let RateLimited { status, .. } = count(&nodes[1], key(1), quotes, at(1)).unwrap_err();
    assert_eq!((status.limit, status.remaining), (1, 0));
    // The refund runs in the background.
    let refunded = async || {
        while (store.used(GENERAL), store.used("quotes.create")) != (1, 1) {
            tokio::task::yield_now().await;
        }
    };
    refunded().await;
    count(&nodes[1], key(1), None, at(2)).unwrap();
    assert_eq!(nodes[1].refund(limit_key(&nodes[1], key(1), None), at(3)).remaining, 59);
    refunded().await;
}

#[tokio::test]
async fn a_changed_limit_applies_at_all_nodes() {
    let store = SharedStore::new();
    let nodes = [0, 1].map(|_| RateLimiter::new(1, true, store.clone()));
    let with =
        |general_limit| RateLimitKey { subject: key(1), general_bucket: GENERAL, general_limit, write_limit: None };
    count_with(&nodes[0], with(1), at(0)).unwrap();
    count_with(&nodes[1], with(1), at(1)).unwrap_err();
    assert_eq!(count_with(&nodes[1], with(3), at(2)).unwrap().remaining, 1);
    assert_eq!(count_with(&nodes[0], with(3), at(3)).unwrap().remaining, 0);
    count_with(&nodes[1], with(2), at(4)).unwrap_err();
}

#[tokio::test]
async fn a_node_counts_alone_while_the_store_is_unavailable() {
    let store = SharedStore::new();
    let limits = RateLimiter::new(3, true, store.clone());
    count(&limits, key(1), None, at(0)).unwrap();
    *store.unavailable.lock().unwrap() = true;
    assert_eq!(
        count(&limits, key(1), None, at(1)).unwrap().remaining,
        1,
        "the count continues from the last known one"
    );
    count(&limits, key(1), None, at(2)).unwrap();
    count(&limits, key(1), None, at(3)).unwrap_err();
}
