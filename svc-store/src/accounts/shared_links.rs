//! The table of shared links.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::shared_links::{SharedLink, SharedLinkId, SharedLinkPurpose};
use svc_core::store::{SharedLinkRepository, StoreResult};
use svc_core::values::TenantId;
use uuid::Uuid;

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{TableRow as _, record, select};

record!(SharedLink, "shared_links", key: [id], {
    extra: [secret_hash: [u8; 32]],
    inserted: [id, tenant_id, purpose, record_id, secret, created_at],
    updated: [],
});

static BY_SECRET: LazyLock<String> = LazyLock::new(|| select::<SharedLink>("WHERE secret_hash = $1"));
static OF_RECORD: LazyLock<String> =
    LazyLock::new(|| select::<SharedLink>("WHERE tenant_id = $1 AND purpose = $2 AND record_id = $3"));
static WITHOUT_RECORD: LazyLock<String> =
    LazyLock::new(|| select::<SharedLink>("WHERE tenant_id = $1 AND purpose = $2 AND record_id IS NULL"));
const DELETE: &str = "DELETE FROM shared_links WHERE tenant_id = $1 AND id = $2";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&BY_SECRET, &OF_RECORD, &WITHOUT_RECORD, DELETE]
}

#[async_trait]
impl SharedLinkRepository for SqlTx<'_> {
    async fn insert_shared_link(&mut self, link: &SharedLink, secret_hash: &[u8; 32]) -> StoreResult<()> {
        self.insert_record(&[secret_hash.param()], link).await
    }

    async fn shared_link_by_secret(&mut self, secret_hash: &[u8; 32]) -> StoreResult<Option<SharedLink>> {
        self.fetch_one(&BY_SECRET, &[secret_hash.param()], SharedLink::read).await
    }

    async fn shared_link(
        &mut self,
        tenant: TenantId,
        purpose: SharedLinkPurpose,
        record: Option<Uuid>,
    ) -> StoreResult<Option<SharedLink>> {
        let (tenant, purpose) = (tenant.param(), purpose.param());
        match &record {
            Some(record) => self.fetch_one(&OF_RECORD, &[tenant, purpose, record.param()], SharedLink::read).await,
            None => self.fetch_one(&WITHOUT_RECORD, &[tenant, purpose], SharedLink::read).await,
        }
    }

    async fn delete_shared_link(&mut self, tenant: TenantId, id: SharedLinkId) -> StoreResult<()> {
        self.pipeline(DELETE, &[tenant.param(), id.param()]).await
    }
}
