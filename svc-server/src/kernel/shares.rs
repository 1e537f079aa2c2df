//! The resources that clients share by their addresses: the memory of requests, and the connections of a listener.
//!
//! A client takes its share before anything is kept for it. When nothing is left it waits, and the address that has most
//! gives up what it has left longest: first an unfinished handshake, head or body, then an idle connection. A request that has only
//! just begun is not given up, so a request that arrives whole gets through beside thousands of unfinished ones, whatever
//! address they have. A share of a request that is being handled is not given up.
//!
//! Behind a proxy or a balancer all connections have its address, and give up the oldest of all. Once its head has arrived, a
//! request counts for the client that a trusted proxy names.
//!
//! Connections leave a part of the memory to requests, which so always have some to end with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use svc_core::sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::kernel::limits;
use crate::metrics::Metrics;

/// How often a client that waits for a share looks whether others have waited long enough.
const INTERVAL: Duration = Duration::from_millis(50);

/// How long the memory of what is unfinished, and of a connection that was in use, is not given up.
const MEMORY_GRACE: Grace = Grace { unfinished: Duration::from_millis(500), idle: Duration::from_secs(1) };

/// The least time between two warnings that nothing is left.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

/// A limited number of bytes, or of connections. Clones are the same pool.
#[derive(Clone)]
pub(crate) struct Pool(Arc<Inner>);

/// Is ready when another try may succeed.
pub(crate) type Changed = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Inner {
    /// The name of the shared resource, for the log and the metrics.
    name: &'static str,
    limit: usize,
    grace: Grace,
    metrics: Arc<Metrics>,
    state: Mutex<State>,
    /// Notified when something was given back, or can be given up.
    changed: Notify,
}

/// How long a share that waits for its client is not given up.
#[derive(Clone, Copy, Debug, Default)]
struct Grace {
    /// While a handshake, a head or a body is to be sent, or a response to be read.
    unfinished: Duration,
    /// While the client may send another request. This protects connections that are in use from those that are not.
    idle: Duration,
}

struct State {
    /// The amount that nobody has.
    free: usize,
    /// The amount that was given up, and is not given back yet.
    returning: usize,
    /// The number of the last share.
    last: u64,
    clients: HashMap<IpAddr, Client>,
    /// The clients by what they have.
    by_amount: BTreeSet<(usize, IpAddr)>,
    warned_at: Option<Instant>,
}

#[derive(Default)]
struct Client {
    /// Its amount, without what it gave up.
    amount: usize,
    /// The shares that can be given up, in the order in which they are.
    waiting: BTreeMap<Place, Waiting>,
}

/// The place of a share among those that can be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    for_what: WaitsFor,
    number: u64,
}

/// For what a share waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum WaitsFor {
    /// The rest of a handshake, a head or a body, or the client to read a response.
    Rest,
    /// Another request.
    Request,
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
    /// The amount that stays free when the share is taken or grows.
    reserve: usize,
    /// Its place while it waits for the client, and since when.
    waits: Option<(Place, Instant)>,
    is_given_up: bool,
    given_up: Arc<Notify>,
}

impl Pool {
    /// The places of a listener.
    pub(crate) fn of_places(name: &'static str, limit: usize, metrics: Arc<Metrics>) -> Self {
        Self::new(name, limit, Grace::default(), metrics)
    }

    /// Memory, in bytes.
    pub(crate) fn of_memory(name: &'static str, limit: usize, metrics: Arc<Metrics>) -> Self {
        Self::new(name, limit, MEMORY_GRACE, metrics)
    }

    fn new(name: &'static str, limit: usize, grace: Grace, metrics: Arc<Metrics>) -> Self {
        let state = State {
            free: limit,
            returning: 0,
            last: 0,
            clients: HashMap::new(),
            by_amount: BTreeSet::new(),
            warned_at: None,
        };
        Self(Arc::new(Inner { name, limit, grace, metrics, state: Mutex::new(state), changed: Notify::new() }))
    }

    /// All that there is.
    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }

    /// The amount that nobody has.
    #[cfg(test)]
    pub(crate) fn free(&self) -> usize {
        lock(&self.0.state).free
    }

    /// Takes a share for a client. Waits until so much is free besides a reserve.
    pub(crate) async fn take(&self, address: IpAddr, amount: usize, reserve: usize) -> Share {
        loop {
            if let Some(share) = self.try_take(address, amount, reserve) {
                return share;
            }
            self.changed().await;
        }
    }

    /// Takes a share for a request, and waits at most so long. A free share needs no timer, which not every runtime has.
    pub(crate) async fn take_within(&self, time: Duration, address: IpAddr, amount: usize) -> Option<Share> {
        let taken = match self.try_take(address, amount, 0) {
            Some(share) => Some(share),
            None => tokio::time::timeout(time, self.take(address, amount, 0)).await.ok(),
        };
        if taken.is_none() {
            self.0.metrics.refused(self.0.name);
        }
        taken
    }

    /// Takes a share, unless it has to be waited for. Then others begin to give up theirs.
    pub(crate) fn try_take(&self, address: IpAddr, amount: usize, reserve: usize) -> Option<Share> {
        let address = limits::network_of(address);
        let mut state = lock(&self.0.state);
        if amount > 0 && !self.make_room(&mut state, amount + reserve) {
            return None;
        }
        state.free -= amount;
        state.change(address, 0, amount);
        let pool = self.clone();
        Some(Share { pool, address, amount, reserve, waits: None, is_given_up: false, given_up: Arc::default() })
    }

    /// Waits until there may be more than before.
    fn changed(&self) -> Changed {
        let pool = self.clone();
        Box::pin(async move {
            tokio::select! {
                () = pool.0.changed.notified() => {}
                () = tokio::time::sleep(INTERVAL) => {}
            }
        })
    }

    /// Lets clients give up shares until this amount is free, or is about to be. Returns whether it is free.
    fn make_room(&self, state: &mut State, amount: usize) -> bool {
        while state.free + state.returning < amount {
            let Some((address, place)) = state.next(self.0.grace) else { return false };
            state.give_up(address, place);
            self.0.metrics.given_up(self.0.name);
            if state.warned_at.is_none_or(|warned_at| warned_at.elapsed() >= WARNING_INTERVAL) {
                state.warned_at = Some(Instant::now());
                tracing::warn!(
                    %address,
                    used_up = self.0.name,
                    "many requests are unfinished or connections idle; the address with most loses its oldest"
                );
            }
        }
        state.free >= amount
    }
}

impl State {
    /// Returns what is to be given up next: of the address that has most among those with shares that wait. If its own are too
    /// young, others do not give up theirs for it.
    fn next(&self, grace: Grace) -> Option<(IpAddr, Place)> {
        let has_waiting = |(_, address): &(usize, IpAddr)| {
            Some((*address, self.clients.get(address)?)).filter(|(_, client)| !client.waiting.is_empty())
        };
        let (address, client) = self.by_amount.iter().rev().find_map(has_waiting)?;
        // The first of each kind is the oldest.
        let first = client.waiting.first_key_value();
        let first_idle = client.waiting.range(Place { for_what: WaitsFor::Request, number: 0 }..).next();
        let is_due = |(place, waiting): &(&Place, &Waiting)| {
            let grace = if place.for_what == WaitsFor::Rest { grace.unfinished } else { grace.idle };
            waiting.since.elapsed() >= grace
        };
        let (place, _) = [first, first_idle].into_iter().flatten().find(is_due)?;
        Some((address, *place))
    }

    fn give_up(&mut self, address: IpAddr, place: Place) {
        let Some(waiting) = self.clients.get_mut(&address).and_then(|client| client.waiting.remove(&place)) else {
            return;
        };
        self.change(address, waiting.amount, 0);
        self.returning += waiting.amount;
        waiting.given_up.notify_one();
    }

    /// Replaces a part of what a client has, and forgets a client that has nothing.
    fn change(&mut self, address: IpAddr, before: usize, after: usize) {
        let client = self.clients.entry(address).or_default();
        self.by_amount.remove(&(client.amount, address));
        client.amount = client.amount - before + after;
        if client.amount > 0 {
            self.by_amount.insert((client.amount, address));
        } else if client.waiting.is_empty() {
            self.clients.remove(&address);
        }
    }
}

impl Share {
    /// Sets what stays free when the share grows.
    pub(crate) fn leaving(mut self, reserve: usize) -> Self {
        self.reserve = reserve;
        self
    }

    /// Changes the amount, whether the share is in use or waits, and not its turn. Returns whether it could, and otherwise what to wait for before
    /// another try. A share that was given up waits in vain, so [`Self::given_up`] has to be waited for as well.
    pub(crate) fn try_resize(&mut self, amount: usize) -> Result<(), Changed> {
        let pool = self.pool.clone();
        let mut state = lock(&pool.0.state);
        let waits = self.waits;
        if !self.use_in(&mut state) {
            return Err(pool.changed());
        }
        let more = amount.saturating_sub(self.amount);
        let has_room = more == 0 || pool.make_room(&mut state, more + self.reserve);
        if has_room {
            state.free = state.free + self.amount - amount;
            state.change(self.address, self.amount, amount);
            self.amount = amount;
        }
        if let Some((place, since)) = waits {
            self.wait_in(&mut state, place, since);
        }
        if has_room { Ok(()) } else { Err(pool.changed()) }
    }

    /// Changes the amount, and waits until it can be.
    pub(crate) async fn resize(&mut self, amount: usize) {
        while let Err(changed) = self.try_resize(amount) {
            changed.await;
        }
    }

    /// Lets others have the share, when its turn has come. One that waits for the rest of something is as old as it was.
    pub(crate) fn wait(&mut self, for_what: WaitsFor) {
        if for_what == WaitsFor::Rest && self.waits.is_some_and(|(place, _)| place.for_what == for_what) {
            return;
        }
        let pool = self.pool.clone();
        let mut state = lock(&pool.0.state);
        if self.use_in(&mut state) {
            state.last += 1;
            let place = Place { for_what, number: state.last };
            self.wait_in(&mut state, place, Instant::now());
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

    /// Takes the share out of those that can be given up. Returns `false` if it is none of them any more.
    fn use_in(&mut self, state: &mut State) -> bool {
        if let Some((place, _)) = self.waits.take() {
            let client = state.clients.get_mut(&self.address);
            self.is_given_up = client.and_then(|client| client.waiting.remove(&place)).is_none();
        }
        !self.is_given_up
    }

    fn wait_in(&mut self, state: &mut State, place: Place, since: Instant) {
        let given_up = Arc::clone(&self.given_up);
        let waiting = Waiting { amount: self.amount, since, given_up };
        state.clients.entry(self.address).or_default().waiting.insert(place, waiting);
        self.waits = Some((place, since));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let pool = self.pool.clone();
        let mut state = lock(&pool.0.state);
        if self.use_in(&mut state) {
            state.change(self.address, self.amount, 0);
        } else {
            state.returning -= self.amount;
        }
        state.free += self.amount;
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
        Pool::new("units", limit, Grace::default(), Arc::default())
    }

    /// Takes a share that waits for its client.
    fn waiting(pool: &Pool, address: IpAddr, amount: usize, for_what: WaitsFor) -> Share {
        let mut share = pool.try_take(address, amount, 0).unwrap();
        share.wait(for_what);
        share
    }

    fn unfinished(pool: &Pool, address: IpAddr, amount: usize) -> Share {
        waiting(pool, address, amount, WaitsFor::Rest)
    }

    fn is_given_up(share: &Share) -> bool {
        share.given_up().now_or_never().is_some()
    }

    #[test]
    fn the_address_that_has_most_gives_up_what_has_waited_longest() {
        let pool = pool(10);
        let bob = unfinished(&pool, BOB, 4);
        let mut ada = [2, 2, 2].map(|amount| unfinished(&pool, ADA, amount));
        // The first is as if it had come last.
        assert!(ada[0].hold());
        ada[0].wait(WaitsFor::Rest);
        assert!(pool.try_take(BOB, 1, 0).is_none(), "what was given up is free when it is given back");
        assert_eq!(ada.each_ref().map(is_given_up), [false, true, false]);
        assert!(!is_given_up(&bob), "the oldest of all, of an address that has less");
        assert!(pool.try_take(BOB, 1, 0).is_none() && !is_given_up(&ada[2]), "no more is given up than is needed");
        assert!(!ada[1].hold() && ada[1].try_resize(1).is_err(), "what was given up does not come back");
        let [first, second, third] = ada;
        drop(second);
        let taken = pool.try_take(BOB, 1, 0);
        assert!(taken.is_some());
        drop((bob, first, third, taken));
        assert_eq!((pool.free(), lock(&pool.0.state).returning), (10, 0));
        assert!(lock(&pool.0.state).clients.is_empty() && lock(&pool.0.state).by_amount.is_empty());
    }

    #[test]
    fn what_is_unfinished_is_given_up_before_what_is_idle() {
        let pool = pool(3);
        let idle = waiting(&pool, ADA, 1, WaitsFor::Request);
        let rest = [1, 1].map(|amount| unfinished(&pool, ADA, amount));
        let mut given_up = Vec::new();
        for amount in 1..=3 {
            assert!(pool.try_take(BOB, amount, 0).is_none());
            given_up.extend(
                [("first", &rest[0]), ("second", &rest[1]), ("idle", &idle)]
                    .iter()
                    .filter_map(|(name, share)| is_given_up(share).then_some(*name)),
            );
        }
        assert_eq!(given_up, ["first", "second", "idle"]);
    }

    #[test]
    fn what_is_in_use_is_not_given_up() {
        let pool = pool(4);
        let mut used = pool.try_take(ADA, 4, 0).unwrap();
        assert!(pool.try_take(BOB, 1, 0).is_none());
        assert!(pool.try_take(BOB, 0, 1).is_some(), "nothing is always left");
        used.wait(WaitsFor::Rest);
        assert!(pool.try_take(BOB, 1, 0).is_none() && is_given_up(&used));
        drop(used);
        assert!(pool.try_take(BOB, 1, 0).is_some());
    }

    #[test]
    fn a_share_that_grows_waits_for_those_of_others_and_leaves_a_reserve() {
        let pool = pool(6);
        let held = pool.try_take(ADA, 2, 0).unwrap();
        let mut growing = pool.try_take(BOB, 1, 1).unwrap();
        growing.wait(WaitsFor::Rest);
        assert!(growing.try_resize(3).is_ok(), "what is free");
        assert!(growing.try_resize(4).is_err() && !is_given_up(&growing), "the last one is for others");
        assert!(pool.try_take(ADA, 1, 1).is_none() && !is_given_up(&held));
        assert_eq!(pool.try_take(BOB, 1, 0).map(|last| last.amount), Some(1));
        assert!(is_given_up(&growing), "somebody else waited for it");
        drop((held, growing));
        let (mut growing, other) = (unfinished(&pool, BOB, 1), unfinished(&pool, BOB, 5));
        assert!(growing.try_resize(3).is_err() && is_given_up(&other), "others that wait give up first");
        drop(other);
        assert!(growing.try_resize(3).is_ok() && growing.try_resize(0).is_ok());
        assert_eq!(pool.free(), 6);
    }

    #[test]
    fn addresses_of_ipv6_share_by_the_network_of_a_customer() {
        let pool = pool(4);
        let [first, second, other] =
            ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(|text| text.parse().unwrap());
        let (first, second) = (unfinished(&pool, first, 1), unfinished(&pool, second, 2));
        let other = unfinished(&pool, other, 1);
        assert_eq!(lock(&pool.0.state).clients.len(), 2);
        assert!(pool.try_take(ADA, 1, 0).is_none());
        assert_eq!([&first, &second, &other].map(is_given_up), [true, false, false]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_has_just_begun_is_not_given_up() {
        let pool = Pool::of_memory("bytes", 4, Arc::default());
        let other = unfinished(&pool, BOB, 1);
        tokio::time::advance(MEMORY_GRACE.idle).await;
        let (idle, rest) = (waiting(&pool, ADA, 1, WaitsFor::Request), unfinished(&pool, ADA, 2));
        let started = Instant::now();
        let mut taking = std::pin::pin!(pool.take(ADA, 1, 0));
        assert!((&mut taking).now_or_never().is_none());
        tokio::select! {
            _ = &mut taking => panic!("nothing was given back"),
            () = rest.given_up() => {}
        }
        assert_eq!(started.elapsed(), MEMORY_GRACE.unfinished);
        drop(rest);
        let taken = taking.await;
        assert!(
            !is_given_up(&idle) && !is_given_up(&other),
            "others do not give up theirs for an address that has more"
        );
        let _used = pool.try_take(ADA, 1, 0).unwrap();
        assert!(pool.try_take(ADA, 1, 0).is_none() && !is_given_up(&idle), "it was in use a moment ago");
        tokio::time::advance(MEMORY_GRACE.idle).await;
        assert!(pool.try_take(ADA, 1, 0).is_none() && is_given_up(&idle));
        drop(taken);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_until_something_is_given_back_or_can_be_given_up() {
        let pool = pool(1);
        let mut used = pool.try_take(ADA, 1, 0).unwrap();
        let mut taking = std::pin::pin!(pool.take(BOB, 1, 0));
        assert!((&mut taking).now_or_never().is_none());
        used.wait(WaitsFor::Rest);
        assert!((&mut taking).now_or_never().is_none() && is_given_up(&used));
        drop(used);
        let mut second = (&mut taking).now_or_never().expect("it was given back");
        let mut taking = std::pin::pin!(second.resize(2));
        assert!((&mut taking).now_or_never().is_none(), "more than there is");
    }
}
