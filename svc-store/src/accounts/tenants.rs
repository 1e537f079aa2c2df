//! The tables of tenants and of the numbers of their documents.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::tenants::{NumberKind, Tenant};
use svc_core::error::StoreError;
use svc_core::store::TenantRepository;
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use crate::column::Column as _;
use crate::record::{Record, record, select};
use crate::sql::{SqlTx, insert_params};

record!(Tenant, "tenants", key: [id], {
    extra: [clock: Timestamp, overdue_check_at: Timestamp],
    inserted: [id, created_at],
    updated: [name, developer_access, time_zone, currency, unique_contact_email, limits, max_webhooks],
});

/// The last number of a kind that a tenant gave to a document.
pub(crate) struct LastNumber {
    pub(crate) tenant_id: TenantId,
    pub(crate) kind: NumberKind,
    pub(crate) last: u64,
}

record!(LastNumber, "numbers", key: [tenant_id, kind], {
    inserted: [tenant_id, kind],
    updated: [last],
});

static LIST: LazyLock<String> = LazyLock::new(|| select::<Tenant>("WHERE id > $1 ORDER BY id LIMIT $2"));
/// Locks the row of the tenant until the transaction ends.
const ADVANCE_CLOCK: &str =
    "UPDATE tenants SET clock = CASE WHEN clock < $1 THEN $1 ELSE clock + 1 END WHERE id = $2 RETURNING clock";
/// Two searches of the index by time. Without the outer one, a limit could not be given to each.
pub(crate) const TO_CHECK_OVERDUE: &str = "SELECT id FROM \
     (SELECT id, overdue_check_at FROM tenants WHERE overdue_check_at <= $1 ORDER BY overdue_check_at LIMIT $2) due \
     UNION ALL SELECT id FROM \
     (SELECT id, overdue_check_at FROM tenants WHERE overdue_check_at > $3 ORDER BY overdue_check_at LIMIT $2) ahead \
     LIMIT $2";
const OVERDUE_CHECK_AT: &str = "SELECT overdue_check_at FROM tenants WHERE id = $1";
const SET_OVERDUE_CHECK_AT: &str = "UPDATE tenants SET overdue_check_at = $1 WHERE id = $2";
pub(crate) const EXISTS: &str = "SELECT 1 FROM tenants WHERE id = $1";
static NEXT_NUMBER: LazyLock<String> = LazyLock::new(|| {
    let insert = &LastNumber::statements().insert;
    format!("{insert} ON CONFLICT (tenant_id, kind) DO UPDATE SET last = numbers.last + 1 RETURNING last")
});
static RAISE_NUMBER: LazyLock<String> = LazyLock::new(|| {
    let insert = &LastNumber::statements().insert;
    format!(
        "{insert} ON CONFLICT (tenant_id, kind) DO UPDATE SET last = excluded.last WHERE numbers.last < excluded.last"
    )
});

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let overdue = [TO_CHECK_OVERDUE, OVERDUE_CHECK_AT, SET_OVERDUE_CHECK_AT];
    [&LIST, ADVANCE_CLOCK, EXISTS, &NEXT_NUMBER, &RAISE_NUMBER].into_iter().chain(overdue).collect()
}

/// The statements that lock the row that they select.
#[cfg(test)]
pub(crate) const LOCKING: &[&str] = &[EXISTS];

#[async_trait]
impl TenantRepository for SqlTx<'_> {
    async fn tenant(&mut self, id: TenantId) -> Result<Option<Tenant>, StoreError> {
        self.get_record(&[id.param()]).await
    }

    async fn tenants(&mut self, after: Option<TenantId>, limit: u32) -> Result<Vec<Tenant>, StoreError> {
        let after = after.unwrap_or(TenantId(Uuid::nil()));
        self.fetch(&LIST, &[after.param(), limit.param()], Tenant::read).await
    }

    async fn insert_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        let created_at = &tenant.created_at;
        self.insert_record(&[created_at.param(), created_at.param()], tenant).await
    }

    async fn update_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        self.update_record(tenant, &[tenant.id.param()]).await
    }

    async fn advance_clock(&mut self, tenant: TenantId) -> Result<Option<Timestamp>, StoreError> {
        self.sql.begin_turn(tenant)?;
        let wall = self.env.now();
        let params = [wall.param(), tenant.param()];
        self.fetch_one(ADVANCE_CLOCK, &params, |cells| cells.take("tenants", "clock")).await
    }

    async fn lock_tenant(&mut self, tenant: TenantId) -> Result<bool, StoreError> {
        self.sql.begin_turn(tenant)?;
        let sql = self.dialect.lock_row(EXISTS);
        Ok(self.fetch_one(&sql, &[tenant.param()], |cells| cells.take::<i64>("tenants", "id")).await?.is_some())
    }

    async fn tenants_to_check_overdue(
        &mut self,
        now: Timestamp,
        latest: Timestamp,
        limit: u32,
    ) -> Result<Vec<TenantId>, StoreError> {
        let params = [now.param(), limit.param(), latest.param()];
        self.fetch(TO_CHECK_OVERDUE, &params, |cells| cells.take("tenants", "id")).await
    }

    async fn overdue_check_at(&mut self, tenant: TenantId) -> Result<Option<Timestamp>, StoreError> {
        self.fetch_one(OVERDUE_CHECK_AT, &[tenant.param()], |cells| cells.take("tenants", "overdue_check_at")).await
    }

    async fn set_overdue_check_at(&mut self, tenant: TenantId, at: Timestamp) -> Result<(), StoreError> {
        self.execute(SET_OVERDUE_CHECK_AT, &[at.param(), tenant.param()]).await.map(drop)
    }

    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> Result<u64, StoreError> {
        let first = LastNumber { tenant_id: tenant, kind, last: 1 };
        let params = insert_params(&[], &first);
        let last = self.fetch_one(&NEXT_NUMBER, &params, |cells| cells.take("numbers", "last")).await?;
        last.ok_or_else(|| StoreError::Internal("a number was not returned".to_owned()))
    }

    async fn raise_number(&mut self, tenant: TenantId, kind: NumberKind, number: u64) -> Result<(), StoreError> {
        let raised = LastNumber { tenant_id: tenant, kind, last: number };
        self.execute(&RAISE_NUMBER, &insert_params(&[], &raised)).await.map(drop)
    }
}
