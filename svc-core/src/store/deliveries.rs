//! Deliveries of events to endpoints, and bulk replays.

use std::ops::Range;

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreResult;
use crate::values::{EventKind, TenantId, Timestamp};
use crate::webhooks::deliveries::{Backlog, Delivery, DeliveryId, DeliveryStatus, FailureReason};
use crate::webhooks::events::{Event, EventId};
use crate::webhooks::replays::{Replay, ReplayId};
use crate::webhooks::subscriptions::SubscriptionId;

/// A delivery that is due, and the event that it delivers.
#[derive(Clone, Debug)]
pub struct DueDelivery {
    /// The delivery.
    pub delivery: Delivery,
    /// The event.
    pub event: Event,
    /// Whether the tenant is the sandbox of an account.
    pub is_sandbox: bool,
}

/// Deliveries of events to endpoints.
#[async_trait]
pub trait DeliveryRepository: Send {
    /// Adds deliveries, in a few statements however many they are. A pending one schedules its endpoint by the time that it
    /// is due.
    ///
    /// The id of each must contain the time of its event ([`Env::id`](crate::env::Env::id)), because stores use it to find
    /// the deliveries of an event.
    async fn insert_deliveries(&mut self, deliveries: &[Delivery]) -> StoreResult<()>;

    /// Adds one delivery, as [`insert_deliveries`](DeliveryRepository::insert_deliveries) does.
    async fn insert_delivery(&mut self, delivery: &Delivery) -> StoreResult<()> {
        self.insert_deliveries(std::slice::from_ref(delivery)).await
    }

    /// Returns one delivery.
    async fn delivery(&mut self, tenant: TenantId, id: DeliveryId) -> StoreResult<Option<Delivery>>;

    /// Returns those deliveries of a tenant that have one of these ids, in any order.
    async fn deliveries(&mut self, tenant: TenantId, ids: &[DeliveryId]) -> StoreResult<Vec<Delivery>>;

    /// Stores the progress of a delivery if its stored lease is still `lease`. Otherwise it changes nothing and returns
    /// `Ok`: a caller that has to know locks the tenant and reads the delivery first.
    async fn update_delivery(&mut self, delivery: &Delivery, lease: Option<Uuid>) -> StoreResult<()>;

    /// Stores what [`Delivery::claim`] has set, if the stored lease is still `lease`, as
    /// [`update_delivery`](DeliveryRepository::update_delivery) does.
    async fn claim_delivery(&mut self, delivery: &Delivery, lease: Option<Uuid>) -> StoreResult<()> {
        self.update_delivery(delivery, lease).await
    }

    /// Returns the deliveries of a tenant that match a filter, newest first unless the filter says otherwise.
    async fn list_deliveries(&mut self, tenant: TenantId, filter: &DeliveryFilter) -> StoreResult<Vec<Delivery>>;

    /// Returns at most `limit` pending deliveries of an endpoint that are due at `now`, longest due first.
    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<DueDelivery>>;

    /// Returns when the next pending delivery of an endpoint is due.
    async fn next_delivery_due(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
    ) -> StoreResult<Option<Timestamp>>;

    /// Returns the first pending delivery of an endpoint with this [`order_key`](Delivery::order_key), by the time of its event.
    async fn first_ordered(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        order_key: Uuid,
    ) -> StoreResult<Option<DeliveryId>>;

    /// Returns how many deliveries of an endpoint have an attempt in flight, of all processes: a lease that ends in these times.
    async fn count_in_flight(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        lease_ends: Range<Timestamp>,
    ) -> StoreResult<u64>;

    /// Makes the pending deliveries of an endpoint that wait for this due at `latest`, unless they are due earlier. The
    /// schedule of the endpoint stays as it is.
    async fn bring_deliveries_forward(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        waiting: WaitingFor,
        latest: Timestamp,
    ) -> StoreResult<()>;

    /// Changes at most `limit` pending deliveries of an endpoint, of events before `before`, to held, and returns how many.
    /// Those that have an attempt in flight keep their lease.
    async fn hold_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<u64>;

    /// Changes at most `limit` pending or held deliveries of an endpoint to failed, for this reason, and returns how many.
    /// Those that have an attempt in flight keep their lease.
    async fn fail_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        reason: FailureReason,
        limit: u32,
    ) -> StoreResult<u64>;

    /// Returns the time of the event of the delivery that has `n` others before it in the order of a filter, or `None` if
    /// there are no more than `n`.
    ///
    /// Of the filter, only those conditions count that an index serves: all but the kind, and the status unless it is failed or
    /// held. So the cost is bounded by `n`.
    async fn nth_listed(&mut self, tenant: TenantId, filter: &DeliveryFilter, n: u32)
    -> StoreResult<Option<Timestamp>>;

    /// Returns how many deliveries match a filter, and `limit` of the filter for that many or more.
    ///
    /// Only those conditions count that an index serves, as for [`nth_listed`](DeliveryRepository::nth_listed). So the cost is
    /// bounded by the limit.
    async fn count_listed(&mut self, tenant: TenantId, filter: &DeliveryFilter) -> StoreResult<u64> {
        let served = DeliveryFilter { status: filter.indexed_status(), kind: None, ..filter.clone() };
        Ok(self.list_deliveries(tenant, &served).await?.len() as u64)
    }

    /// Returns how many deliveries of an endpoint are pending, failed or held, and 0 for those that succeeded.
    ///
    /// It counts up to [`MAX_BACKLOG_COUNT`](crate::webhooks::deliveries::MAX_BACKLOG_COUNT), so its cost is bounded.
    async fn count_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        status: DeliveryStatus,
    ) -> StoreResult<u64>;

    /// Returns how many deliveries of all tenants have a status, and how old the oldest is. Of sandboxes, those that are pending
    /// count alone: the sender has to send them, but the operator need not mend what failed there.
    ///
    /// It counts up to [`MAX_BACKLOG_COUNT`](crate::webhooks::deliveries::MAX_BACKLOG_COUNT), so its cost is
    /// bounded; of failed and held deliveries it counts the oldest. Succeeded deliveries are not a backlog: for them the
    /// count is 0.
    async fn backlog(&mut self, status: DeliveryStatus) -> StoreResult<Backlog>;
}

/// The thing that a pending delivery waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingFor {
    /// The outcome of an attempt, or the end of its lease.
    Outcome,
    /// Its next attempt, after this number of failures.
    Attempt {
        /// The number of failures since it was created or last replayed.
        failures: u32,
    },
    /// Its next attempt after a response with 429 or 503, which may have asked for a delay with `Retry-After`.
    AttemptAfterBackpressure,
}

impl WaitingFor {
    /// Returns what a delivery waits for, or `None` if it is not pending.
    pub fn of(delivery: &Delivery) -> Option<Self> {
        if delivery.status != DeliveryStatus::Pending {
            None
        } else if delivery.lease.is_some() {
            Some(Self::Outcome)
        } else if delivery.failures > 0 && matches!(delivery.last_status, Some(429 | 503)) {
            Some(Self::AttemptAfterBackpressure)
        } else {
            Some(Self::Attempt { failures: delivery.failures })
        }
    }
}

/// A filter of deliveries. Every condition that is set must hold.
#[derive(Clone, Debug, Default)]
pub struct DeliveryFilter {
    /// Deliveries to this subscription.
    pub subscription_id: Option<SubscriptionId>,
    /// Deliveries of this event.
    pub event_id: Option<EventId>,
    /// Deliveries with this status.
    pub status: Option<DeliveryStatus>,
    /// Deliveries of events of this kind.
    pub kind: Option<EventKind>,
    /// Deliveries of events at or after this time.
    pub since: Option<Timestamp>,
    /// Deliveries of events before this time.
    pub until: Option<Timestamp>,
    /// Whether the oldest come first instead of the newest.
    pub oldest_first: bool,
    /// The maximum number of deliveries to return. 0 means no limit.
    pub limit: u32,
}

impl DeliveryFilter {
    /// Returns the filter that matches all deliveries of an event.
    pub fn of_event(event: EventId) -> Self {
        Self { event_id: Some(event), ..Self::default() }
    }

    /// Returns whether a delivery meets every condition.
    pub fn matches(&self, delivery: &Delivery) -> bool {
        self.subscription_id.is_none_or(|wanted| delivery.subscription_id == wanted)
            && self.event_id.is_none_or(|wanted| delivery.event_id == wanted)
            && self.status.is_none_or(|wanted| delivery.status == wanted)
            && self.kind.is_none_or(|wanted| delivery.kind == wanted)
            && self.since.is_none_or(|since| delivery.created_at >= since)
            && self.until.is_none_or(|until| delivery.created_at < until)
    }

    /// Returns the status if an index finds the deliveries that have it. Those are few, unlike those that succeed.
    pub fn indexed_status(&self) -> Option<DeliveryStatus> {
        self.status.filter(|status| matches!(status, DeliveryStatus::Failed | DeliveryStatus::Held))
    }
}

/// Bulk replays of deliveries.
#[async_trait]
pub trait ReplayRepository: Send {
    /// Adds a bulk replay, and wakes the sender after the commit.
    async fn insert_replay(&mut self, replay: &Replay) -> StoreResult<()>;

    /// Returns one bulk replay.
    async fn replay(&mut self, tenant: TenantId, id: ReplayId) -> StoreResult<Option<Replay>>;

    /// Returns at most `limit` bulk replays of a tenant, newest first.
    async fn replays(&mut self, tenant: TenantId, limit: u32) -> StoreResult<Vec<Replay>>;

    /// Returns the unfinished bulk replay of a tenant whose last step is longest ago.
    async fn unfinished_replay(&mut self, tenant: TenantId) -> StoreResult<Option<Replay>>;

    /// Returns the tenants of at most `limit` unfinished bulk replays, those whose last step is longest ago first. A tenant
    /// is returned once for each of its bulk replays.
    async fn tenants_with_unfinished_replays(&mut self, limit: u32) -> StoreResult<Vec<TenantId>>;

    /// Returns those of at most [`MAX_EXCEPTED_TENANTS`](super::MAX_EXCEPTED_TENANTS) tenants that have an unfinished bulk replay.
    async fn replaying_tenants_of(&mut self, tenants: &[TenantId]) -> StoreResult<Vec<TenantId>>;

    /// Returns at most `limit` unfinished bulk replays of all tenants, those whose last step is longest ago first.
    async fn unfinished_replays(&mut self, limit: u32) -> StoreResult<Vec<Replay>>;

    /// Stores the progress of a bulk replay.
    async fn update_replay(&mut self, replay: &Replay) -> StoreResult<()>;
}
