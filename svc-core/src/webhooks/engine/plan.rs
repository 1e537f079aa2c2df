//! What is to be done next: which endpoints may begin how many attempts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

use super::{Attempt, FULL_PAUSE, Outcome, Policy};
use crate::error::Error;
use crate::store::Tx;
use crate::values::{TenantId, Timestamp};

/// Attempts in flight to an endpoint that nothing is known of.
const FIRST_WINDOW: usize = 4;
/// Most attempts in flight to one endpoint.
const LARGEST_WINDOW: usize = 64;
/// Endpoints that one look finds, at most.
const ENDPOINTS_PER_LOOK: u32 = 256;
/// Bulk replays that one look finds, at most.
const REPLAYS_PER_LOOK: u32 = 16;
/// How long an endpoint waits whose tenant has its share in flight.
const SHARE_PAUSE: Duration = Duration::from_millis(100);
/// Looks follow each other faster than this; if not, the clock has jumped, or nearly stood still.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Windows that are remembered before idle ones are forgotten.
const REMEMBERED: usize = 10_000;

/// What is in flight from this process.
#[derive(Debug, Default)]
pub struct InFlight {
    endpoints: HashMap<Uuid, Lane>,
    tenants: HashMap<TenantId, usize>,
    total: usize,
    looked_at: Option<Timestamp>,
    wary_until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    running: usize,
    window: usize,
}

impl InFlight {
    /// Attempts in flight.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Plans a round for each tenant that has outcomes to store or something to send, in the order of the turns.
    /// The places of what a round may begin are taken until [`began`](Self::began) says what it did begin.
    pub fn plan(&mut self, policy: &Policy, look: &Look, outcomes: BTreeMap<TenantId, Vec<Outcome>>) -> Vec<Round> {
        let wary_until = self.look(look.now, policy);
        let mut rounds: BTreeMap<TenantId, Round> = BTreeMap::new();
        for (tenant, outcomes) in outcomes {
            rounds.insert(tenant, Round { outcomes, ..Round::new(tenant, wary_until) });
        }
        // An endpoint that an outcome makes room for goes behind those who wait already.
        let ended: Vec<(TenantId, Uuid)> =
            rounds.values().flat_map(|round| &round.outcomes).map(|outcome| outcome.delivery.endpoint()).collect();
        let mut seen = HashSet::new();
        for (position, (tenant, subscription)) in look.endpoints.iter().chain(&ended).copied().enumerate() {
            if !seen.insert(subscription) {
                continue;
            }
            let (running, room) = (self.running(subscription), self.room(policy, subscription, tenant));
            if room.total == 0 {
                // Nobody can begin before an attempt ends; the turns stay as they are.
                break;
            }
            let order = if room.endpoint == 0 {
                Order::Wait(FULL_PAUSE)
            } else if room.tenant == 0 {
                Order::Wait(SHARE_PAUSE)
            } else {
                Order::Take { most: room.endpoint.min(room.tenant).min(room.total), running }
            };
            match order {
                Order::Take { most, .. } => self.take(tenant, subscription, most),
                // It has no turn to be put off yet.
                Order::Wait(_) if position >= look.endpoints.len() => continue,
                Order::Wait(_) => {}
            }
            let round = rounds.entry(tenant).or_insert_with(|| Round::new(tenant, wary_until));
            round.picks.push(Pick { subscription, order });
        }
        for tenant in &look.replaying {
            rounds.entry(*tenant).or_insert_with(|| Round::new(*tenant, wary_until)).replays = true;
        }
        rounds.into_values().collect()
    }

    /// Gives back the places of a round, save those of the attempts that it began.
    pub fn began(&mut self, round: &Round, attempts: &[Attempt]) {
        for Pick { subscription, order } in &round.picks {
            if let Order::Take { most, .. } = order {
                self.give_back(round.tenant, *subscription, *most);
            }
        }
        for Attempt { delivery, .. } in attempts {
            self.take(delivery.tenant, delivery.subscription, 1);
        }
    }

    /// Notes an attempt that has ended.
    pub fn end(&mut self, outcome: &Outcome) {
        let (tenant, subscription) = outcome.delivery.endpoint();
        self.give_back(tenant, subscription, 1);
        if let Some(lane) = self.endpoints.get_mut(&subscription) {
            lane.window = if outcome.log.succeeded() { (lane.window + 1).min(LARGEST_WINDOW) } else { 1 };
        }
        if self.endpoints.len() > REMEMBERED {
            self.endpoints.retain(|_, lane| lane.running > 0);
        }
    }

    /// Notes that the driver looks. Until the returned time, leases that have ended may be those of attempts that
    /// still run: the last look is so long ago that the clock must have jumped.
    fn look(&mut self, now: Timestamp, policy: &Policy) -> Option<Timestamp> {
        if self.looked_at.is_some_and(|last| now.since(last) > LONGEST_PAUSE) {
            self.wary_until = now.checked_add(policy.lease());
        }
        self.looked_at = Some(now);
        self.wary_until = self.wary_until.filter(|until| now < *until);
        self.wary_until
    }

    fn running(&self, subscription: Uuid) -> usize {
        self.endpoints.get(&subscription).map_or(0, |lane| lane.running)
    }

    /// How many more attempts may begin: of an endpoint, of its tenant, and in all.
    fn room(&self, policy: &Policy, subscription: Uuid, tenant: TenantId) -> Room {
        let window = match self.endpoints.get(&subscription).map_or(FIRST_WINDOW, |lane| lane.window) {
            // The second half is not for many that may all be slow.
            window if window <= FIRST_WINDOW && self.total >= policy.concurrency / 2 => 1,
            window => window,
        };
        let of_tenant = self.tenants.get(&tenant).copied().unwrap_or_default();
        Room {
            endpoint: window.saturating_sub(self.running(subscription)),
            tenant: (policy.concurrency / 2).max(1).saturating_sub(of_tenant),
            total: policy.concurrency.saturating_sub(self.total),
        }
    }

    fn take(&mut self, tenant: TenantId, subscription: Uuid, count: usize) {
        let lane = self.endpoints.entry(subscription);
        lane.or_insert(Lane { running: 0, window: FIRST_WINDOW }).running += count;
        *self.tenants.entry(tenant).or_default() += count;
        self.total += count;
    }

    fn give_back(&mut self, tenant: TenantId, subscription: Uuid, count: usize) {
        self.total = self.total.saturating_sub(count);
        if let Some(running) = self.tenants.get_mut(&tenant) {
            *running = running.saturating_sub(count);
            if *running == 0 {
                self.tenants.remove(&tenant);
            }
        }
        if let Some(lane) = self.endpoints.get_mut(&subscription) {
            lane.running = lane.running.saturating_sub(count);
        }
    }
}

struct Room {
    endpoint: usize,
    tenant: usize,
    total: usize,
}

/// What there is to do.
#[derive(Debug)]
pub struct Look {
    /// When it was looked.
    pub now: Timestamp,
    /// The endpoints whose turn has come, in the order of their turns.
    pub endpoints: Vec<(TenantId, Uuid)>,
    /// Tenants with bulk replays that are not finished.
    pub replaying: Vec<TenantId>,
    /// The first turn of all, come or to come.
    pub first: Option<Timestamp>,
}

impl Look {
    /// When the next turn comes, if none has come yet.
    pub fn next(&self) -> Option<Timestamp> {
        self.first.filter(|first| *first > self.now)
    }

    /// Leaves out tenants whose round is not over.
    pub fn leave_out(&mut self, busy: impl Fn(TenantId) -> bool) {
        self.endpoints.retain(|(tenant, _)| !busy(*tenant));
        self.replaying.retain(|tenant| !busy(*tenant));
    }
}

/// Looks what there is to do: a read job.
///
/// # Errors
/// [`Error::Store`].
pub async fn look(tx: &mut dyn Tx) -> Result<Look, Error> {
    let now = tx.env().now();
    let endpoints = tx.turns(now, ENDPOINTS_PER_LOOK).await?;
    let first = tx.first_turn().await?;
    let replaying = tx.replaying(REPLAYS_PER_LOOK).await?;
    Ok(Look { now, endpoints, replaying, first })
}

/// What is to be done for one tenant, in one transaction.
#[derive(Debug)]
pub struct Round {
    /// For whom.
    pub tenant: TenantId,
    /// Outcomes to store.
    pub outcomes: Vec<Outcome>,
    pub(super) picks: Vec<Pick>,
    pub(super) replays: bool,
    pub(super) wary_until: Option<Timestamp>,
}

impl Round {
    fn new(tenant: TenantId, wary_until: Option<Timestamp>) -> Self {
        Self { tenant, outcomes: Vec::new(), picks: Vec::new(), replays: false, wary_until }
    }

    /// Whether it takes a step of a bulk replay.
    pub fn steps_a_replay(&self) -> bool {
        self.replays
    }

    /// A round that stores outcomes and begins nothing, as when the driver is about to stop.
    pub fn last(tenant: TenantId, outcomes: Vec<Outcome>) -> Self {
        Self { outcomes, ..Self::new(tenant, None) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Pick {
    pub(super) subscription: Uuid,
    pub(super) order: Order,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Order {
    /// Begin so many at most, while so many are running.
    Take { most: usize, running: usize },
    /// Put the turn off.
    Wait(Duration),
}
