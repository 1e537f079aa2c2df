//! The table of when endpoints are due.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::error::StoreError;
use svc_core::store::{Endpoint, EndpointSchedule, MAX_EXCEPTED_TENANTS, StoreResult};
use svc_core::values::{Id, TenantId, Timestamp};
use svc_core::webhooks::subscriptions::SubscriptionId;
use uuid::Uuid;

use crate::column::{CellError, Column, Param};
use crate::sql::{Cells, SqlTx};
use crate::table::{BulkInsert, insert_params, on_conflict_update, record, upsert};

const TABLE: &str = "endpoint_schedule";

/// When an endpoint is due.
pub(crate) struct ScheduledEndpoint {
    tenant_id: TenantId,
    subscription_id: SubscriptionId,
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
/// One statement for none, and others for numbers of tenants that are left out, so that a connection keeps few of them.
static DUE: LazyLock<[(usize, String); 3]> =
    LazyLock::new(|| [0, 8, MAX_EXCEPTED_TENANTS].map(|tenants| (tenants, due_statement("NOT IN", tenants))));
static DUE_OF: LazyLock<String> = LazyLock::new(|| due_statement("IN", MAX_EXCEPTED_TENANTS));
const SCHEDULED: &str = "SELECT tenant_id, subscription_id FROM endpoint_schedule \
     WHERE (tenant_id, subscription_id) > ($1, $2) ORDER BY tenant_id, subscription_id LIMIT $3";
const NEXT_DUE: &str = "SELECT due_at FROM endpoint_schedule ORDER BY due_at LIMIT 1";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let mut all: Vec<&str> = vec![&SET, DELETE, &DUE_OF, SCHEDULED, NEXT_DUE];
    all.extend(DUE.iter().map(|(_, sql)| sql.as_str()));
    all.extend(BRING_FORWARD.all());
    all
}

fn read_endpoint(cells: &mut Cells<'_>) -> Result<Endpoint, CellError> {
    let (tenant_id, subscription_id) = (cells.take(TABLE, "tenant_id")?, cells.take(TABLE, "subscription_id")?);
    Ok(Endpoint { tenant_id, subscription_id })
}

/// Returns the statement that reads which endpoints are due, of tenants that are `IN` so many places or `NOT IN` them.
fn due_statement(operator: &str, tenants: usize) -> String {
    let places: Vec<String> = (2..2 + tenants).map(|n| format!("${n}")).collect();
    let condition =
        if tenants == 0 { String::new() } else { format!("AND tenant_id {operator} ({}) ", places.join(", ")) };
    let limit = tenants + 2;
    format!(
        "SELECT tenant_id, subscription_id FROM endpoint_schedule \
         WHERE due_at <= $1 {condition}ORDER BY due_at LIMIT ${limit}"
    )
}

/// Returns tenants as the parameters of so many places. The first tenant fills the places that are left.
fn tenants_in(places: usize, tenants: &[TenantId]) -> impl Iterator<Item = Param<'_>> {
    tenants.iter().chain(tenants.iter().take(1).cycle()).take(places).map(Column::param)
}

/// Returns the parameters of a statement that has a place for each of [`MAX_EXCEPTED_TENANTS`] tenants.
pub(super) fn tenants_or_first(tenants: &[TenantId]) -> StoreResult<impl Iterator<Item = Param<'_>>> {
    if tenants.is_empty() || tenants.len() > MAX_EXCEPTED_TENANTS {
        return Err(StoreError::Internal(format!("{} tenants cannot be asked for at once", tenants.len())));
    }
    Ok(tenants_in(MAX_EXCEPTED_TENANTS, tenants))
}

impl SqlTx<'_> {
    /// Makes endpoints due at these times unless they are due earlier, and wakes the sender after the commit.
    pub(super) async fn schedule_endpoints_by(
        &mut self,
        due: impl Iterator<Item = (Endpoint, Timestamp)>,
    ) -> StoreResult<()> {
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
        if !earliest.is_empty() {
            self.delivery_wakeup.mark();
        }
        earliest.retain(|endpoint, due_at| {
            let Some(locked) = self.locked(endpoint.tenant_id) else { return true };
            let known = locked.schedule.get(&endpoint.subscription_id);
            let is_later = known.is_none_or(|known| *known > *due_at);
            if is_later {
                locked.schedule.insert(endpoint.subscription_id, *due_at);
            }
            is_later
        });
        let scheduled: Vec<ScheduledEndpoint> = earliest.into_iter().map(scheduled).collect();
        self.insert_records(&BRING_FORWARD, &scheduled).await
    }
}

#[async_trait]
impl EndpointSchedule for SqlTx<'_> {
    async fn due_endpoints(&mut self, now: Timestamp, except: &[TenantId], limit: u32) -> StoreResult<Vec<Endpoint>> {
        let fitting = DUE.iter().find(|(tenants, _)| except.len() <= *tenants);
        let (tenants, sql) = fitting
            .ok_or_else(|| StoreError::Internal(format!("{} tenants cannot be left out of a poll", except.len())))?;
        let mut params = vec![now.param()];
        params.extend(tenants_in(*tenants, except));
        params.push(limit.param());
        self.fetch(sql, &params, read_endpoint).await
    }

    async fn due_endpoints_of(
        &mut self,
        now: Timestamp,
        tenants: &[TenantId],
        limit: u32,
    ) -> StoreResult<Vec<Endpoint>> {
        if let Some(first) = tenants.first() {
            self.sql.enter(first.0)?;
        }
        let mut params = vec![now.param()];
        params.extend(tenants_or_first(tenants)?);
        params.push(limit.param());
        self.fetch(&DUE_OF, &params, read_endpoint).await
    }

    async fn scheduled_endpoints(&mut self, after: Option<Endpoint>, limit: u32) -> StoreResult<Vec<Endpoint>> {
        // No endpoint has nil ids.
        let (tenant, subscription) =
            after.map_or((Uuid::nil(), Id::nil()), |endpoint| (endpoint.tenant_id.0, endpoint.subscription_id));
        self.fetch(SCHEDULED, &[tenant.param(), subscription.param(), limit.param()], read_endpoint).await
    }

    async fn next_endpoint_due(&mut self) -> StoreResult<Option<Timestamp>> {
        self.fetch_one(NEXT_DUE, &[], |cells| cells.take(TABLE, "due_at")).await
    }

    async fn schedule_endpoint(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        due_at: Option<Timestamp>,
    ) -> StoreResult<()> {
        if let Some(locked) = self.locked(tenant) {
            locked.schedule.remove(&subscription);
        }
        let Some(due_at) = due_at else {
            return self.pipeline(DELETE, &[tenant.param(), subscription.param()]).await;
        };
        let scheduled = ScheduledEndpoint { tenant_id: tenant, subscription_id: subscription, due_at };
        self.pipeline(&SET, &insert_params(&[], &scheduled)).await
    }

    async fn schedule_endpoint_by(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        due_at: Timestamp,
    ) -> StoreResult<()> {
        let endpoint = Endpoint { tenant_id: tenant, subscription_id: subscription };
        self.schedule_endpoints_by(std::iter::once((endpoint, due_at))).await
    }
}
