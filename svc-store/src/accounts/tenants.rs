//! Tenants, their clocks and their numbers.

use async_trait::async_trait;
use svc_core::accounts::tenants::{NumberKind, Tenant};
use svc_core::error::StoreError;
use svc_core::store::TenantStore;
use svc_core::values::{TenantId, Timestamp};

use crate::sql::{Cells, Column as _, SqlTx};

const TABLE: &str = "tenants";

const GET: &str = "SELECT id, name, developer_access, time_zone, currency, unique_contact_email, created_at, limits \
     FROM tenants WHERE id = $1";
const LIST: &str = "SELECT id, name, developer_access, time_zone, currency, unique_contact_email, created_at, limits \
     FROM tenants ORDER BY created_at, id";
const INSERT: &str = "INSERT INTO tenants \
     (id, name, developer_access, time_zone, currency, unique_contact_email, created_at, clock, limits) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const UPDATE: &str = "UPDATE tenants SET name = $1, developer_access = $2, time_zone = $3, currency = $4, \
     unique_contact_email = $5, limits = $6 WHERE id = $7";
/// Holds the tenant's row until the end of the transaction.
const TICK: &str =
    "UPDATE tenants SET clock = CASE WHEN clock < $1 THEN $1 ELSE clock + 1 END WHERE id = $2 RETURNING clock";
const HOLD: &str = "SELECT 1 FROM tenants WHERE id = $1";
const NEXT_NUMBER: &str = "INSERT INTO numbers (tenant_id, kind, last) VALUES ($1, $2, 1) \
     ON CONFLICT (tenant_id, kind) DO UPDATE SET last = numbers.last + 1 RETURNING last";
const RAISE_NUMBER: &str = "INSERT INTO numbers (tenant_id, kind, last) VALUES ($1, $2, $3) \
     ON CONFLICT (tenant_id, kind) DO UPDATE SET last = excluded.last WHERE numbers.last < excluded.last";

#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[GET, LIST, INSERT, UPDATE, TICK, HOLD, NEXT_NUMBER, RAISE_NUMBER];

#[cfg(test)]
pub(crate) const HELD: &[&str] = &[HOLD];

pub(crate) fn read(cells: &mut Cells<'_>) -> Result<Tenant, StoreError> {
    Ok(Tenant {
        id: cells.take()?,
        name: cells.take()?,
        developer_access: cells.take()?,
        time_zone: cells.take()?,
        currency: cells.take()?,
        unique_contact_email: cells.take()?,
        created_at: cells.take()?,
        limits: cells.take()?,
    })
}

#[async_trait]
impl TenantStore for SqlTx<'_> {
    async fn tenant(&mut self, id: TenantId) -> Result<Option<Tenant>, StoreError> {
        self.fetch_one(GET, &[id.param()], TABLE, read).await
    }

    async fn tenants(&mut self) -> Result<Vec<Tenant>, StoreError> {
        self.fetch(LIST, &[], TABLE, read).await
    }

    async fn insert_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        let params = [
            tenant.id.param(),
            tenant.name.param(),
            tenant.developer_access.param(),
            tenant.time_zone.param(),
            tenant.currency.param(),
            tenant.unique_contact_email.param(),
            tenant.created_at.param(),
            tenant.created_at.param(),
            tenant.limits.param(),
        ];
        self.pipeline(INSERT, &params).await
    }

    async fn update_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        let params = [
            tenant.name.param(),
            tenant.developer_access.param(),
            tenant.time_zone.param(),
            tenant.currency.param(),
            tenant.unique_contact_email.param(),
            tenant.limits.param(),
            tenant.id.param(),
        ];
        self.pipeline(UPDATE, &params).await
    }

    async fn advance_clock(&mut self, tenant: TenantId) -> Result<Option<Timestamp>, StoreError> {
        let wall = self.env.now();
        self.fetch_one(TICK, &[wall.param(), tenant.param()], TABLE, |cells| cells.take()).await
    }

    async fn lock_tenant(&mut self, tenant: TenantId) -> Result<bool, StoreError> {
        let read = |cells: &mut Cells<'_>| cells.take::<i64>();
        Ok(self.fetch_one(&self.dialect.lock_row(HOLD), &[tenant.param()], TABLE, read).await?.is_some())
    }

    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> Result<u64, StoreError> {
        let last: Option<i64> =
            self.fetch_one(NEXT_NUMBER, &[tenant.param(), kind.param()], "numbers", |cells| cells.take()).await?;
        last.and_then(|last| u64::try_from(last).ok())
            .ok_or_else(|| StoreError::Internal("a number was not returned".to_owned()))
    }
    async fn raise_number(&mut self, tenant: TenantId, kind: NumberKind, number: u64) -> Result<(), StoreError> {
        self.execute(RAISE_NUMBER, &[tenant.param(), kind.param(), number.param()]).await.map(drop)
    }
}
