//! The attempts of this process that are in flight, and the concurrency windows of their endpoints.

use std::collections::HashMap;
use std::time::Duration;

use super::attempt::{Attempt, AttemptResult};
use super::batch::{Action, Batch, Selection};
use super::policy::Policy;
use crate::store::Endpoint;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::subscriptions::SubscriptionId;

/// The window of an endpoint before its first outcome.
const INITIAL_WINDOW: usize = 4;
/// The largest window of an endpoint.
const MAX_WINDOW: usize = 64;
/// The number of remembered windows above which those of idle endpoints are forgotten.
const MAX_REMEMBERED_WINDOWS: usize = 10_000;
/// The longest gap between two polls of a driver that runs normally. After a longer one, the clock has jumped or the
/// process was suspended.
const MAX_POLL_GAP: Duration = Duration::from_secs(5);
/// The longest time by which the clock is set back in normal operation.
const MAX_CLOCK_CORRECTION: Duration = Duration::from_secs(1);

/// The attempts in flight from this process, counted per endpoint, per tenant and in total, and the concurrency window of
/// each endpoint.
///
/// [`plan`](Self::plan) reserves capacity for what a batch may claim. The driver releases what the batch did not claim with
/// [`batch_finished`](Self::batch_finished), and the capacity of each attempt with
/// [`attempt_finished`](Self::attempt_finished).
#[derive(Debug, Default)]
pub struct InFlight {
    endpoints: HashMap<SubscriptionId, EndpointWindow>,
    tenants: HashMap<TenantId, usize>,
    total: usize,
    attempts: usize,
    last_poll_at: Option<Timestamp>,
    waits_bounded: bool,
    clock_jump_grace_until: Option<Timestamp>,
}

/// The concurrency window of one endpoint.
#[derive(Clone, Copy, Debug)]
struct EndpointWindow {
    in_flight: usize,
    /// The highest number of attempts that may be in flight.
    size: usize,
}

/// The number of further attempts that may be claimed: for an endpoint, for its tenant, and in total.
pub(super) struct Capacity {
    pub(super) endpoint: usize,
    pub(super) tenant: usize,
    pub(super) total: usize,
}

impl InFlight {
    /// Returns the number of attempts in flight, including the reserved capacity of unfinished batches.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the number of attempts in flight, without what is reserved.
    pub fn attempts(&self) -> usize {
        self.attempts
    }

    /// Records that a batch has ended: frees the capacity that was reserved for it, except for the attempts that it
    /// claimed. For a batch that failed, `attempts` is empty.
    pub fn batch_finished(&mut self, batch: &Batch, attempts: &[Attempt]) {
        for Selection { subscription, action } in &batch.selections {
            if let Action::Claim { limit, .. } = action {
                self.free(batch.tenant_id, *subscription, *limit);
            }
        }
        for Attempt { delivery, .. } in attempts {
            self.reserve(delivery.tenant_id, delivery.subscription_id, 1);
        }
        self.attempts += attempts.len();
    }

    /// Records that an attempt has ended: frees its capacity, and grows or shrinks the window of its endpoint.
    pub fn attempt_finished(&mut self, outcome: &AttemptResult) {
        let Endpoint { tenant_id: tenant, subscription_id: subscription } = outcome.delivery.endpoint();
        self.free(tenant, subscription, 1);
        self.attempts = self.attempts.saturating_sub(1);
        if let Some(window) = self.endpoints.get_mut(&subscription) {
            window.size = if outcome.log.succeeded() { (window.size + 1).min(MAX_WINDOW) } else { 1 };
        }
        if self.endpoints.len() > MAX_REMEMBERED_WINDOWS {
            self.endpoints.retain(|_, window| window.in_flight > 0);
        }
    }

    /// Returns whether the window of an endpoint is larger than at first, since its attempts succeed.
    pub fn has_grown_window(&self, subscription: SubscriptionId) -> bool {
        self.endpoints.get(&subscription).is_some_and(|window| window.size > INITIAL_WINDOW)
    }

    /// Returns whether the driver must [bound the waits](super::bound_waits) of all endpoints now, because the clock was set
    /// back since they began: after a start, when that is not known, and when two polls show it. Returns it once.
    pub fn must_bound_waits(&mut self) -> bool {
        !std::mem::replace(&mut self.waits_bounded, true)
    }

    /// Records the time of a poll. Returns the time until which leases that seem to have ended may belong to attempts that
    /// still run, because the clock has jumped since the last poll.
    pub(super) fn record_poll(&mut self, now: Timestamp, policy: &Policy) -> Option<Timestamp> {
        if self.last_poll_at.is_some_and(|last| now.since(last) > MAX_POLL_GAP) {
            self.clock_jump_grace_until = now.checked_add(policy.lease());
        }
        if self.last_poll_at.is_some_and(|last| last.since(now) > MAX_CLOCK_CORRECTION) {
            self.waits_bounded = false;
            self.clock_jump_grace_until = self.clock_jump_grace_until.min(now.checked_add(policy.lease()));
        }
        self.last_poll_at = Some(now);
        self.clock_jump_grace_until = self.clock_jump_grace_until.filter(|until| now < *until);
        self.clock_jump_grace_until
    }

    /// Returns the number of attempts in flight to an endpoint.
    pub(super) fn in_flight_to(&self, subscription: SubscriptionId) -> usize {
        self.endpoints.get(&subscription).map_or(0, |window| window.in_flight)
    }

    /// Returns the number of attempts in flight to all endpoints of a tenant.
    pub(super) fn in_flight_of(&self, tenant: TenantId) -> usize {
        self.tenants.get(&tenant).copied().unwrap_or_default()
    }

    /// Returns how many more attempts may be claimed: for an endpoint, for its tenant, and in total.
    pub(super) fn capacity(&self, policy: &Policy, subscription: SubscriptionId, tenant: TenantId) -> Capacity {
        let window = match self.endpoints.get(&subscription).map_or(INITIAL_WINDOW, |window| window.size) {
            // The second half of the total is for endpoints whose attempts succeed, so that those that hang cannot take it.
            _ if self.total >= policy.concurrency / 2 && !self.has_grown_window(subscription) => 1,
            window => window,
        };
        Capacity {
            endpoint: window.saturating_sub(self.in_flight_to(subscription)),
            tenant: (policy.concurrency / 2).max(1).saturating_sub(self.in_flight_of(tenant)),
            total: policy.concurrency.saturating_sub(self.total),
        }
    }

    /// Counts attempts as in flight.
    pub(super) fn reserve(&mut self, tenant: TenantId, subscription: SubscriptionId, count: usize) {
        let window = self.endpoints.entry(subscription);
        window.or_insert(EndpointWindow { in_flight: 0, size: INITIAL_WINDOW }).in_flight += count;
        *self.tenants.entry(tenant).or_default() += count;
        self.total += count;
    }

    /// Stops counting attempts as in flight.
    fn free(&mut self, tenant: TenantId, subscription: SubscriptionId, count: usize) {
        self.total = self.total.saturating_sub(count);
        if let Some(in_flight) = self.tenants.get_mut(&tenant) {
            *in_flight = in_flight.saturating_sub(count);
            if *in_flight == 0 {
                self.tenants.remove(&tenant);
            }
        }
        if let Some(window) = self.endpoints.get_mut(&subscription) {
            window.in_flight = window.in_flight.saturating_sub(count);
        }
    }
}
