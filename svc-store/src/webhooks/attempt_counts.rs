//! The table of the counts of attempts.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::store::{AttemptCountRepository, StoreResult};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::statistics::{AttemptCount, CHART_HOURS};
use svc_core::webhooks::subscriptions::SubscriptionId;

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{BulkInsert, TableRow, record, select};

record!(AttemptCount, "attempt_counts", key: [hour, tenant_id, subscription_id, outcome, duration_ms], {
    inserted: [hour, tenant_id, subscription_id, outcome, duration_ms],
    updated: [attempts],
});

static ADD: LazyLock<BulkInsert> = LazyLock::new(|| {
    BulkInsert::of::<AttemptCount>(&format!(
        " ON CONFLICT ({}) DO UPDATE SET attempts = attempt_counts.attempts + excluded.attempts",
        AttemptCount::KEY.join(", ")
    ))
});
/// The hours are named one by one, as the key begins with them: a search for each, whatever other tenants have.
static LIST: LazyLock<String> = LazyLock::new(|| {
    let hours: Vec<String> = (3..3 + CHART_HOURS).map(|n| format!("${n}")).collect();
    select::<AttemptCount>(&format!("WHERE tenant_id = $1 AND subscription_id = $2 AND hour IN ({})", hours.join(", ")))
});
static DELETE_OF_TENANT: LazyLock<String> = LazyLock::new(|| {
    let hours: Vec<String> = (2..2 + CHART_HOURS).map(|n| format!("${n}")).collect();
    format!("DELETE FROM attempt_counts WHERE tenant_id = $1 AND hour IN ({})", hours.join(", "))
});
static DELETE: LazyLock<String> = LazyLock::new(|| {
    let key = AttemptCount::KEY.join(", ");
    format!(
        "DELETE FROM attempt_counts WHERE ({key}) IN \
         (SELECT {key} FROM attempt_counts WHERE hour < $1 ORDER BY hour LIMIT $2)"
    )
});

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let mut all: Vec<&str> = vec![&LIST, &DELETE_OF_TENANT, &DELETE];
    all.extend(ADD.all());
    all
}

#[async_trait]
impl AttemptCountRepository for SqlTx<'_> {
    async fn add_attempt_counts(&mut self, counts: &[AttemptCount]) -> StoreResult<()> {
        self.insert_records(&ADD, counts).await
    }

    async fn attempt_counts(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        hours: &[Timestamp; CHART_HOURS],
    ) -> StoreResult<Vec<AttemptCount>> {
        let mut params = vec![tenant.param(), subscription.param()];
        params.extend(hours.iter().map(|hour| hour.param()));
        self.fetch(&LIST, &params, AttemptCount::read).await
    }

    async fn delete_attempt_counts(&mut self, tenant: TenantId, hours: &[Timestamp; CHART_HOURS]) -> StoreResult<()> {
        let mut params = vec![tenant.param()];
        params.extend(hours.iter().map(|hour| hour.param()));
        self.pipeline(&DELETE_OF_TENANT, &params).await
    }

    async fn delete_attempt_counts_before(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        self.execute(&DELETE, &[before.param(), limit.param()]).await
    }
}
