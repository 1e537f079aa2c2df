//! What is to be done next: which endpoints may begin how many attempts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use uuid::Uuid;

use super::{Attempt, FULL_WINDOW_DELAY, Outcome, Policy};
use crate::error::Error;
use crate::store::Tx;
use crate::values::{TenantId, Timestamp};

/// Attempts in flight to an endpoint that nothing is known of.
const FIRST_WINDOW: usize = 4;
/// Most attempts in flight to one endpoint.
const LARGEST_WINDOW: usize = 64;
/// Endpoints that one look finds, at most.
const ENDPOINTS_PER_POLL: u32 = 256;
/// Bulk replays that one look finds, at most.
const REPLAYS_PER_POLL: u32 = 16;
/// How long an endpoint waits whose tenant has its share in flight.
const TENANT_SHARE_DELAY: Duration = Duration::from_millis(100);
/// Looks follow each other faster than this; if not, the clock has jumped, or nearly stood still.
const LONGEST_POLL_GAP: Duration = Duration::from_secs(5);
/// Windows that are remembered before idle ones are forgotten.
const WINDOWS_KEPT: usize = 10_000;

/// What is in flight from this process.
#[derive(Debug, Default)]
pub struct InFlight {
    endpoints: HashMap<Uuid, EndpointWindow>,
    tenants: HashMap<TenantId, usize>,
    total: usize,
    polled_at: Option<Timestamp>,
    clock_jump_grace_until: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug)]
struct EndpointWindow {
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
    pub fn plan(
        &mut self,
        policy: &Policy,
        due_work: &DueWork,
        outcomes: BTreeMap<TenantId, Vec<Outcome>>,
    ) -> Vec<Batch> {
        let clock_jump_grace_until = self.poll(due_work.now, policy);
        let mut batches: BTreeMap<TenantId, Batch> = BTreeMap::new();
        for (tenant, outcomes) in outcomes {
            batches.insert(tenant, Batch { outcomes, ..Batch::new(tenant, clock_jump_grace_until) });
        }
        // An endpoint that an outcome makes room for goes behind those who wait already.
        let ended: Vec<(TenantId, Uuid)> =
            batches.values().flat_map(|batch| &batch.outcomes).map(|outcome| outcome.delivery.endpoint()).collect();
        let mut seen = HashSet::new();
        for (position, (tenant, subscription)) in due_work.endpoints.iter().chain(&ended).copied().enumerate() {
            if !seen.insert(subscription) {
                continue;
            }
            let (running, capacity) = (self.running(subscription), self.capacity(policy, subscription, tenant));
            if capacity.total == 0 {
                // Nobody can begin before an attempt ends; the turns stay as they are.
                break;
            }
            let action = if capacity.endpoint == 0 {
                Action::Defer(FULL_WINDOW_DELAY)
            } else if capacity.tenant == 0 {
                Action::Defer(TENANT_SHARE_DELAY)
            } else {
                Action::Claim { most: capacity.endpoint.min(capacity.tenant).min(capacity.total), running }
            };
            match action {
                Action::Claim { most, .. } => self.reserve(tenant, subscription, most),
                // It has no turn to be put off yet.
                Action::Defer(_) if position >= due_work.endpoints.len() => continue,
                Action::Defer(_) => {}
            }
            let batch = batches.entry(tenant).or_insert_with(|| Batch::new(tenant, clock_jump_grace_until));
            batch.selections.push(Selection { subscription, action });
        }
        for tenant in &due_work.replaying {
            batches.entry(*tenant).or_insert_with(|| Batch::new(*tenant, clock_jump_grace_until)).replays = true;
        }
        batches.into_values().collect()
    }

    /// Gives back the places of a round, save those of the attempts that it began.
    pub fn began(&mut self, batch: &Batch, attempts: &[Attempt]) {
        for Selection { subscription, action } in &batch.selections {
            if let Action::Claim { most, .. } = action {
                self.free(batch.tenant_id, *subscription, *most);
            }
        }
        for Attempt { delivery, .. } in attempts {
            self.reserve(delivery.tenant_id, delivery.subscription_id, 1);
        }
    }

    /// Notes an attempt that has ended.
    pub fn end(&mut self, outcome: &Outcome) {
        let (tenant, subscription) = outcome.delivery.endpoint();
        self.free(tenant, subscription, 1);
        if let Some(window) = self.endpoints.get_mut(&subscription) {
            window.window = if outcome.log.succeeded() { (window.window + 1).min(LARGEST_WINDOW) } else { 1 };
        }
        if self.endpoints.len() > WINDOWS_KEPT {
            self.endpoints.retain(|_, window| window.running > 0);
        }
    }

    /// Notes that the driver looks. Until the returned time, leases that have ended may be those of attempts that
    /// still run: the last look is so long ago that the clock must have jumped.
    fn poll(&mut self, now: Timestamp, policy: &Policy) -> Option<Timestamp> {
        if self.polled_at.is_some_and(|last| now.since(last) > LONGEST_POLL_GAP) {
            self.clock_jump_grace_until = now.checked_add(policy.lease());
        }
        self.polled_at = Some(now);
        self.clock_jump_grace_until = self.clock_jump_grace_until.filter(|until| now < *until);
        self.clock_jump_grace_until
    }

    fn running(&self, subscription: Uuid) -> usize {
        self.endpoints.get(&subscription).map_or(0, |window| window.running)
    }

    /// How many more attempts may begin: of an endpoint, of its tenant, and in all.
    fn capacity(&self, policy: &Policy, subscription: Uuid, tenant: TenantId) -> Capacity {
        let window = match self.endpoints.get(&subscription).map_or(FIRST_WINDOW, |window| window.window) {
            // The second half is not for many that may all be slow.
            window if window <= FIRST_WINDOW && self.total >= policy.concurrency / 2 => 1,
            window => window,
        };
        let of_tenant = self.tenants.get(&tenant).copied().unwrap_or_default();
        Capacity {
            endpoint: window.saturating_sub(self.running(subscription)),
            tenant: (policy.concurrency / 2).max(1).saturating_sub(of_tenant),
            total: policy.concurrency.saturating_sub(self.total),
        }
    }

    fn reserve(&mut self, tenant: TenantId, subscription: Uuid, count: usize) {
        let window = self.endpoints.entry(subscription);
        window.or_insert(EndpointWindow { running: 0, window: FIRST_WINDOW }).running += count;
        *self.tenants.entry(tenant).or_default() += count;
        self.total += count;
    }

    fn free(&mut self, tenant: TenantId, subscription: Uuid, count: usize) {
        self.total = self.total.saturating_sub(count);
        if let Some(running) = self.tenants.get_mut(&tenant) {
            *running = running.saturating_sub(count);
            if *running == 0 {
                self.tenants.remove(&tenant);
            }
        }
        if let Some(window) = self.endpoints.get_mut(&subscription) {
            window.running = window.running.saturating_sub(count);
        }
    }
}

struct Capacity {
    endpoint: usize,
    tenant: usize,
    total: usize,
}

/// What there is to do.
#[derive(Debug)]
pub struct DueWork {
    /// When it was looked.
    pub now: Timestamp,
    /// The endpoints whose turn has come, in the order of their turns.
    pub endpoints: Vec<(TenantId, Uuid)>,
    /// Tenants with bulk replays that are not finished.
    pub replaying: Vec<TenantId>,
    /// The first turn of all, come or to come.
    pub first: Option<Timestamp>,
}

impl DueWork {
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
pub async fn poll(tx: &mut dyn Tx) -> Result<DueWork, Error> {
    let now = tx.env().now();
    let due = tx.due_endpoints(now, ENDPOINTS_PER_POLL).await?;
    let endpoints = due.into_iter().map(|endpoint| (endpoint.tenant_id, endpoint.subscription_id)).collect();
    let first = tx.next_endpoint_due().await?;
    let replaying = tx.tenants_with_unfinished_replays(REPLAYS_PER_POLL).await?;
    Ok(DueWork { now, endpoints, replaying, first })
}

/// What is to be done for one tenant, in one transaction.
#[derive(Debug)]
pub struct Batch {
    /// For whom.
    pub tenant_id: TenantId,
    /// Outcomes to store.
    pub outcomes: Vec<Outcome>,
    pub(super) selections: Vec<Selection>,
    pub(super) replays: bool,
    pub(super) clock_jump_grace_until: Option<Timestamp>,
}

impl Batch {
    fn new(tenant: TenantId, clock_jump_grace_until: Option<Timestamp>) -> Self {
        Self { tenant_id: tenant, outcomes: Vec::new(), selections: Vec::new(), replays: false, clock_jump_grace_until }
    }

    /// Whether it takes a step of a bulk replay.
    pub fn advances_a_replay(&self) -> bool {
        self.replays
    }

    /// A round that stores outcomes and begins nothing, as when the driver is about to stop.
    pub fn last(tenant: TenantId, outcomes: Vec<Outcome>) -> Self {
        Self { outcomes, ..Self::new(tenant, None) }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    pub(super) subscription: Uuid,
    pub(super) action: Action,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Begin so many at most, while so many are running.
    Claim { most: usize, running: usize },
    /// Put the turn off.
    Defer(Duration),
}
