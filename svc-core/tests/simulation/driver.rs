//! A store, the processes that send its deliveries, and their endpoints, under a virtual clock. The simulation advances
//! from one event of its queue to the next.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use svc_core::webhooks::subscriptions::SubscriptionId;

use futures_util::FutureExt as _;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use svc_core::env::{Env, ManualClock, SeededEntropy};
use svc_core::error::{Error, StoreError};
use svc_core::store::memory::MemoryStore;
use svc_core::store::{Store, UnitOfWorkFn};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryId};
use svc_core::webhooks::engine::{self, Attempt, AttemptResult, Batch, DueWork, InFlight, Policy};

use super::model::Model;
use super::script::Action;

/// The highest number of endpoints of a tenant, for scenarios of fairness.
pub(crate) const MAX_ENDPOINTS: u32 = 4_000;
/// The wall-clock time at which every scenario starts, in microseconds.
const START: i64 = 1_773_500_966_535_897;
/// The longest time between two polls of a process, in microseconds.
const POLL_INTERVAL: u64 = 1_000_000;
/// The pause of a process after a failed transaction, in microseconds.
const STORE_RETRY_DELAY: u64 = 500_000;

/// An event of the simulation.
#[derive(Debug)]
pub(crate) enum SimulationEvent {
    /// A process polls.
    Poll(usize),
    /// An attempt ends that this process made during this one of its lives.
    AttemptFinished(usize, u32, Box<AttemptResult>),
    /// Something happens outside of the engine.
    Act(Action),
}

/// What happens to the commit of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CommitResult {
    /// It succeeds.
    Committed,
    /// It fails and changes nothing.
    RolledBack,
    /// It succeeds, but the process receives an error.
    Unknown,
}

/// A process that runs the delivery engine.
pub(crate) struct Process {
    pub(crate) alive: bool,
    /// The number of times that it has crashed. Outcomes of an earlier life are lost.
    pub(crate) life: u32,
    pub(crate) in_flight: InFlight,
    /// The outcomes that are not recorded yet.
    pub(crate) outcomes: Vec<AttemptResult>,
    /// The attempts that it is making, by delivery and number.
    pub(crate) running: BTreeMap<(DeliveryId, u32), Attempt>,
    /// The expected size of the window of each endpoint.
    pub(crate) windows: HashMap<SubscriptionId, usize>,
    last_poll: Option<u64>,
    next_poll: Option<u64>,
}

impl Process {
    fn new() -> Self {
        Self {
            alive: true,
            life: 0,
            in_flight: InFlight::default(),
            outcomes: Vec::new(),
            running: BTreeMap::new(),
            windows: HashMap::new(),
            last_poll: None,
            next_poll: None,
        }
    }
}

/// A store with its clock, the processes on it, and the model of what must hold.
pub(crate) struct Simulation {
    pub(crate) rng: StdRng,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) model: Model,
    pub(crate) processes: Vec<Process>,
    /// The share of commits that fail, in percent.
    pub(crate) failing_commits: u32,
    /// The time since the start of the scenario, in microseconds.
    pub(crate) now: u64,
    /// The sum of the clock jumps, in microseconds.
    clock_offset: i64,
    jumped_at: Option<u64>,
    clock: ManualClock,
    queue: BTreeMap<(u64, u64), SimulationEvent>,
    /// Orders events of the same time.
    queued: u64,
    /// Whether to print what happens.
    pub(crate) verbose: bool,
}

impl Simulation {
    pub(crate) fn new(seed: u64, processes: usize, policy: Policy) -> Self {
        let clock = ManualClock::at(Timestamp::from_micros(START));
        let mut env = Env::new(clock.clone(), SeededEntropy::new(seed));
        env.max_webhooks = MAX_ENDPOINTS;
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(env));
        Self {
            rng: StdRng::seed_from_u64(seed),
            store,
            model: Model::new(&policy),
            policy: Arc::new(policy),
            processes: (0..processes).map(|_| Process::new()).collect(),
            failing_commits: 0,
            now: 0,
            clock_offset: 0,
            jumped_at: None,
            clock,
            queue: BTreeMap::new(),
            queued: 0,
            verbose: false,
        }
    }

    pub(crate) fn trace(&self, what: &str) {
        if self.verbose {
            println!("{} {} {what}", self.now, self.wall());
        }
    }

    /// Returns the time of the wall clock.
    pub(crate) fn wall(&self) -> Timestamp {
        Timestamp::from_micros(START + i64::try_from(self.now).unwrap() + self.clock_offset)
    }

    pub(crate) fn write<I, T>(&self, input: I, work: impl UnitOfWorkFn<I, T>) -> Result<T, Error>
    where
        I: Send + Sync + 'static,
        T: Send + 'static,
    {
        self.store.write("simulation", input, work).now_or_never().unwrap()
    }

    /// Queues an event `wait` microseconds from now.
    pub(crate) fn schedule(&mut self, wait: u64, event: SimulationEvent) {
        self.queued += 1;
        self.queue.insert((self.now + wait, self.queued), event);
    }

    /// Makes a process poll within `wait` microseconds.
    pub(crate) fn wake(&mut self, process: usize, wait: u64) {
        let at = self.now + wait;
        if self.processes[process].alive && self.processes[process].next_poll.is_none_or(|next_poll| at < next_poll) {
            self.processes[process].next_poll = Some(at);
            self.schedule(wait, SimulationEvent::Poll(process));
        }
    }

    /// Makes every process poll after a commit: the first, which made the commit, at once, and the others within a second.
    pub(crate) fn wake_all(&mut self) {
        for process in 0..self.processes.len() {
            let wait = if process == 0 { 20_000 } else { POLL_INTERVAL };
            let wait = self.rng.random_range(0..wait);
            self.wake(process, wait);
        }
    }

    /// Runs until the queue is empty.
    pub(crate) fn run(&mut self) {
        while let Some(((at, _), event)) = self.queue.pop_first() {
            self.advance(at);
            self.handle(event);
        }
    }

    /// Runs all events until `end`.
    pub(crate) fn run_until(&mut self, end: u64) {
        while let Some(entry) = self.queue.first_entry().filter(|entry| entry.key().0 <= end) {
            let ((at, _), event) = entry.remove_entry();
            self.advance(at);
            self.handle(event);
        }
        self.advance(end);
    }

    fn advance(&mut self, to: u64) {
        self.now = to;
        self.clock.set(self.wall());
    }

    fn handle(&mut self, event: SimulationEvent) {
        match event {
            SimulationEvent::Poll(process) => {
                if self.processes[process].alive && self.processes[process].next_poll == Some(self.now) {
                    self.processes[process].next_poll = None;
                    self.poll(process);
                }
            }
            SimulationEvent::AttemptFinished(process, life, outcome) => self.attempt_finished(process, life, *outcome),
            SimulationEvent::Act(action) => self.act(action),
        }
    }

    /// Moves the wall clock. Every process has polled just before.
    pub(crate) fn jump_clock(&mut self, seconds: i64) {
        for process in 0..self.processes.len() {
            if self.processes[process].alive {
                self.poll(process);
            }
        }
        if seconds > 0 {
            self.model.clock_jumped(&self.running());
            self.jumped_at = Some(self.now);
        }
        self.clock_offset += seconds * 1_000_000;
        self.clock.set(self.wall());
        self.wake_all();
    }

    /// Ends a process without a shutdown.
    pub(crate) fn crash(&mut self, process: usize) {
        let dead = std::mem::replace(&mut self.processes[process], Process::new());
        self.processes[process].alive = false;
        self.processes[process].life = dead.life + 1;
        for (delivery, attempt) in dead.running.keys() {
            self.model.lose(*delivery, *attempt);
        }
        for outcome in &dead.outcomes {
            self.model.lose(outcome.delivery.id, outcome.delivery.attempts);
        }
    }

    /// Returns the attempts in flight of all processes.
    fn running(&self) -> Vec<(DeliveryId, u32)> {
        self.processes.iter().flat_map(|process| process.running.keys().copied()).collect()
    }

    /// Starts a process that has crashed.
    pub(crate) fn start(&mut self, process: usize) {
        // A process that did not run when the clock jumped takes the leases of the other process as ended.
        if self.jumped_at.is_some_and(|jumped_at| self.now - jumped_at < 60_000_000) {
            for (delivery, attempt) in self.running() {
                self.model.lose(delivery, attempt);
            }
        }
        self.processes[process].alive = true;
        self.wake(process, 0);
    }

    fn attempt_finished(&mut self, process: usize, life: u32, outcome: AttemptResult) {
        let state = &mut self.processes[process];
        if state.life != life {
            return;
        }
        let delivery = &outcome.delivery;
        state.running.remove(&(delivery.id, delivery.attempts));
        state.in_flight.attempt_finished(&outcome);
        let window = state.windows.entry(delivery.subscription_id).or_insert(4);
        *window = if outcome.log.succeeded() { (*window + 1).min(64) } else { 1 };
        state.outcomes.push(outcome);
        let wait = self.rng.random_range(0..20_000);
        self.wake(process, wait);
    }

    /// Polls once and runs the batches that follow from it.
    fn poll(&mut self, process: usize) {
        let due_work =
            self.store.read("simulation", (), async |tx, ()| engine::poll(tx).await).now_or_never().unwrap().unwrap();
        let state = &mut self.processes[process];
        // An idle process polls as often as any other, and finds nothing. Polls that are older than two leases do not matter.
        let last_poll = state.last_poll.replace(self.now).unwrap_or(self.now);
        let mut idle = (self.now - last_poll).min(2 * micros(self.policy.lease()));
        while idle > POLL_INTERVAL {
            idle -= POLL_INTERVAL;
            let now = Timestamp::from_micros(due_work.now.as_micros() - i64::try_from(idle).unwrap());
            let nothing = DueWork { now, endpoints: Vec::new(), replaying_tenants: Vec::new(), earliest_due_at: None };
            state.in_flight.plan(&self.policy, &nothing, BTreeMap::new());
        }
        let mut outcomes: BTreeMap<TenantId, Vec<AttemptResult>> = BTreeMap::new();
        for outcome in state.outcomes.drain(..) {
            outcomes.entry(outcome.delivery.tenant_id).or_default().push(outcome);
        }
        let batches = state.in_flight.plan(&self.policy, &due_work, outcomes);
        if state.in_flight.must_bound_waits() {
            self.bound_waits();
        }
        let idle = batches.is_empty();
        let mut claimed = BTreeSet::new();
        for batch in batches {
            claimed.append(&mut self.run_batch(process, Arc::new(batch)));
        }
        self.model.check_capacity(&self.processes[process], &self.policy, &claimed);
        // The next poll of this process, at once after a batch, and of the others, which see only what is committed.
        let next = match due_work.next_due_at() {
            _ if !idle => 1_000,
            Some(next) => micros(next.since(due_work.now)).max(1_000),
            None if self.processes[process].running.is_empty() => return,
            None => POLL_INTERVAL,
        };
        self.wake(process, next);
        for other in (0..self.processes.len()).filter(|other| *other != process) {
            let wait = next + self.rng.random_range(0..POLL_INTERVAL);
            self.wake(other, wait);
        }
    }

    /// Bounds the waits of all endpoints, as a process does after its start and after the clock was set back.
    fn bound_waits(&mut self) {
        let policy = Arc::clone(&self.policy);
        let bound = self.write(policy, async |tx, policy| {
            let mut after = None;
            let mut bounded = BTreeSet::new();
            while let Some(endpoint) = tx.scheduled_endpoints(after, 1).await?.pop() {
                engine::bound_waits(tx, policy, endpoint.tenant_id, &[endpoint.subscription_id]).await?;
                bounded.insert(endpoint.subscription_id);
                after = Some(endpoint);
            }
            Ok(bounded)
        });
        let wall = self.wall();
        self.model.bound_waits(&bound.unwrap(), wall);
        self.wake_all();
        self.model.check_changed(&*self.store, wall);
    }

    /// Returns the endpoints of the claimed attempts.
    fn run_batch(&mut self, process: usize, batch: Arc<Batch>) -> BTreeSet<SubscriptionId> {
        let commit = match self.rng.random_range(0..200) {
            dice if dice < self.failing_commits => CommitResult::RolledBack,
            dice if dice < 2 * self.failing_commits => CommitResult::Unknown,
            _ => CommitResult::Committed,
        };
        let (policy, planned) = (Arc::clone(&self.policy), Arc::clone(&batch));
        let claimed = self.write((policy, planned, commit), async |tx, (policy, planned, commit)| {
            let claimed = engine::run_batch(tx, policy, planned).await?.attempts;
            if *commit == CommitResult::RolledBack {
                return Err(StoreError::Unavailable("the disk is full".to_owned()).into());
            }
            Ok(claimed)
        });
        if self.verbose {
            let recorded: Vec<_> =
                batch.outcomes.iter().map(|o| (o.delivery.id, o.log.attempt, o.log.status)).collect();
            let claimed: Vec<_> = claimed.iter().flatten().map(|a| (a.delivery.id, a.delivery.attempts)).collect();
            self.trace(&format!(
                "process {process} commits with {commit:?}: recorded {recorded:?}, claimed {claimed:?}"
            ));
        }
        let (wall, mut endpoints) = (self.wall(), BTreeSet::new());
        match (commit, claimed) {
            (CommitResult::RolledBack, Err(_)) => self.batch_failed(process, &batch),
            (_, Ok(attempts)) => {
                self.model.record(&batch.outcomes, wall);
                if batch.advances_replay() {
                    self.model.step_replay(batch.tenant_id, wall);
                }
                if commit == CommitResult::Committed {
                    endpoints.extend(attempts.iter().map(|attempt| attempt.delivery.subscription_id));
                    self.batch_committed(process, &batch, attempts);
                } else {
                    self.model.claim(&attempts, wall, &self.processes);
                    for attempt in &attempts {
                        self.model.lose(attempt.delivery.id, attempt.delivery.attempts);
                    }
                    self.batch_failed(process, &batch);
                }
                self.model.check_changed(&*self.store, wall);
            }
            (commit, Err(error)) => panic!("{commit:?}: {error}"),
        }
        endpoints
    }

    fn batch_failed(&mut self, process: usize, batch: &Batch) {
        let state = &mut self.processes[process];
        state.in_flight.batch_finished(batch, &[]);
        state.outcomes.extend(batch.outcomes.iter().cloned());
        self.wake(process, STORE_RETRY_DELAY);
    }

    fn batch_committed(&mut self, process: usize, batch: &Batch, attempts: Vec<Attempt>) {
        let wall = self.wall();
        self.model.claim(&attempts, wall, &self.processes);
        self.processes[process].in_flight.batch_finished(batch, &attempts);
        let life = self.processes[process].life;
        for attempt in attempts {
            let delivery = attempt.delivery.clone();
            let response = self.model.respond(&delivery, self.now, &mut self.rng);
            let log = AttemptLog {
                attempt: delivery.attempts,
                started_at: wall,
                duration_ms: u32::try_from(response.duration.as_millis()).unwrap(),
                status: response.status,
                error: response.error.map(str::to_owned),
                cause: None,
                response_body: None,
                response_truncated: false,
                remote_addr: None,
            };
            self.processes[process].running.insert((delivery.id, delivery.attempts), attempt);
            let outcome = Box::new(AttemptResult { delivery, log, retry_after: response.retry_after });
            self.schedule(micros(response.duration), SimulationEvent::AttemptFinished(process, life, outcome));
        }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap()
}
