//! What clients share by their addresses: the memory of requests, and the connections of a listener.
//!
//! A client takes its share before anything is kept for it. When nothing is left, the address that has most gives up the
//! oldest of its shares that wait for the client: an idle connection, an unfinished handshake or head, or a body of which
//! more is to come. So an address that leaves thousands of requests unfinished takes them from itself, and requests that
//! arrive whole are never the oldest. A share of a request that is being handled is not given up.
//!
//! Behind a proxy or a balancer all connections have its address, and give up the oldest of all. Once its head has arrived, a
//! request counts for the client that a trusted proxy names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use svc_core::sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::api::limits;
use crate::metrics::Metrics;

/// How often a client that waits for a share looks whether others have waited long enough.
#[cfg(any(feature = "standalone", test))]
const INTERVAL: Duration = Duration::from_millis(50);

/// The least time between two warnings that nothing is left.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// A limited number of bytes, or of connections. Clones are the same pool.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

struct Inner {
    /// What is shared, for the log and the metrics.
    name: &'static str,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    /// Notified when something was given back, or can be given up.
    changed: Notify,
}

struct State {
    /// What nobody has.
    free: usize,
    /// The number of the last share.
    last: u64,
    clients: HashMap<IpAddr, Client>,
    /// The clients by what they have.
    by_amount: BTreeSet<(usize, IpAddr)>,
    warned_at: Option<Instant>,
}

#[derive(Default)]
struct Client {
    amount: usize,
    /// The shares that can be given up, the oldest first.
    waiting: BTreeMap<u64, Waiting>,
}

struct Waiting {
    amount: usize,
    since: Instant,
    given_up: Arc<Notify>,
}

/// A share of a [`Pool`], which is given back when it is dropped. It begins in use.
pub(crate) struct Share {
    pool: Pool,
    address: IpAddr,
    amount: usize,
    /// Its number while it waits for the client.
    waits: Option<u64>,
    is_given_up: bool,
    given_up: Arc<Notify>,
}

impl Pool {
    pub(crate) fn new(name: &'static str, limit: usize, metrics: Arc<Metrics>) -> Self {
        let clients = HashMap::new();
        let state = State { free: limit, last: 0, clients, by_amount: BTreeSet::new(), warned_at: None };
        Self(Arc::new(Inner { name, metrics, state: Mutex::new(state), changed: Notify::new() }))
    }

    /// Takes a share for a client. Returns `None` when all is in use, so that nothing can be given up for it.
    pub(crate) fn take(&self, address: IpAddr, amount: usize) -> Option<Share> {
        let address = limits::network_of(address);
        let mut state = lock(&self.0.state);
        if !self.make_room(&mut state, amount, Duration::ZERO) {
            self.0.metrics.refused(self.0.name);
            return None;
        }
        Some(self.share(&mut state, address, amount))
    }

    fn share(&self, state: &mut State, address: IpAddr, amount: usize) -> Share {
        state.change(address, 0, amount);
        Share { pool: self.clone(), address, amount, waits: None, is_given_up: false, given_up: Arc::default() }
    }

    /// Takes a share for a client that was accepted. Waits while this and a reserve, for what the client does next, are in use or
    /// have waited for less than the `least` time.
    #[cfg(any(feature = "standalone", test))]
    pub(crate) async fn take_when_free(
        &self,
        address: IpAddr,
        amount: usize,
        reserve: usize,
        least: Duration,
    ) -> Share {
        let address = limits::network_of(address);
        loop {
            {
                let mut state = lock(&self.0.state);
                if self.make_room(&mut state, amount + reserve, least) {
                    return self.share(&mut state, address, amount);
                }
            }
            tokio::select! {
                () = self.0.changed.notified() => {}
                () = tokio::time::sleep(INTERVAL) => {}
            }
        }
    }

    /// Lets clients give up shares that have waited this long, until this amount is free. Returns whether it is.
    fn make_room(&self, state: &mut State, amount: usize, least: Duration) -> bool {
        while state.free < amount {
            let oldest = |(_, address): &(usize, IpAddr)| {
                let (number, waiting) = state.clients.get(address)?.waiting.first_key_value()?;
                (waiting.since.elapsed() >= least).then_some((*address, *number))
            };
            let Some((address, number)) = state.by_amount.iter().rev().find_map(oldest) else { return false };
            let Some(waiting) = state.clients.get_mut(&address).and_then(|client| client.waiting.remove(&number))
            else {
                return false;
            };
            state.change(address, waiting.amount, 0);
            waiting.given_up.notify_one();
            self.0.metrics.given_up(self.0.name);
            if state.warned_at.is_none_or(|warned_at| warned_at.elapsed() >= WARNING_INTERVAL) {
                state.warned_at = Some(Instant::now());
                tracing::warn!(
                    %address,
                    used_up = self.0.name,
                    "clients leave much unfinished or idle; the address that has most gives up what is oldest"
                );
            }
        }
        true
    }
}

impl State {
    /// Replaces a part of what a client has, and forgets a client that has nothing.
    fn change(&mut self, address: IpAddr, before: usize, after: usize) {
        let client = self.clients.entry(address).or_default();
        self.by_amount.remove(&(client.amount, address));
        client.amount = client.amount - before + after;
        self.free = self.free + before - after;
        if client.amount > 0 {
            self.by_amount.insert((client.amount, address));
        } else if client.waiting.is_empty() {
            self.clients.remove(&address);
        }
    }
}

impl Share {
    /// Changes the amount, whether the share is in use or waits. Returns whether it could. Otherwise the share is given up.
    pub(crate) fn resize(&mut self, amount: usize) -> bool {
        let pool = self.pool.clone();
        let mut state = lock(&pool.0.state);
        let waits = self.waits;
        if !self.use_in(&mut state) {
            return false;
        }
        if !pool.make_room(&mut state, amount.saturating_sub(self.amount), Duration::ZERO) {
            pool.0.metrics.refused(pool.0.name);
            state.change(self.address, std::mem::take(&mut self.amount), 0);
            self.is_given_up = true;
            self.given_up.notify_one();
            return false;
        }
        state.change(self.address, self.amount, amount);
        self.amount = amount;
        if let Some(number) = waits {
            self.wait_in(&mut state, number);
        }
        true
    }

    /// Lets others have the share from now on, when it has waited longest.
    pub(crate) fn wait(&mut self) {
        let pool = self.pool.clone();
        let mut state = lock(&pool.0.state);
        if self.use_in(&mut state) {
            state.last += 1;
            let number = state.last;
            self.wait_in(&mut state, number);
        }
        drop(state);
        pool.0.changed.notify_one();
    }

    /// Keeps the share, whatever others need. Returns `false` if it was given up before.
    pub(crate) fn hold(&mut self) -> bool {
        let pool = self.pool.clone();
        self.use_in(&mut lock(&pool.0.state))
    }

    /// Waits until the share is given up.
    pub(crate) fn given_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let given_up = Arc::clone(&self.given_up);
        async move { given_up.notified().await }
    }

    fn use_in(&mut self, state: &mut State) -> bool {
        if let Some(number) = self.waits.take() {
            let client = state.clients.get_mut(&self.address);
            if client.and_then(|client| client.waiting.remove(&number)).is_none() {
                self.amount = 0;
                self.is_given_up = true;
            }
        }
        !self.is_given_up
    }

    fn wait_in(&mut self, state: &mut State, number: u64) {
        let given_up = Arc::clone(&self.given_up);
        let waiting = Waiting { amount: self.amount, since: Instant::now(), given_up };
        state.clients.entry(self.address).or_default().waiting.insert(number, waiting);
        self.waits = Some(number);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let pool = self.pool.clone();
        let mut state = lock(&pool.0.state);
        self.use_in(&mut state);
        state.change(self.address, std::mem::take(&mut self.amount), 0);
        drop(state);
        pool.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    const ADA: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
    const BOB: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));

    fn pool(limit: usize) -> Pool {
        Pool::new("units", limit, Arc::default())
    }

    /// Takes a share that waits for its client.
    fn waiting(pool: &Pool, address: IpAddr, amount: usize) -> Share {
        let mut share = pool.take(address, amount).unwrap();
        share.wait();
        share
    }

    fn is_given_up(share: &Share) -> bool {
        share.given_up().now_or_never().is_some()
    }

    fn free(pool: &Pool) -> usize {
        lock(&pool.0.state).free
    }

    #[test]
    fn the_address_that_has_most_gives_up_what_has_waited_longest() {
        let pool = pool(10);
        let bob = waiting(&pool, BOB, 4);
        let mut ada = [2, 2, 2].map(|amount| waiting(&pool, ADA, amount));
        // The first is as if it had come last.
        assert!(ada[0].hold());
        ada[0].wait();
        let third = pool.take(BOB, 1).unwrap();
        assert_eq!(ada.each_ref().map(is_given_up), [false, true, false]);
        assert!(!is_given_up(&bob), "the oldest of all, of an address that has less");
        assert!(!ada[1].hold() && !ada[1].resize(1), "what was given up does not come back");
        drop((bob, ada, third));
        assert_eq!(free(&pool), 10);
        assert!(lock(&pool.0.state).clients.is_empty() && lock(&pool.0.state).by_amount.is_empty());
    }

    #[test]
    fn what_is_in_use_is_not_given_up() {
        let pool = pool(4);
        let mut used = pool.take(ADA, 4).unwrap();
        assert!(pool.take(BOB, 1).is_none());
        assert!(pool.take(BOB, 0).is_some(), "nothing is always left");
        used.wait();
        let taken = pool.take(BOB, 1);
        assert!(taken.is_some() && is_given_up(&used));
        assert_eq!(free(&pool), 3);
    }

    #[test]
    fn a_share_that_cannot_grow_is_given_up() {
        let pool = pool(4);
        let held = pool.take(ADA, 2).unwrap();
        let mut growing = waiting(&pool, BOB, 1);
        assert!(growing.resize(2), "what is free");
        assert!(!growing.resize(3) && is_given_up(&growing));
        assert_eq!(free(&pool), 2);
        drop(growing);
        assert_eq!(free(&pool), 2, "it is given back once");
        drop(held);
        let (mut growing, other) = (waiting(&pool, BOB, 1), waiting(&pool, BOB, 2));
        assert!(growing.resize(3) && is_given_up(&other), "others that wait give up first");
        assert!(growing.resize(0));
        assert_eq!(free(&pool), 4);
    }

    #[test]
    fn addresses_of_ipv6_share_by_the_network_of_a_customer() {
        let pool = pool(4);
        let [first, second, other] =
            ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(|text| text.parse().unwrap());
        let (first, second, other) = (waiting(&pool, first, 1), waiting(&pool, second, 2), waiting(&pool, other, 1));
        assert_eq!(lock(&pool.0.state).clients.len(), 2);
        let _taken = pool.take(ADA, 1);
        assert_eq!([&first, &second, &other].map(is_given_up), [true, false, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_until_something_is_given_back_or_can_be_given_up() {
        let pool = pool(1);
        let mut used = pool.take(ADA, 1).unwrap();
        let mut taking = std::pin::pin!(pool.take_when_free(BOB, 1, 0, INTERVAL * 3));
        assert!((&mut taking).now_or_never().is_none());
        used.wait();
        assert!((&mut taking).now_or_never().is_none(), "it has only begun to wait");
        let second = taking.await;
        assert!(is_given_up(&used));
        let mut taking = std::pin::pin!(pool.take_when_free(ADA, 1, 0, INTERVAL * 3));
        assert!((&mut taking).now_or_never().is_none());
        drop(second);
        taking.await;
    }
}
