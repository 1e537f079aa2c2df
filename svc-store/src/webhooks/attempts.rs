//! The table of delivery attempts.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::env;
use svc_core::store::{AttemptRepository, DeletedResponses, StoreResult};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, AttemptSummary, DeliveryId};
use svc_core::webhooks::events::EventId;
use svc_core::webhooks::subscriptions::SubscriptionId;

use super::deliveries::{BY_ENDPOINT, next_ids};
use crate::column::{CellError, Column as _};
use crate::sql::{Cells, SqlTx};
use crate::table::{TableRow, record, select};

record!(AttemptLog, "delivery_attempts", key: [tenant_id, delivery_id, attempt], {
    extra: [tenant_id: TenantId, delivery_id: DeliveryId],
    inserted: [
        attempt, started_at, duration_ms, status, error, cause, response_body, response_truncated, remote_addr,
    ],
    updated: [],
});

static LIST: LazyLock<String> = LazyLock::new(|| {
    select::<AttemptLog>("WHERE tenant_id = $1 AND delivery_id = $2 AND attempt < $3 ORDER BY attempt DESC LIMIT $4")
});
/// It leaves out the response bodies, which are large.
static SUMMARIES: LazyLock<String> = LazyLock::new(|| {
    let summaries = "SELECT a.status, a.error IS NOT NULL, a.duration_ms FROM deliveries d \
         JOIN delivery_attempts a ON a.tenant_id = d.tenant_id AND a.delivery_id = d.id \
         WHERE d.tenant_id = $1 AND d.subscription_id = $2 AND d.id >= $3 AND d.id < $4";
    BY_ENDPOINT.map(|part| format!("{summaries} AND d.{part}")).join(" UNION ALL ")
});
static DELETE_RESPONSES: LazyLock<String> = LazyLock::new(|| {
    let ids = "SELECT id FROM deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND id > $3 AND id <= $4";
    let ids = BY_ENDPOINT.map(|part| format!("{ids} AND {part}")).join(" UNION ALL ");
    format!("{TAKE_RESPONSES} AND delivery_id IN ({ids})")
});
/// The ids of deliveries have the time of their event, which no other event of the tenant has.
static DELETE_RESPONSES_TO: LazyLock<String> =
    LazyLock::new(|| format!("{TAKE_RESPONSES} AND delivery_id >= $2 AND delivery_id < $3"));
const TAKE_RESPONSES: &str = "UPDATE delivery_attempts SET response_body = NULL, response_truncated = TRUE \
     WHERE tenant_id = $1 AND response_body IS NOT NULL";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&LIST, &SUMMARIES, &DELETE_RESPONSES, &DELETE_RESPONSES_TO]
}

fn read_summary(cells: &mut Cells<'_>) -> Result<AttemptSummary, CellError> {
    Ok(AttemptSummary {
        status: cells.take("delivery_attempts", "status")?,
        failed: cells.take("delivery_attempts", "error")?,
        duration_ms: cells.take("delivery_attempts", "duration_ms")?,
    })
}

#[async_trait]
impl AttemptRepository for SqlTx<'_> {
    async fn insert_attempt(&mut self, tenant: TenantId, delivery: DeliveryId, log: &AttemptLog) -> StoreResult<()> {
        self.insert_record(&[tenant.param(), delivery.param()], log).await
    }

    async fn attempts(
        &mut self,
        tenant: TenantId,
        delivery: DeliveryId,
        before: u32,
        limit: u32,
    ) -> StoreResult<Vec<AttemptLog>> {
        let params = [tenant.param(), delivery.param(), before.param(), limit.param()];
        self.fetch(&LIST, &params, AttemptLog::read).await
    }

    async fn delete_responses(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        after: DeliveryId,
        limit: u32,
    ) -> StoreResult<DeletedResponses> {
        let params = [tenant.param(), subscription.param(), after.param(), limit.param()];
        let next: Vec<DeliveryId> =
            self.fetch(&next_ids(self.dialect), &params, |cells| cells.take("deliveries", "id")).await?;
        let last = next.last().copied();
        let mut responses = 0;
        if let Some(last) = last {
            let params = [tenant.param(), subscription.param(), after.param(), last.param()];
            responses = self.execute(&DELETE_RESPONSES, &params).await?;
        }
        Ok(DeletedResponses { responses: u32::try_from(responses).unwrap_or(u32::MAX), last })
    }

    async fn delete_responses_to(&mut self, tenant: TenantId, event: EventId) -> StoreResult<u64> {
        let at = env::time_of_id(event.uuid());
        let (first, end) = (env::first_id_at(at), env::first_id_at(at.next()));
        self.execute(&DELETE_RESPONSES_TO, &[tenant.param(), first.param(), end.param()]).await
    }

    async fn attempt_summaries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        since: Timestamp,
        until: Timestamp,
    ) -> StoreResult<Vec<AttemptSummary>> {
        let (first, end) = (env::first_id_at(since), env::first_id_at(until));
        let params = [tenant.param(), subscription.param(), first.param(), end.param()];
        self.fetch(&SUMMARIES, &params, read_summary).await
    }
}
