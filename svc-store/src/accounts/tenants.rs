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
    extra: [clock: Timestamp],
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
    vec![&LIST, ADVANCE_CLOCK, EXISTS, &NEXT_NUMBER, &RAISE_NUMBER]
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
        self.insert_record(&[tenant.created_at.param()], tenant).await
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
