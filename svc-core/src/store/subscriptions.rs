//! Which webhook subscriptions want an event, and when their endpoints are due.

use async_trait::async_trait;

use super::StoreResult;
use crate::values::{EventKind, TenantId, Timestamp};
use crate::webhooks::deliveries::MatchedSubscription;
use crate::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

/// Operations on webhook subscriptions besides those of [`Repository`](super::Repository).
#[async_trait]
pub trait SubscriptionMatching: Send {
    /// Returns the subscriptions of a tenant that match events of this kind and are enabled or paused by the service. Those
    /// that are deleted, or disabled by their owner, do not match. They are in the order of their ids.
    async fn matching_subscriptions(
        &mut self,
        tenant: TenantId,
        kind: EventKind,
    ) -> StoreResult<Vec<MatchedSubscription>>;

    /// Returns how many subscriptions of a tenant are not deleted.
    async fn count_live_subscriptions(&mut self, tenant: TenantId) -> StoreResult<u64>;

    /// Sets when a subscription that is not deleted expires, and no other field. Returns whether there is one.
    async fn set_subscription_expiry(
        &mut self,
        tenant: TenantId,
        id: SubscriptionId,
        expires_at: Timestamp,
    ) -> StoreResult<bool>;

    /// Returns at most `limit` subscriptions of all tenants that have expired at `now` and are not deleted.
    async fn expired_subscriptions(
        &mut self,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(TenantId, SubscriptionId)>>;

    /// Sets until when the rate of a subscription is used up, and no other field.
    async fn set_paced_until(&mut self, tenant: TenantId, id: SubscriptionId, until: Timestamp) -> StoreResult<()>;

    /// Stores what outcomes change of a subscription: `last_delivery_at`, `last_delivery_status`, `consecutive_failures`,
    /// `backoff_until`, `responses_kept` and `responses_deleted_until`, and no other field.
    async fn update_delivery_outcome(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> StoreResult<()>;
}

/// An endpoint: a subscription of a tenant, which deliveries are sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    /// The tenant.
    pub tenant_id: TenantId,
    /// The subscription.
    pub subscription_id: SubscriptionId,
}

/// The highest number of tenants whose endpoints [`due_endpoints`](EndpointSchedule::due_endpoints) can leave out.
pub const MAX_EXCEPTED_TENANTS: usize = 32;

/// The schedule of endpoints: each endpoint with pending deliveries has a time from which it is due.
///
/// Senders poll the schedule rather than the deliveries, so an endpoint with a large backlog delays no other.
#[async_trait]
pub trait EndpointSchedule: Send {
    /// Returns at most `limit` endpoints that are due at `now`, longest due first, except for those of some tenants. There
    /// may be at most [`MAX_EXCEPTED_TENANTS`] of these.
    async fn due_endpoints(&mut self, now: Timestamp, except: &[TenantId], limit: u32) -> StoreResult<Vec<Endpoint>>;

    /// Returns at most `limit` endpoints of these tenants that are due at `now`, longest due first. There may be at most
    /// [`MAX_EXCEPTED_TENANTS`] tenants.
    async fn due_endpoints_of(
        &mut self,
        now: Timestamp,
        tenants: &[TenantId],
        limit: u32,
    ) -> StoreResult<Vec<Endpoint>>;

    /// Returns at most `limit` endpoints of the schedule, whenever they are due, in the order of their tenants and ids and
    /// after the endpoint `after`.
    async fn scheduled_endpoints(&mut self, after: Option<Endpoint>, limit: u32) -> StoreResult<Vec<Endpoint>>;

    /// Returns the earliest time at which an endpoint is due, past or future. `None` if nothing is scheduled.
    async fn next_endpoint_due(&mut self) -> StoreResult<Option<Timestamp>>;

    /// Sets when an endpoint is due. `None` removes it from the schedule, for an endpoint without pending deliveries.
    async fn schedule_endpoint(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        due_at: Option<Timestamp>,
    ) -> StoreResult<()>;

    /// Makes an endpoint due at `due_at` unless it is due earlier, and wakes the sender after the commit.
    async fn schedule_endpoint_by(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        due_at: Timestamp,
    ) -> StoreResult<()>;
}
