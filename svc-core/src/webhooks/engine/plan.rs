//! Planning: turns the due work and the outcomes that have arrived into one batch per tenant.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use super::attempt::AttemptResult;
use super::batch::{Action, Batch, Selection};
use super::in_flight::InFlight;
use super::policy::Policy;
use crate::error::Error;
use crate::store::{Endpoint, MAX_EXCEPTED_TENANTS, Tx};
use crate::values::{TenantId, Timestamp};

/// The highest number of due endpoints that a poll reads at a time.
const ENDPOINTS_PER_PAGE: u32 = 256;
/// The number of endpoints in a full page above which a tenant may hide others, so that the next page leaves it out.
const CROWDING: usize = 32;
/// The highest number of endpoints in a batch, so that its transaction holds up others for a short time only.
const ENDPOINTS_PER_BATCH: usize = 64;
/// The highest number of tenants with unfinished bulk replays that one poll reads.
const REPLAYS_PER_POLL: u32 = 16;
/// How long an endpoint is deferred when its window is full. An outcome reschedules it earlier. If none comes, because the
/// process that made the attempts has crashed, its other deliveries wait this long.
pub(super) const FULL_WINDOW_DELAY: Duration = Duration::from_secs(2);

/// The work that is due, as one poll read it.
#[derive(Debug)]
pub struct DueWork {
    /// The time of the poll.
    pub now: Timestamp,
    /// The endpoints that are due, the longest due first; if there are many, those of each tenant that are due longest.
    pub endpoints: Vec<Endpoint>,
    /// The tenants with unfinished bulk replays.
    pub replaying_tenants: Vec<TenantId>,
    /// The earliest `due_at` of any endpoint, past or future. `None` when nothing is scheduled.
    pub earliest_due_at: Option<Timestamp>,
}

impl DueWork {
    /// Returns no work, as of a time.
    pub fn nothing(now: Timestamp) -> Self {
        Self { now, endpoints: Vec::new(), replaying_tenants: Vec::new(), earliest_due_at: None }
    }

    /// Adds the work of other tenants.
    pub fn add(&mut self, other: Self) {
        self.endpoints.extend(other.endpoints);
        self.replaying_tenants.extend(other.replaying_tenants);
        self.earliest_due_at = self.earliest_due_at.into_iter().chain(other.earliest_due_at).min();
    }

    /// Returns when the next endpoint becomes due, or `None` if one is due already or nothing is scheduled.
    pub fn next_due_at(&self) -> Option<Timestamp> {
        self.earliest_due_at.filter(|due_at| *due_at > self.now)
    }

    /// Removes the work of tenants for which `excluded` returns true, such as those whose batch still runs.
    pub fn exclude_tenants(&mut self, excluded: impl Fn(TenantId) -> bool) {
        self.endpoints.retain(|endpoint| !excluded(endpoint.tenant_id));
        self.replaying_tenants.retain(|tenant| !excluded(*tenant));
    }
}

/// Reads the work that is due, in a read transaction.
///
/// When many endpoints are due, it reads them in pages, and each page leaves out the tenants that have crowded the ones
/// before it. So however many endpoints of one tenant are due, those of other tenants are found.
///
/// # Errors
/// [`Error::Store`].
pub async fn poll(tx: &mut dyn Tx) -> Result<DueWork, Error> {
    let now = tx.env().now();
    let (mut endpoints, mut crowding) = (Vec::new(), Vec::new());
    loop {
        let page = tx.due_endpoints(now, &crowding, ENDPOINTS_PER_PAGE).await?;
        let crowded_before = crowding.len();
        if page.len() == ENDPOINTS_PER_PAGE as usize {
            crowding.extend(crowding_tenants(&page));
        }
        endpoints.extend(page);
        if crowding.len() == crowded_before || crowding.len() > MAX_EXCEPTED_TENANTS {
            break;
        }
    }
    let earliest_due_at = tx.next_endpoint_due().await?;
    let replaying_tenants = tx.tenants_with_unfinished_replays(REPLAYS_PER_POLL).await?;
    Ok(DueWork { now, endpoints, replaying_tenants, earliest_due_at })
}

/// Reads the work that is due of some tenants, in a read transaction: for a store whose tenants are on several servers, of which
/// one is away. There may be at most [`MAX_EXCEPTED_TENANTS`] tenants.
///
/// # Errors
/// [`Error::Store`].
pub async fn poll_of(tx: &mut dyn Tx, tenants: &[TenantId]) -> Result<DueWork, Error> {
    let now = tx.env().now();
    let endpoints = tx.due_endpoints_of(now, tenants, ENDPOINTS_PER_PAGE).await?;
    let replaying_tenants = tx.replaying_tenants_of(tenants).await?;
    Ok(DueWork { now, endpoints, replaying_tenants, earliest_due_at: None })
}

/// Returns the tenants that have so many endpoints in a page that they may hide others.
fn crowding_tenants(page: &[Endpoint]) -> impl Iterator<Item = TenantId> {
    let mut counts: BTreeMap<TenantId, usize> = BTreeMap::new();
    for endpoint in page {
        *counts.entry(endpoint.tenant_id).or_default() += 1;
    }
    counts.into_iter().filter(|(_, count)| *count > CROWDING).map(|(tenant, _)| tenant)
}

impl InFlight {
    /// Returns due endpoints in the order in which they are selected: the tenants take turns, the one with the fewest
    /// attempts in flight first, and the endpoints of a tenant come in the order of their schedule.
    fn take_turns(&self, endpoints: &[Endpoint]) -> Vec<Endpoint> {
        let mut in_flight: HashMap<TenantId, usize> = HashMap::new();
        let turn = |endpoint: &Endpoint| {
            let count = in_flight.entry(endpoint.tenant_id).or_insert_with(|| self.in_flight_of(endpoint.tenant_id));
            *count += 1;
            (*count, *endpoint)
        };
        let mut turns: Vec<(usize, Endpoint)> = endpoints.iter().map(turn).collect();
        turns.sort_by_key(|(turn, _)| *turn);
        turns.into_iter().map(|(_, endpoint)| endpoint).collect()
    }

    /// Plans one batch for each tenant that has outcomes to record, due endpoints or a bulk replay. Tenants take turns
    /// until the total capacity is used up.
    ///
    /// The capacity of what a batch may claim is reserved until [`batch_finished`](Self::batch_finished).
    pub fn plan(
        &mut self,
        policy: &Policy,
        due_work: &DueWork,
        outcomes: BTreeMap<TenantId, Vec<AttemptResult>>,
    ) -> Vec<Batch> {
        let clock_jump_grace_until = self.record_poll(due_work.now, policy);
        let mut batches: BTreeMap<TenantId, Batch> = BTreeMap::new();
        for (tenant, outcomes) in outcomes {
            batches.insert(tenant, Batch { outcomes, ..Batch::new(tenant, clock_jump_grace_until) });
        }
        let due = self.take_turns(&due_work.endpoints);
        // Endpoints in whose windows an outcome frees capacity queue behind those that are due already.
        let freed: Vec<Endpoint> =
            batches.values().flat_map(|batch| &batch.outcomes).map(|outcome| outcome.delivery.endpoint()).collect();
        let mut seen = HashSet::new();
        for (position, endpoint) in due.iter().chain(&freed).enumerate() {
            let Endpoint { tenant_id: tenant, subscription_id: subscription } = *endpoint;
            if !seen.insert(subscription) {
                continue;
            }
            let (in_flight, capacity) = (self.in_flight_to(subscription), self.capacity(policy, subscription, tenant));
            if capacity.total == 0 {
                // Nothing can be claimed before an attempt ends, so the schedule stays as it is.
                break;
            }
            if batches.get(&tenant).is_some_and(|batch| batch.selections.len() == ENDPOINTS_PER_BATCH) {
                // They stay due, and are next when the batch has ended.
                continue;
            }
            if capacity.tenant == 0 {
                // Nothing of the tenant can be claimed before one of its attempts ends. Its endpoints hide no others in a
                // poll, so they stay due.
                continue;
            }
            let action = if capacity.endpoint == 0 {
                Action::Defer(FULL_WINDOW_DELAY)
            } else {
                Action::Claim { limit: capacity.endpoint.min(capacity.tenant).min(capacity.total), in_flight }
            };
            match action {
                Action::Claim { limit, .. } => self.reserve(tenant, subscription, limit),
                // This endpoint is not due, so there is nothing to defer.
                Action::Defer(_) if position >= due.len() => continue,
                Action::Defer(_) => {}
            }
            let batch = batches.entry(tenant).or_insert_with(|| Batch::new(tenant, clock_jump_grace_until));
            batch.selections.push(Selection { subscription, action });
        }
        for tenant in &due_work.replaying_tenants {
            let batch = batches.entry(*tenant).or_insert_with(|| Batch::new(*tenant, clock_jump_grace_until));
            batch.advance_replay = true;
        }
        batches.into_values().collect()
    }
}
