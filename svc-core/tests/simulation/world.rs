//! A store, senders and endpoints under a virtual clock. Time passes from one happening to the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::error::{Error, StoreError};
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Store, Tx};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::AttemptLog;
use svc_core::webhooks::engine::{self, Attempt, Batch, InFlight, Outcome, Policy};
use uuid::Uuid;

use crate::model::Model;
use crate::script::Action;

/// When every scenario begins.
const START: i64 = 1_773_500_966_535_897;
/// The longest sleep of a sender.
const POLL_INTERVAL: u64 = 1_000_000;
/// The pause of a sender after the store failed.
const STORE_PAUSE: u64 = 500_000;

/// What comes next.
#[derive(Debug)]
pub(crate) enum Happening {
    /// A sender takes a step.
    DueWork(usize),
    /// An attempt of a sender, in one of its lives, comes to an end.
    Ended(usize, u32, Box<Outcome>),
    /// Something from outside.
    Act(Action),
}

/// What becomes of the commit of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Done,
    /// It fails, and nothing has happened.
    Undone,
    /// It succeeds, but the sender is told that it failed.
    Unknown,
}

/// A process that sends.
pub(crate) struct Sender {
    pub(crate) alive: bool,
    /// Its outcomes of an earlier life are lost.
    pub(crate) life: u32,
    pub(crate) in_flight: InFlight,
    pub(crate) batch: Vec<Outcome>,
    pub(crate) running: BTreeMap<(Uuid, u32), Attempt>,
    /// What the window of each endpoint must be.
    pub(crate) windows: HashMap<Uuid, usize>,
    look_at: Option<u64>,
}

impl Sender {
    fn new() -> Self {
        Self {
            alive: true,
            life: 0,
            in_flight: InFlight::default(),
            batch: Vec::new(),
            running: BTreeMap::new(),
            windows: HashMap::new(),
            look_at: None,
        }
    }
}

pub(crate) struct World {
    pub(crate) rng: StdRng,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) model: Model,
    pub(crate) senders: Vec<Sender>,
    /// Of a hundred commits, how many go wrong.
    pub(crate) faults: u32,
    /// Microseconds that have passed.
    pub(crate) now: u64,
    /// How far the wall clock is off.
    offset: i64,
    jumped_at: Option<u64>,
    clock: ManualClock,
    queue: BTreeMap<(u64, u64), Happening>,
    queued: u64,
    pub(crate) talks: bool,
}

impl World {
    pub(crate) fn new(seed: u64, senders: usize, policy: Policy) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(START));
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Env::new(clock.clone(), SeededEntropy::new(seed))));
        Self {
            rng: StdRng::seed_from_u64(seed),
            store,
            model: Model::new(&policy),
            policy: Arc::new(policy),
            senders: (0..senders).map(|_| Sender::new()).collect(),
            faults: 0,
            now: 0,
            offset: 0,
            jumped_at: None,
            clock,
            queue: BTreeMap::new(),
            queued: 0,
            talks: false,
        }
    }

    pub(crate) fn note(&self, what: &str) {
        if self.talks {
            println!("{} {} {what}", self.now, self.wall());
        }
    }

    /// The wall clock.
    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp::from_micros(START + i64::try_from(self.now).unwrap() + self.offset)
    }

    pub(crate) fn write<T, F>(&self, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> Fn(&'t mut dyn Tx) -> BoxFuture<'t, Result<T, Error>> + Send + Sync + 'static,
    {
        self.store.write("simulation", job).now_or_never().unwrap()
    }

    pub(crate) fn later(&mut self, wait: u64, happening: Happening) {
        self.queued += 1;
        self.queue.insert((self.now + wait, self.queued), happening);
    }

    /// Lets a sender look within `wait`.
    pub(crate) fn wake(&mut self, sender: usize, wait: u64) {
        let at = self.now + wait;
        if self.senders[sender].alive && self.senders[sender].look_at.is_none_or(|look_at| at < look_at) {
            self.senders[sender].look_at = Some(at);
            self.later(wait, Happening::DueWork(sender));
        }
    }

    /// What a commit brings is seen at once by its own process, the first, and within a second by the others.
    pub(crate) fn wake_all(&mut self) {
        for sender in 0..self.senders.len() {
            let wait = if sender == 0 { 20_000 } else { POLL_INTERVAL };
            let wait = self.rng.random_range(0..wait);
            self.wake(sender, wait);
        }
    }

    /// Lets everything happen until nothing is left to happen.
    pub(crate) fn run(&mut self) {
        while let Some(((at, _), happening)) = self.queue.pop_first() {
            self.pass(at);
            self.happen(happening);
        }
    }

    /// Lets everything happen until `end`.
    pub(crate) fn run_until(&mut self, end: u64) {
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), happening) = entry.remove_entry();
            self.pass(at);
            self.happen(happening);
        }
        self.pass(end);
    }

    fn pass(&mut self, to: u64) {
        self.now = to;
        self.clock.set(self.wall());
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::DueWork(sender) => {
                if self.senders[sender].alive && self.senders[sender].look_at == Some(self.now) {
                    self.senders[sender].look_at = None;
                    self.step(sender);
                }
            }
            Happening::Ended(sender, life, outcome) => self.ended(sender, life, *outcome),
            Happening::Act(action) => self.act(action),
        }
    }

    /// The wall clock jumps. Every sender has looked within the second before.
    pub(crate) fn jump(&mut self, seconds: i64) {
        for sender in 0..self.senders.len() {
            if self.senders[sender].alive {
                self.step(sender);
            }
        }
        if seconds > 0 {
            self.model.jumped(&self.running());
            self.jumped_at = Some(self.now);
        }
        self.offset += seconds * 1_000_000;
        self.clock.set(self.wall());
        self.wake_all();
    }

    pub(crate) fn crash(&mut self, sender: usize) {
        let dead = std::mem::replace(&mut self.senders[sender], Sender::new());
        self.senders[sender].alive = false;
        self.senders[sender].life = dead.life + 1;
        for (delivery, attempt) in dead.running.keys() {
            self.model.lose(*delivery, *attempt);
        }
        for outcome in &dead.batch {
            self.model.lose(outcome.delivery.id, outcome.delivery.attempts);
        }
    }

    /// The attempts that are under way.
    fn running(&self) -> Vec<(Uuid, u32)> {
        self.senders.iter().flat_map(|sender| sender.running.keys().copied()).collect()
    }

    pub(crate) fn start(&mut self, sender: usize) {
        // A sender that was not there when the clock jumped takes the leases of the other for ended.
        if self.jumped_at.is_some_and(|jumped_at| self.now - jumped_at < 60_000_000) {
            for (delivery, attempt) in self.running() {
                self.model.lose(delivery, attempt);
            }
        }
        self.senders[sender].alive = true;
        self.wake(sender, 0);
    }

    fn ended(&mut self, sender: usize, life: u32, outcome: Outcome) {
        let process = &mut self.senders[sender];
        if process.life != life {
            return;
        }
        let delivery = &outcome.delivery;
        process.running.remove(&(delivery.id, delivery.attempts));
        process.in_flight.end(&outcome);
        let window = process.windows.entry(delivery.subscription_id).or_insert(4);
        *window = if outcome.log.succeeded() { (*window + 1).min(64) } else { 1 };
        process.batch.push(outcome);
        let wait = self.rng.random_range(0..20_000);
        self.wake(sender, wait);
    }

    /// A sender looks, and carries out the rounds that follow from it.
    fn step(&mut self, sender: usize) {
        let due_work = self.store.read("simulation", |tx| Box::pin(engine::poll(tx))).now_or_never().unwrap().unwrap();
        let process = &mut self.senders[sender];
        let mut outcomes: BTreeMap<TenantId, Vec<Outcome>> = BTreeMap::new();
        for outcome in process.batch.drain(..) {
            outcomes.entry(outcome.delivery.tenant_id).or_default().push(outcome);
        }
        let batches = process.in_flight.plan(&self.policy, &due_work, outcomes);
        let idle = batches.is_empty();
        let mut begun = BTreeSet::new();
        for batch in batches {
            begun.append(&mut self.run_batch(sender, Arc::new(batch)));
        }
        self.model.check_room(&self.senders[sender], &self.policy, &begun);
        // The next look of this sender, and of those that see only what is stored.
        let next = match due_work.next() {
            Some(next) => micros(next.since(due_work.now)).max(1_000),
            None if !idle => 1_000,
            None if self.senders[sender].running.is_empty() => return,
            None => POLL_INTERVAL,
        };
        self.wake(sender, next);
        for other in (0..self.senders.len()).filter(|other| *other != sender) {
            let wait = next + self.rng.random_range(0..POLL_INTERVAL);
            self.wake(other, wait);
        }
    }

    /// Returns the endpoints that attempts were begun to.
    fn run_batch(&mut self, sender: usize, batch: Arc<Batch>) -> BTreeSet<Uuid> {
        let fate = match self.rng.random_range(0..200) {
            dice if dice < self.faults => Fate::Undone,
            dice if dice < 2 * self.faults => Fate::Unknown,
            _ => Fate::Done,
        };
        let (policy, planned) = (Arc::clone(&self.policy), Arc::clone(&batch));
        let begun = self.write(move |tx| {
            let (policy, planned) = (Arc::clone(&policy), Arc::clone(&planned));
            Box::pin(async move {
                let begun = engine::run_batch(tx, &policy, &planned).await?.attempts;
                if fate == Fate::Undone {
                    return Err(StoreError::Unavailable("the disk is full".to_owned()).into());
                }
                Ok(begun)
            })
        });
        if self.talks {
            let ended: Vec<_> = batch.outcomes.iter().map(|o| (o.delivery.id, o.log.attempt, o.log.status)).collect();
            let begun: Vec<_> = begun.iter().flatten().map(|a| (a.delivery.id, a.delivery.attempts)).collect();
            self.note(&format!("sender {sender} is {fate:?}: ended {ended:?}, begun {begun:?}"));
        }
        let (wall, mut endpoints) = (self.wall(), BTreeSet::new());
        match (fate, begun) {
            (Fate::Undone, Err(_)) => self.failed(sender, &batch),
            (_, Ok(attempts)) => {
                self.model.record(&batch.outcomes, wall);
                if batch.advances_a_replay() {
                    self.model.replay_in_step(batch.tenant_id, wall);
                }
                if fate == Fate::Done {
                    endpoints.extend(attempts.iter().map(|attempt| attempt.delivery.subscription_id));
                    self.begun(sender, &batch, attempts);
                } else {
                    self.model.begin(&attempts, wall, &self.senders);
                    for attempt in &attempts {
                        self.model.lose(attempt.delivery.id, attempt.delivery.attempts);
                    }
                    self.failed(sender, &batch);
                }
                self.model.check_touched(&*self.store, wall);
            }
            (fate, Err(error)) => panic!("{fate:?}: {error}"),
        }
        endpoints
    }

    fn failed(&mut self, sender: usize, batch: &Batch) {
        let process = &mut self.senders[sender];
        process.in_flight.began(batch, &[]);
        process.batch.extend(batch.outcomes.iter().cloned());
        self.wake(sender, STORE_PAUSE);
    }

    fn begun(&mut self, sender: usize, batch: &Batch, attempts: Vec<Attempt>) {
        let wall = self.wall();
        self.model.begin(&attempts, wall, &self.senders);
        self.senders[sender].in_flight.began(batch, &attempts);
        let life = self.senders[sender].life;
        for attempt in attempts {
            let delivery = attempt.delivery.clone();
            let answer = self.model.answer(&delivery, self.now, &mut self.rng);
            let log = AttemptLog {
                attempt: delivery.attempts,
                started_at: wall,
                duration_ms: u32::try_from(answer.took.as_millis()).unwrap(),
                status: answer.status,
                error: answer.error.map(str::to_owned),
                response_body: None,
                response_truncated: false,
                remote_addr: None,
            };
            self.senders[sender].running.insert((delivery.id, delivery.attempts), attempt);
            let outcome = Box::new(Outcome { delivery, log, retry_after: answer.retry_after });
            self.later(micros(answer.took), Happening::Ended(sender, life, outcome));
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}
