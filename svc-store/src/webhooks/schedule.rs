//! The table of when endpoints are due.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::error::StoreError;
use svc_core::store::{Endpoint, EndpointSchedule};
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use crate::column::Column as _;
use crate::record::{BulkInsert, on_conflict_update, record, upsert};
use crate::sql::{Cells, SqlTx, insert_params};

const TABLE: &str = "endpoint_schedule";

/// When an endpoint is due.
pub(crate) struct ScheduledEndpoint {
    tenant_id: TenantId,
    subscription_id: Uuid,
    due_at: Timestamp,
}

record!(ScheduledEndpoint, "endpoint_schedule", key: [tenant_id, subscription_id], {
    inserted: [tenant_id, subscription_id],
    updated: [due_at],
});

static SET: LazyLock<String> = LazyLock::new(upsert::<ScheduledEndpoint>);
static BRING_FORWARD: LazyLock<BulkInsert> = LazyLock::new(|| {
    let update = on_conflict_update::<ScheduledEndpoint>();
    BulkInsert::of::<ScheduledEndpoint>(&format!("{update} WHERE excluded.due_at < {TABLE}.due_at"))
});
const DELETE: &str = "DELETE FROM endpoint_schedule WHERE tenant_id = $1 AND subscription_id = $2";
const DUE: &str =
    "SELECT tenant_id, subscription_id FROM endpoint_schedule WHERE due_at <= $1 ORDER BY due_at LIMIT $2";
const NEXT_DUE: &str = "SELECT due_at FROM endpoint_schedule ORDER BY due_at LIMIT 1";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let mut all: Vec<&str> = vec![&SET, DELETE, DUE, NEXT_DUE];
    all.extend(BRING_FORWARD.all());
    all
}

impl SqlTx<'_> {
    /// Makes endpoints due at these times unless they are due earlier, and wakes the sender after the commit.
    pub(super) async fn schedule_endpoints_by(
        &mut self,
        due: impl Iterator<Item = (Endpoint, Timestamp)>,
    ) -> Result<(), StoreError> {
        // PostgreSQL refuses a statement that inserts and then updates the same row.
        let mut earliest = BTreeMap::new();
        for (endpoint, due_at) in due {
            earliest.entry(endpoint).and_modify(|at: &mut Timestamp| *at = due_at.min(*at)).or_insert(due_at);
        }
        let scheduled = |(Endpoint { tenant_id, subscription_id }, due_at)| ScheduledEndpoint {
            tenant_id,
            subscription_id,
            due_at,
        };
        let scheduled: Vec<ScheduledEndpoint> = earliest.into_iter().map(scheduled).collect();
        if !scheduled.is_empty() {
            self.insert_records(&BRING_FORWARD, &scheduled).await?;
            self.delivery_wakeup.mark();
        }
        Ok(())
    }
}

#[async_trait]
impl EndpointSchedule for SqlTx<'_> {
    async fn due_endpoints(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Endpoint>, StoreError> {
        let read = |cells: &mut Cells<'_>| {
            let (tenant_id, subscription_id) = (cells.take(TABLE, "tenant_id")?, cells.take(TABLE, "subscription_id")?);
            Ok(Endpoint { tenant_id, subscription_id })
        };
        self.fetch(DUE, &[now.param(), limit.param()], read).await
    }

    async fn next_endpoint_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.fetch_one(NEXT_DUE, &[], |cells| cells.take(TABLE, "due_at")).await
    }

    async fn schedule_endpoint(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        due_at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let Some(due_at) = due_at else {
            return self.pipeline(DELETE, &[tenant.param(), subscription.param()]).await;
        };
        let scheduled = ScheduledEndpoint { tenant_id: tenant, subscription_id: subscription, due_at };
        self.pipeline(&SET, &insert_params(&[], &scheduled)).await
    }

    async fn schedule_endpoint_by(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        due_at: Timestamp,
    ) -> Result<(), StoreError> {
        let endpoint = Endpoint { tenant_id: tenant, subscription_id: subscription };
        self.schedule_endpoints_by(std::iter::once((endpoint, due_at))).await
    }
}
