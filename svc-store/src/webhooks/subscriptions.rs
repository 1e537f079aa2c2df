//! The tables of webhook subscriptions and of the kinds of events that they want.

use async_trait::async_trait;
use svc_core::resources::NoFilter;
use svc_core::store::{StoreResult, SubscriptionMatching};
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::deliveries::MatchedSubscription;
use svc_core::webhooks::filters::Filter;
use svc_core::webhooks::subscriptions::{EventHandling, SubscriptionId, WebhookSubscription};

use crate::column::Column as _;
use crate::sql::{Cells, SqlTx};
use crate::table::{Query, ResourceTable, record};

record!(WebhookSubscription, "subscriptions", key: [tenant_id, id], {
    extra: [tenant_id: TenantId, live: bool],
    inserted: [id, created_at, grant_id],
    updated: [
        url, events, enabled, description, last_delivery_at, last_delivery_status, disabled_reason, paused_at,
        consecutive_failures, backoff_until, secret, previous_secret, previous_until, updated_at, deleted_at,
        stopped_at, responses_kept, responses_deleted_until, expires_at, headers, authentication, filter, payload,
        max_per_second, max_in_flight, timeout, retry_schedule, ordering, signature, signing_keys, client_certificate,
        certificate_authority, paced_until, stream_url,
    ],
});

/// A kind of event that a subscription wants, or `*`. Only subscriptions that take events now have such rows.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SubscriptionKind {
    pub(crate) tenant_id: TenantId,
    pub(crate) kind: String,
    pub(crate) subscription_id: SubscriptionId,
    pub(crate) paused: bool,
    pub(crate) filter: Option<String>,
    pub(crate) is_ordered: bool,
}

impl SubscriptionKind {
    /// Returns the rows of a subscription.
    pub(crate) fn all_of(tenant_id: TenantId, subscription: &WebhookSubscription) -> Vec<Self> {
        let paused = match subscription.event_handling() {
            EventHandling::Deliver => false,
            EventHandling::Hold => true,
            EventHandling::Ignore => return Vec::new(),
        };
        let of_kind = |kind: &str| Self {
            tenant_id,
            kind: kind.to_owned(),
            subscription_id: subscription.id,
            paused,
            filter: subscription.filter.as_ref().map(ToString::to_string),
            is_ordered: subscription.is_ordered(),
        };
        subscription.events.names().into_iter().map(of_kind).collect()
    }
}

record!(SubscriptionKind, "subscription_kinds", key: [tenant_id, kind, subscription_id], {
    inserted: [tenant_id, kind, subscription_id, paused, filter, is_ordered],
    updated: [],
});

const DELETE_KINDS: &str = "DELETE FROM subscription_kinds WHERE tenant_id = $1 AND subscription_id = $2";
const MATCHING: &str = "SELECT subscription_id, paused, filter, is_ordered FROM subscription_kinds \
     WHERE tenant_id = $1 AND kind IN ($2, '*')";
const COUNT_LIVE: &str = "SELECT count(*) FROM subscriptions WHERE tenant_id = $1 AND live = TRUE";
const SET_EXPIRY: &str = "UPDATE subscriptions SET expires_at = $1 WHERE tenant_id = $2 AND id = $3 AND live = TRUE";
const EXPIRED: &str = "SELECT tenant_id, id FROM subscriptions WHERE live = TRUE AND expires_at <= $1 LIMIT $2";
const SET_PACE: &str = "UPDATE subscriptions SET paced_until = $1 WHERE tenant_id = $2 AND id = $3";
const UPDATE_OUTCOME: &str = "UPDATE subscriptions SET last_delivery_at = $1, last_delivery_status = $2, \
     consecutive_failures = $3, backoff_until = $4, responses_kept = $5, responses_deleted_until = $6 \
     WHERE tenant_id = $7 AND id = $8";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![DELETE_KINDS, MATCHING, COUNT_LIVE, SET_EXPIRY, EXPIRED, SET_PACE, UPDATE_OUTCOME]
}

#[async_trait]
impl ResourceTable for WebhookSubscription {
    fn restrict(_filter: &NoFilter, _query: &mut Query) {}

    async fn after_write(&self, tx: &mut SqlTx<'_>, tenant: TenantId) -> StoreResult<()> {
        tx.forget(tenant);
        tx.pipeline(DELETE_KINDS, &[tenant.param(), self.id.param()]).await?;
        for kind in SubscriptionKind::all_of(tenant, self) {
            tx.insert_record(&[], &kind).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl SubscriptionMatching for SqlTx<'_> {
    async fn matching_subscriptions(
        &mut self,
        tenant: TenantId,
        kind: EventKind,
    ) -> StoreResult<Vec<MatchedSubscription>> {
        if let Some(known) = self.locked(tenant).and_then(|locked| locked.matching.get(&kind)) {
            return Ok(known.clone());
        }
        let read = |cells: &mut Cells<'_>| {
            Ok(MatchedSubscription {
                subscription_id: cells.take("subscription_kinds", "subscription_id")?,
                paused: cells.take("subscription_kinds", "paused")?,
                filter: cells.take::<Option<Filter>>("subscription_kinds", "filter")?,
                is_ordered: cells.take("subscription_kinds", "is_ordered")?,
            })
        };
        let mut matching = self.fetch(MATCHING, &[tenant.param(), kind.param()], read).await?;
        matching.sort_unstable_by_key(|subscription| subscription.subscription_id);
        if let Some(locked) = self.locked(tenant) {
            locked.matching.insert(kind, matching.clone());
        }
        Ok(matching)
    }

    async fn count_live_subscriptions(&mut self, tenant: TenantId) -> StoreResult<u64> {
        self.count(COUNT_LIVE, &[tenant.param()], "subscriptions").await
    }

    async fn set_subscription_expiry(
        &mut self,
        tenant: TenantId,
        id: SubscriptionId,
        expires_at: Timestamp,
    ) -> StoreResult<bool> {
        Ok(self.execute(SET_EXPIRY, &[expires_at.param(), tenant.param(), id.param()]).await? > 0)
    }

    async fn expired_subscriptions(
        &mut self,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(TenantId, SubscriptionId)>> {
        let read =
            |cells: &mut Cells<'_>| Ok((cells.take("subscriptions", "tenant_id")?, cells.take("subscriptions", "id")?));
        self.fetch(EXPIRED, &[now.param(), limit.param()], read).await
    }

    async fn set_paced_until(&mut self, tenant: TenantId, id: SubscriptionId, until: Timestamp) -> StoreResult<()> {
        self.pipeline(SET_PACE, &[until.param(), tenant.param(), id.param()]).await
    }

    async fn update_delivery_outcome(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> StoreResult<()> {
        let params = [
            subscription.last_delivery_at.param(),
            subscription.last_delivery_status.param(),
            subscription.consecutive_failures.param(),
            subscription.backoff_until.param(),
            subscription.responses_kept.param(),
            subscription.responses_deleted_until.param(),
            tenant.param(),
            subscription.id.param(),
        ];
        self.pipeline(UPDATE_OUTCOME, &params).await
    }
}
