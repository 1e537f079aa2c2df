//! The table of bulk replays.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::store::{MAX_EXCEPTED_TENANTS, ReplayRepository, StoreResult};
use svc_core::values::TenantId;
use svc_core::webhooks::replays::{Replay, ReplayId};

use super::schedule::tenants_or_first;
use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{TableRow, record, select};

record!(Replay, "replays", key: [tenant_id, id], {
    inserted: [id, tenant_id, subscription_id, since, until, statuses, missed, total, created_at],
    updated: [position, stepped_at, done, replayed, finished_at],
});

static LIST: LazyLock<String> = LazyLock::new(|| select::<Replay>("WHERE tenant_id = $1 ORDER BY id DESC LIMIT $2"));
static UNFINISHED: LazyLock<String> =
    LazyLock::new(|| select::<Replay>("WHERE tenant_id = $1 AND finished_at IS NULL ORDER BY stepped_at, id LIMIT 1"));
static ALL_UNFINISHED: LazyLock<String> =
    LazyLock::new(|| select::<Replay>("WHERE finished_at IS NULL ORDER BY stepped_at, id LIMIT $1"));
static TENANTS_OF: LazyLock<String> = LazyLock::new(|| {
    let places: Vec<String> = (1..=MAX_EXCEPTED_TENANTS).map(|n| format!("${n}")).collect();
    format!("SELECT DISTINCT tenant_id FROM replays WHERE finished_at IS NULL AND tenant_id IN ({})", places.join(", "))
});
const TENANTS: &str = "SELECT tenant_id FROM replays WHERE finished_at IS NULL ORDER BY stepped_at, id LIMIT $1";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&LIST, &UNFINISHED, &ALL_UNFINISHED, &TENANTS_OF, TENANTS]
}

#[async_trait]
impl ReplayRepository for SqlTx<'_> {
    async fn insert_replay(&mut self, replay: &Replay) -> StoreResult<()> {
        self.delivery_wakeup.mark();
        self.insert_record(&[], replay).await
    }

    async fn replay(&mut self, tenant: TenantId, id: ReplayId) -> StoreResult<Option<Replay>> {
        self.get_record(&[tenant.param(), id.param()]).await
    }

    async fn replays(&mut self, tenant: TenantId, limit: u32) -> StoreResult<Vec<Replay>> {
        self.fetch(&LIST, &[tenant.param(), limit.param()], Replay::read).await
    }

    async fn unfinished_replay(&mut self, tenant: TenantId) -> StoreResult<Option<Replay>> {
        self.fetch_one(&UNFINISHED, &[tenant.param()], Replay::read).await
    }

    async fn tenants_with_unfinished_replays(&mut self, limit: u32) -> StoreResult<Vec<TenantId>> {
        self.fetch(TENANTS, &[limit.param()], |cells| cells.take("replays", "tenant_id")).await
    }

    async fn replaying_tenants_of(&mut self, tenants: &[TenantId]) -> StoreResult<Vec<TenantId>> {
        let params: Vec<_> = tenants_or_first(tenants)?.collect();
        let mut replaying: Vec<TenantId> =
            self.fetch(&TENANTS_OF, &params, |cells| cells.take("replays", "tenant_id")).await?;
        replaying.sort();
        Ok(replaying)
    }

    async fn unfinished_replays(&mut self, limit: u32) -> StoreResult<Vec<Replay>> {
        self.fetch(&ALL_UNFINISHED, &[limit.param()], Replay::read).await
    }

    async fn update_replay(&mut self, replay: &Replay) -> StoreResult<()> {
        self.update_record(replay, &[replay.tenant_id.param(), replay.id.param()]).await
    }
}
