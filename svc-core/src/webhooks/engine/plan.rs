//! Planning: turns the due work and the outcomes that have arrived into one batch per tenant.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::attempt::Outcome;
use super::batch::{Action, Batch, Selection};
use super::in_flight::InFlight;
use super::policy::Policy;
use crate::error::Error;
use crate::store::{Endpoint, Tx};
use crate::values::{TenantId, Timestamp};

/// The highest number of due endpoints that one poll reads.
const ENDPOINTS_PER_POLL: u32 = 256;
/// The highest number of tenants with unfinished bulk replays that one poll reads.
const REPLAYS_PER_POLL: u32 = 16;
/// How long an endpoint is deferred when its window is full. An outcome reschedules it earlier. If none comes, because the
/// process that made the attempts has crashed, its other deliveries wait this long.
pub(super) const FULL_WINDOW_DELAY: Duration = Duration::from_secs(2);
/// How long an endpoint is deferred when its tenant has used its share of the concurrency.
const TENANT_SHARE_DELAY: Duration = Duration::from_millis(100);

/// The work that is due, as one poll read it.
#[derive(Debug)]
pub struct DueWork {
    /// The time of the poll.
    pub now: Timestamp,
    /// The endpoints that are due, the longest due first.
    pub endpoints: Vec<Endpoint>,
    /// The tenants with unfinished bulk replays.
    pub replaying_tenants: Vec<TenantId>,
    /// The earliest `due_at` of any endpoint, past or future. `None` when nothing is scheduled.
    pub earliest_due_at: Option<Timestamp>,
}

impl DueWork {
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
/// # Errors
/// [`Error::Store`].
pub async fn poll(tx: &mut dyn Tx) -> Result<DueWork, Error> {
    let now = tx.env().now();
    let endpoints = tx.due_endpoints(now, ENDPOINTS_PER_POLL).await?;
    let earliest_due_at = tx.next_endpoint_due().await?;
    let replaying_tenants = tx.tenants_with_unfinished_replays(REPLAYS_PER_POLL).await?;
    Ok(DueWork { now, endpoints, replaying_tenants, earliest_due_at })
}

impl InFlight {
    /// Plans one batch for each tenant that has outcomes to record, due endpoints or a bulk replay. Endpoints are selected
    /// in the order of their schedule until the total capacity is used up.
    ///
    /// The capacity of what a batch may claim is reserved until [`batch_finished`](Self::batch_finished).
    pub fn plan(
        &mut self,
        policy: &Policy,
        due_work: &DueWork,
        outcomes: BTreeMap<TenantId, Vec<Outcome>>,
    ) -> Vec<Batch> {
        let clock_jump_grace_until = self.record_poll(due_work.now, policy);
        let mut batches: BTreeMap<TenantId, Batch> = BTreeMap::new();
        for (tenant, outcomes) in outcomes {
            batches.insert(tenant, Batch { outcomes, ..Batch::new(tenant, clock_jump_grace_until) });
        }
        // Endpoints in whose windows an outcome frees capacity queue behind those that are due already.
        let freed: Vec<Endpoint> =
            batches.values().flat_map(|batch| &batch.outcomes).map(|outcome| outcome.delivery.endpoint()).collect();
        let mut seen = HashSet::new();
        for (position, endpoint) in due_work.endpoints.iter().chain(&freed).enumerate() {
            let Endpoint { tenant_id: tenant, subscription_id: subscription } = *endpoint;
            if !seen.insert(subscription) {
                continue;
            }
            let (in_flight, capacity) = (self.in_flight_to(subscription), self.capacity(policy, subscription, tenant));
            if capacity.total == 0 {
                // Nothing can be claimed before an attempt ends, so the schedule stays as it is.
                break;
            }
            let action = if capacity.endpoint == 0 {
                Action::Defer(FULL_WINDOW_DELAY)
            } else if capacity.tenant == 0 {
                Action::Defer(TENANT_SHARE_DELAY)
            } else {
                Action::Claim { limit: capacity.endpoint.min(capacity.tenant).min(capacity.total), in_flight }
            };
            match action {
                Action::Claim { limit, .. } => self.reserve(tenant, subscription, limit),
                // This endpoint is not due, so there is nothing to defer.
                Action::Defer(_) if position >= due_work.endpoints.len() => continue,
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
