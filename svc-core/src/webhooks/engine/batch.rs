//! The work of one tenant in one transaction.

use std::time::Duration;

use super::attempt::{Attempt, AttemptResult};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{Delivery, DeliveryStatus};
use crate::webhooks::subscriptions::SubscriptionId;

/// The work that is done for one tenant in one transaction, by [`run_batch`](super::run_batch).
#[derive(Debug)]
pub struct Batch {
    /// The tenant whose deliveries these are.
    pub tenant_id: TenantId,
    /// The outcomes to record.
    pub outcomes: Vec<AttemptResult>,
    /// The endpoints that were selected, in the order of their schedule.
    pub(super) selections: Vec<Selection>,
    /// Whether to take one step of a bulk replay.
    pub(super) advance_replay: bool,
    /// The end of the grace period after a clock jump, until which leases that seem to have ended are extended. `None`
    /// outside of such a period.
    pub(super) clock_jump_grace_until: Option<Timestamp>,
}

impl Batch {
    pub(super) fn new(tenant: TenantId, clock_jump_grace_until: Option<Timestamp>) -> Self {
        Self {
            tenant_id: tenant,
            outcomes: Vec::new(),
            selections: Vec::new(),
            advance_replay: false,
            clock_jump_grace_until,
        }
    }

    /// Creates a batch that records outcomes and claims nothing, for a driver that is about to stop.
    pub fn outcomes_only(tenant: TenantId, outcomes: Vec<AttemptResult>) -> Self {
        Self { outcomes, ..Self::new(tenant, None) }
    }

    /// Returns whether the batch takes a step of a bulk replay.
    pub fn advances_replay(&self) -> bool {
        self.advance_replay
    }
}

/// The result of a batch.
#[derive(Debug, Default)]
pub struct BatchResult {
    /// The attempts that were claimed and are to be made now.
    pub attempts: Vec<Attempt>,
    /// The failed attempts whose outcomes were recorded.
    pub failures: Vec<FailedAttempt>,
}

/// A failed attempt, as it was recorded.
#[derive(Clone, Debug)]
pub struct FailedAttempt {
    /// The delivery after the attempt, with its new status and the time of the next attempt if there is one.
    pub delivery: Delivery,
    /// The host of the endpoint, and the port if its URL names one.
    pub host: String,
    /// The error of the attempt: a [`FailureClass`](crate::webhooks::deliveries::FailureClass), a colon, and what happened.
    pub error: Option<String>,
    /// Whether this was the tenth failure in a row, which paused the subscription.
    pub has_paused: bool,
}

impl FailedAttempt {
    /// Returns whether this was the last attempt, so that the delivery has failed until it is replayed.
    pub fn is_last(&self) -> bool {
        self.delivery.status == DeliveryStatus::Failed && self.delivery.failure_reason.is_none()
    }
}

/// An endpoint that was selected, and what is done with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    pub(super) subscription: SubscriptionId,
    pub(super) action: Action,
}

/// The action on an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) enum Action {
    /// Claim at most `limit` due deliveries. `in_flight` attempts of this process to the endpoint are under way
    /// already.
    Claim { limit: usize, in_flight: usize },
    /// Schedule the endpoint this much later.
    Defer(Duration),
}
