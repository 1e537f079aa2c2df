//! The tables of tenants and of the numbers of their documents.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::limits::RateLimits;
use svc_core::accounts::tenants::{DeveloperAccess, NumberKind, Tenant};
use svc_core::error::StoreError;
use svc_core::store::{StoreResult, TenantRepository};
use svc_core::values::{TenantId, Timestamp};
use uuid::Uuid;

use crate::column::{CellError, Column as _, Row};
use crate::locked_tenants::LockedTenants;
use crate::sql::{Cells, Sql, SqlTx};
use crate::table::{TableRow, insert_params, record, select};

record!(Tenant, "tenants", key: [id], {
    extra: [clock: Timestamp, overdue_check_at: Timestamp],
    inserted: [id, created_at, sandbox_of],
    updated: [
        name, developer_access, time_zone, currency, unique_contact_email, limits, max_webhooks, sandbox_id, address, tax_number,
        days_until_due, payment_details
    ],
});

/// The columns of a tenant that credentials have.
pub(super) struct TenantAccess {
    pub(super) developer_access: DeveloperAccess,
    pub(super) limits: RateLimits,
    pub(super) is_sandbox: bool,
}

impl TenantAccess {
    pub(super) fn read(cells: &mut Cells<'_>) -> Result<Self, CellError> {
        Ok(Self {
            developer_access: cells.take("tenants", "developer_access")?,
            limits: cells.take("tenants", "limits")?,
            is_sandbox: cells.take::<Option<TenantId>>("tenants", "sandbox_of")?.is_some(),
        })
    }
}

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
static LIST_REAL: LazyLock<String> =
    LazyLock::new(|| select::<Tenant>("WHERE id > $1 AND sandbox_of IS NULL ORDER BY id LIMIT $2"));
/// For transactions that keep nothing of a tenant. It locks the row until the transaction ends.
const ADVANCE_CLOCK: &str =
    "UPDATE tenants SET clock = CASE WHEN clock < $1 THEN $1 ELSE clock + 1 END WHERE id = $2 RETURNING clock";
pub(crate) const CLOCK: &str = "SELECT clock FROM tenants WHERE id = $1";
const ACCESS: &str = "SELECT developer_access, limits, sandbox_of FROM tenants WHERE id = $1";
const AHEAD: &str = "SELECT id FROM tenants WHERE id > $1 AND clock > $2 ORDER BY id LIMIT $3";
const SET_CLOCK: &str = "UPDATE tenants SET clock = $1 WHERE id = $2";
/// The columns with times of the clock, each with an index in the order of these times.
const TIMES: &[(&str, &str, &str)] = &[
    ("updated_at", "contacts", " AND live = TRUE"),
    ("updated_at", "contacts", " AND live = FALSE"),
    ("updated_at", "invoices", ""),
    ("updated_at", "bookings", ""),
    ("updated_at", "quotes", ""),
    ("updated_at", "jobs", ""),
    ("updated_at", "subscriptions", " AND live = TRUE"),
    ("updated_at", "subscriptions", " AND live = FALSE"),
    ("created_at", "api_keys", ""),
];
static LATEST_TIME: LazyLock<String> = LazyLock::new(|| {
    let max = |(time, table, live): &(&str, &str, &str)| {
        format!("SELECT max({time}) AS at FROM {table} WHERE tenant_id = $1{live} UNION ALL ")
    };
    let last = |table| {
        format!(
            "SELECT (SELECT created_at FROM {table} WHERE tenant_id = $1 ORDER BY id DESC LIMIT 1) AS at UNION ALL "
        )
    };
    // A subscription has few others beside it.
    let stopped = "SELECT max(stopped_at) AS at FROM subscriptions WHERE tenant_id = $1 \
         UNION ALL SELECT max(deleted_at) AS at FROM subscriptions WHERE tenant_id = $1";
    let by_id: String = ["events", "replays"].map(last).concat();
    format!("SELECT max(at) FROM ({}{by_id}{stopped}) times", TIMES.iter().map(max).collect::<String>())
});
/// Two searches of the index by time. Without the outer one, a limit could not be given to each.
pub(crate) const TO_CHECK_OVERDUE: &str = "SELECT id FROM \
     (SELECT id, overdue_check_at FROM tenants WHERE overdue_check_at <= $1 ORDER BY overdue_check_at LIMIT $2) due \
     UNION ALL SELECT id FROM \
     (SELECT id, overdue_check_at FROM tenants WHERE overdue_check_at > $3 ORDER BY overdue_check_at LIMIT $2) ahead \
     LIMIT $2";
const OVERDUE_CHECK_AT: &str = "SELECT overdue_check_at FROM tenants WHERE id = $1";
const SET_OVERDUE_CHECK_AT: &str = "UPDATE tenants SET overdue_check_at = $1 WHERE id = $2";
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
    let clocks = [CLOCK, ACCESS, AHEAD, SET_CLOCK, &LATEST_TIME];
    let overdue = [TO_CHECK_OVERDUE, OVERDUE_CHECK_AT, SET_OVERDUE_CHECK_AT];
    [&LIST, &LIST_REAL, ADVANCE_CLOCK, &NEXT_NUMBER, &RAISE_NUMBER].into_iter().chain(clocks).chain(overdue).collect()
}

/// The statements that find what a request is authenticated with by its digest.
pub(super) struct CredentialStatements {
    /// Together with its tenant.
    pub(super) joined: &'static str,
    /// Alone, for a tenant that may be on another server.
    pub(super) alone: &'static str,
}

impl SqlTx<'_> {
    /// Returns the credential with a digest, of which `read` reads all but what it has of its tenant.
    pub(super) async fn credential_with<C, F>(
        &mut self,
        statements: &CredentialStatements,
        digest: &[u8; 32],
        read: impl Fn(&mut Cells<'_>) -> Result<(TenantId, F), CellError> + Send + Sync,
    ) -> StoreResult<Option<C>>
    where
        F: FnOnce(TenantAccess) -> C + Send,
        C: Send,
    {
        if !self.context.is_distributed {
            let read = |cells: &mut Cells<'_>| {
                let (_, credential) = read(cells)?;
                TenantAccess::read(cells).map(credential)
            };
            return self.fetch_one(statements.joined, &[digest.param()], read).await;
        }
        let Some((tenant, credential)) = self.fetch_one(statements.alone, &[digest.param()], read).await? else {
            return Ok(None);
        };
        self.sql.enter(tenant.0)?;
        Ok(self.fetch_one(ACCESS, &[tenant.param()], TenantAccess::read).await?.map(credential))
    }
}

/// Stores the clocks that were advanced. Every transaction does so before it commits.
pub(crate) async fn store_clocks(locked: &mut LockedTenants, sql: &mut dyn Sql) -> StoreResult<()> {
    for (tenant, clock) in locked.take_advanced_clocks() {
        sql.pipeline(SET_CLOCK, &[clock.param(), tenant.param()], None).await?;
    }
    Ok(())
}

#[async_trait]
impl TenantRepository for SqlTx<'_> {
    async fn tenant(&mut self, id: TenantId) -> StoreResult<Option<Tenant>> {
        self.sql.enter(id.0)?;
        self.get_record(&[id.param()]).await
    }

    async fn tenants(&mut self, after: Option<TenantId>, limit: u32, sandboxes: bool) -> StoreResult<Vec<Tenant>> {
        let after = after.unwrap_or(TenantId(Uuid::nil()));
        let list = if sandboxes { &LIST } else { &LIST_REAL };
        self.fetch(list, &[after.param(), limit.param()], Tenant::read).await
    }

    async fn insert_tenant(&mut self, tenant: &Tenant) -> StoreResult<()> {
        let created_at = &tenant.created_at;
        self.insert_record(&[created_at.param(), created_at.param()], tenant).await
    }

    async fn update_tenant(&mut self, tenant: &Tenant) -> StoreResult<()> {
        self.forget(tenant.id);
        self.update_record(tenant, &[tenant.id.param()]).await
    }

    async fn advance_clock(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        // The clock is stored at the commit: what fails behind it, such as the check of an email, has then changed nothing that
        // would have to be rolled back.
        if self.locked.is_some() && !self.lock_tenant(tenant).await? {
            return Ok(None);
        }
        // It was checked when the write was queued, but the write may have waited since.
        self.context.check_clock()?;
        let wall = self.context.env.now();
        if let Some(locked) = self.locked(tenant) {
            return Ok(Some(locked.advance_clock(wall)));
        }
        let params = [wall.param(), tenant.param()];
        self.fetch_one(ADVANCE_CLOCK, &params, |cells| cells.take("tenants", "clock")).await
    }

    async fn lock_tenant(&mut self, tenant: TenantId) -> StoreResult<bool> {
        self.sql.take_turn(tenant.0)?;
        if self.locked(tenant).is_some() {
            return Ok(true);
        }
        let mut clock = None;
        let mut read = |row: &dyn Row| {
            clock = Some(Cells::new(row).take("tenants", "clock")?);
            Ok(())
        };
        self.sql.lock_row(tenant.0, CLOCK, &[tenant.param()], &mut read).await?;
        if let Some((locked, clock)) = self.locked.as_mut().zip(clock) {
            locked.add(tenant, clock);
        }
        Ok(clock.is_some())
    }

    async fn clock(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        if let Some(locked) = self.locked(tenant) {
            return Ok(Some(locked.clock));
        }
        self.fetch_one(CLOCK, &[tenant.param()], |cells| cells.take("tenants", "clock")).await
    }

    async fn tenants_ahead(
        &mut self,
        latest: Timestamp,
        after: Option<TenantId>,
        limit: u32,
    ) -> StoreResult<Vec<TenantId>> {
        if let Some(locked) = &mut self.locked {
            store_clocks(locked, self.sql).await?;
        }
        let after = after.unwrap_or(TenantId(Uuid::nil()));
        let params = [after.param(), latest.param(), limit.param()];
        self.fetch(AHEAD, &params, |cells| cells.take("tenants", "id")).await
    }

    async fn latest_time(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        let params = [tenant.param()];
        let latest = self.fetch_one(&LATEST_TIME, &params, |cells| cells.take("tenants", "latest time"));
        Ok(latest.await?.flatten())
    }

    async fn set_clock(&mut self, tenant: TenantId, at: Timestamp) -> StoreResult<()> {
        self.execute(SET_CLOCK, &[at.param(), tenant.param()]).await?;
        self.set_back_index(tenant, at).await?;
        self.set_back_streams(tenant, at).await?;
        if let Some(locked) = self.locked(tenant) {
            locked.set_clock(at);
        }
        Ok(())
    }

    async fn tenants_to_check_overdue(
        &mut self,
        now: Timestamp,
        latest: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<TenantId>> {
        let params = [now.param(), limit.param(), latest.param()];
        self.fetch(TO_CHECK_OVERDUE, &params, |cells| cells.take("tenants", "id")).await
    }

    async fn overdue_check_at(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        self.fetch_one(OVERDUE_CHECK_AT, &[tenant.param()], |cells| cells.take("tenants", "overdue_check_at")).await
    }

    async fn set_overdue_check_at(&mut self, tenant: TenantId, at: Timestamp) -> StoreResult<()> {
        self.execute(SET_OVERDUE_CHECK_AT, &[at.param(), tenant.param()]).await.map(drop)
    }

    async fn next_number(&mut self, tenant: TenantId, kind: NumberKind) -> StoreResult<u64> {
        let first = LastNumber { tenant_id: tenant, kind, last: 1 };
        let params = insert_params(&[], &first);
        let last = self.fetch_one(&NEXT_NUMBER, &params, |cells| cells.take("numbers", "last")).await?;
        last.ok_or_else(|| StoreError::Internal("a number was not returned".to_owned()))
    }

    async fn raise_number(&mut self, tenant: TenantId, kind: NumberKind, number: u64) -> StoreResult<()> {
        let raised = LastNumber { tenant_id: tenant, kind, last: number };
        self.execute(&RAISE_NUMBER, &insert_params(&[], &raised)).await.map(drop)
    }
}
