//! The table of files that people upload for an import.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::uploads::{Upload, UploadId};
use svc_core::store::{StoreResult, UploadRepository};
use svc_core::values::{TenantId, Timestamp};

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{TableRow as _, record, select};

record!(Upload, "uploads", key: [tenant_id, id], {
    extra: [content: Vec<u8>],
    inserted: [tenant_id, id, name, created_by, created_at, expires_at],
    updated: [choices, progress],
});

static OF_TENANT: LazyLock<String> = LazyLock::new(|| select::<Upload>("WHERE tenant_id = $1 ORDER BY id DESC"));
const CONTENT: &str = "SELECT content FROM uploads WHERE tenant_id = $1 AND id = $2";
const DELETE: &str = "DELETE FROM uploads WHERE tenant_id = $1 AND id = $2";
const DELETE_EXPIRED: &str = "DELETE FROM uploads WHERE (tenant_id, id) IN \
     (SELECT tenant_id, id FROM uploads WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let mut all = vec![&**OF_TENANT, CONTENT, DELETE, DELETE_EXPIRED];
    all.extend(Upload::statements().all());
    all
}

#[async_trait]
impl UploadRepository for SqlTx<'_> {
    async fn insert_upload(&mut self, upload: &Upload, content: &[u8]) -> StoreResult<()> {
        let content = content.to_vec();
        self.insert_record(&[content.param()], upload).await
    }

    async fn upload(&mut self, tenant: TenantId, id: UploadId) -> StoreResult<Option<Upload>> {
        self.get_record(&[tenant.param(), id.param()]).await
    }

    async fn upload_content(&mut self, tenant: TenantId, id: UploadId) -> StoreResult<Option<Vec<u8>>> {
        self.fetch_one(CONTENT, &[tenant.param(), id.param()], Upload::read_extra)
            .await
            .map(|found| found.map(|(content,)| content))
    }

    async fn uploads(&mut self, tenant: TenantId) -> StoreResult<Vec<Upload>> {
        self.fetch(&OF_TENANT, &[tenant.param()], Upload::read).await
    }

    async fn update_upload(&mut self, upload: &Upload) -> StoreResult<()> {
        self.update_record(upload, &[upload.tenant_id.param(), upload.id.param()]).await
    }

    async fn delete_upload(&mut self, tenant: TenantId, id: UploadId) -> StoreResult<()> {
        self.pipeline(DELETE, &[tenant.param(), id.param()]).await
    }

    async fn delete_expired_uploads(&mut self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        self.execute(DELETE_EXPIRED, &[now.param(), limit.param()]).await
    }
}
