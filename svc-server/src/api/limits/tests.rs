//! Windows, counted here and counted by the store.

use async_trait::async_trait;
use futures_util::FutureExt as _;
use svc_core::env::Env;
use svc_core::error::{Error, StoreError};
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Access, RequestCounts, UnitOfWork};
use svc_core::webhooks::deliveries::DeliveryWakeup;

use super::*;

/// A store that counts for several processes, unless it is away.
struct Shared {
    store: MemoryStore,
    windows: Mutex<HashMap<(Uuid, &'static str), RequestWindow>>,
    away: Mutex<bool>,
}

impl Shared {
    fn new() -> Arc<Self> {
        Arc::new(Self { store: MemoryStore::new(Env::system()), windows: Mutex::default(), away: Mutex::new(false) })
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
impl Store for Shared {
    async fn run(&self, access: Access, name: &'static str, job: UnitOfWork) -> Result<(), Error> {
        self.store.run(access, name, job).await
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
}

#[async_trait]
impl RequestCounts for Shared {
    async fn add(&self, changes: &[CountChange], length: Duration) -> Result<Vec<RequestWindow>, StoreError> {
        if *self.away.lock().unwrap() {
            return Err(StoreError::Unavailable("gone".to_owned()));
        }
        let mut windows = self.windows.lock().unwrap();
        let add = |change: &CountChange| {
            let fresh = RequestWindow { started: change.at, used: 0 };
            let window = windows.entry((change.subject, change.bucket)).or_insert(fresh);
            if change.at.since(window.started) >= length {
                *window = fresh;
            }
            window.used = window.used.saturating_add_signed(change.by);
            *window
        };
        Ok(changes.iter().map(add).collect())
    }
}

fn alone(general: u32) -> Limits {
    Limits::new(general, true, Arc::new(MemoryStore::new(Env::system())))
}

/// By the server's limits.
fn limit_key(limits: &Limits, subject: Subject, cap: Option<Cap>) -> RateLimitKey {
    RateLimitKey { subject, general: limits.general, cap }
}

fn take(limits: &Limits, subject: Subject, cap: Option<Cap>, now: Timestamp) -> Result<RateLimitStatus, RateLimited> {
    take_as(limits, limit_key(limits, subject, cap), now)
}

fn take_as(limits: &Limits, limit_key: RateLimitKey, now: Timestamp) -> Result<RateLimitStatus, RateLimited> {
    limits.take(limit_key, now).now_or_never().unwrap()
}

fn cap(operation: &'static str, collection: CappedCollection, limit: u32) -> Option<Cap> {
    Some(Cap { operation, collection, limit })
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_micros(1_000_000_000_000_000 + millis * 1000)
}

fn key(n: u128) -> Subject {
    Subject::Key(Uuid::from_u128(n))
}

#[test]
fn a_window_begins_with_the_first_request_and_lasts_a_minute() {
    let limits = alone(2);
    assert_eq!(take(&limits, key(1), None, at(500)).unwrap().remaining, 1);
    assert_eq!(take(&limits, key(1), None, at(900)).unwrap().remaining, 0);
    let RateLimited { status, retry_after: wait } = take(&limits, key(1), None, at(1500)).unwrap_err();
    assert_eq!((status.remaining, wait), (0, Duration::from_secs(59)));
    assert!(take(&limits, key(1), None, at(60_499)).is_err());
    assert_eq!(take(&limits, key(1), None, at(60_500)).unwrap().remaining, 1);
    assert!(take(&limits, key(2), None, at(1500)).is_ok(), "keys do not share");
}

#[test]
fn a_refused_write_costs_nothing_in_either_window() {
    let limits = alone(3);
    let quotes = cap("quotes.create", CappedCollection::Quotes, 1);
    assert_eq!(take(&limits, key(1), quotes, at(0)).unwrap().limit, 1, "the tighter one is told");
    assert!(take(&limits, key(1), quotes, at(1)).is_err());
    assert_eq!(take(&limits, key(1), None, at(2)).unwrap().remaining, 1);
    assert!(take(&limits, key(1), cap("jobs.create", CappedCollection::Jobs, 9), at(3)).is_ok());
    let RateLimited { status, .. } =
        take(&limits, key(1), cap("jobs.create", CappedCollection::Jobs, 9), at(4)).unwrap_err();
    assert_eq!(status.limit, 3, "now the general one is tighter");
}

#[test]
fn a_refund_gives_back() {
    let limits = alone(3);
    take(&limits, key(1), None, at(0)).unwrap();
    take(&limits, key(1), None, at(0)).unwrap();
    assert_eq!(limits.refund(limit_key(&limits, key(1), None), at(1)).remaining, 2, "one, not more");
}

#[test]
fn a_limit_that_changes_holds_in_a_window_that_has_begun() {
    let limits = alone(5);
    let with = |general, writes| {
        let cap = cap("quotes.create", CappedCollection::Quotes, writes);
        RateLimitKey { subject: key(1), general, cap }
    };
    for _ in 0..3 {
        take_as(&limits, with(5, 3), at(0)).unwrap();
    }
    // Raised, first the one and then the other, after a refusal that cost nothing.
    assert_eq!(take_as(&limits, with(5, 3), at(1)).unwrap_err().status.limit, 3);
    assert_eq!(take_as(&limits, with(4, 9), at(2)).unwrap().remaining, 0);
    assert_eq!(take_as(&limits, with(4, 9), at(3)).unwrap_err().status.limit, 4);
    assert_eq!(take_as(&limits, with(9, 6), at(4)).unwrap().remaining, 1);
    // Lowered below what was used up: nothing more until the window ends, and then by the new limit.
    let refused = take_as(&limits, with(2, 6), at(5)).unwrap_err();
    assert_eq!((refused.status.limit, refused.status.remaining), (2, 0));
    assert_eq!(refused.status.resets_at, at(60_000), "the window is the same");
    assert_eq!(take_as(&limits, with(2, 6), at(60_000)).unwrap().remaining, 1);
}

#[test]
fn a_clock_set_back_locks_nobody_out() {
    let limits = alone(1);
    take(&limits, key(1), None, at(3_600_000)).unwrap();
    assert!(take(&limits, key(1), None, at(0)).is_ok());
}

#[test]
fn ended_windows_are_swept() {
    let limits = alone(1);
    for n in 0..SWEEP_AT as u128 {
        take(&limits, key(n), None, at(0)).unwrap();
    }
    take(&limits, key(0), None, at(60_000)).unwrap();
    assert_eq!(limits.known().windows.len(), 1);
}

#[test]
fn an_ipv6_customer_is_one_peer() {
    let peer = |text: &str| Subject::peer(text.parse().unwrap());
    assert_eq!(peer("2001:db8::1"), peer("2001:db8::ffff:1"));
    assert_ne!(peer("2001:db8::1"), peer("2001:db8:0:1::1"));
    assert_eq!(peer("::ffff:192.0.2.1"), peer("192.0.2.1"));
}

#[tokio::test]
async fn two_nodes_share_a_window() {
    let store = Shared::new();
    let nodes = [0, 1].map(|_| Limits::new(60, true, store.clone()));
    let mut passed = 0;
    for n in 0..100 {
        passed += usize::from(take(&nodes[n % 2], key(1), None, at(100)).is_ok());
    }
    assert_eq!(passed, 60);
    assert!(take(&nodes[1], key(2), None, at(100)).is_ok(), "keys do not share");
    assert!(take(&nodes[1], key(1), None, at(60_100)).is_ok(), "a new window");
}

#[tokio::test]
async fn what_is_refused_or_not_modified_is_given_back_to_all() {
    let store = Shared::new();
    let nodes = [0, 1].map(|_| Limits::new(60, true, store.clone()));
    let quotes = cap("quotes.create", CappedCollection::Quotes, 1);
    take(&nodes[0], key(1), quotes, at(0)).unwrap();
    let RateLimited { status, .. } = take(&nodes[1], key(1), quotes, at(1)).unwrap_err();
    assert_eq!((status.limit, status.remaining), (1, 0));
    // Beside the request.
    let given_back = async || {
        while (store.used(GENERAL), store.used("quotes.create")) != (1, 1) {
            tokio::task::yield_now().await;
        }
    };
    given_back().await;
    take(&nodes[1], key(1), None, at(2)).unwrap();
    assert_eq!(nodes[1].refund(limit_key(&nodes[1], key(1), None), at(3)).remaining, 59);
    given_back().await;
}

#[tokio::test]
async fn a_limit_that_changes_holds_for_all_nodes() {
    let store = Shared::new();
    let nodes = [0, 1].map(|_| Limits::new(1, true, store.clone()));
    let with = |general| RateLimitKey { subject: key(1), general, cap: None };
    take_as(&nodes[0], with(1), at(0)).unwrap();
    take_as(&nodes[1], with(1), at(1)).unwrap_err();
    assert_eq!(take_as(&nodes[1], with(3), at(2)).unwrap().remaining, 1);
    assert_eq!(take_as(&nodes[0], with(3), at(3)).unwrap().remaining, 0);
    take_as(&nodes[1], with(2), at(4)).unwrap_err();
}

#[tokio::test]
async fn a_node_counts_by_itself_while_the_store_is_away() {
    let store = Shared::new();
    let limits = Limits::new(3, true, store.clone());
    take(&limits, key(1), None, at(0)).unwrap();
    *store.away.lock().unwrap() = true;
    assert_eq!(take(&limits, key(1), None, at(1)).unwrap().remaining, 1, "it goes on from what it knows");
    take(&limits, key(1), None, at(2)).unwrap();
    take(&limits, key(1), None, at(3)).unwrap_err();
}
