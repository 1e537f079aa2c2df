//! Files that people upload for an import.

use std::sync::Arc;

use async_trait::async_trait;

use super::{MemoryTx, conflict};
use crate::accounts::uploads::{Upload, UploadId};
use crate::store::{StoreResult, UploadRepository};
use crate::values::{Id, TenantId, Timestamp};

#[async_trait]
impl UploadRepository for MemoryTx<'_> {
    async fn insert_upload(&mut self, upload: &Upload, content: &[u8]) -> StoreResult<()> {
        let is_new = self.state_mut()?.uploads.add((upload.tenant_id, upload.id), (upload.clone(), Arc::from(content)));
        if is_new { Ok(()) } else { Err(conflict("id")) }
    }

    async fn upload(&mut self, tenant: TenantId, id: UploadId) -> StoreResult<Option<Upload>> {
        Ok(self.state.uploads.get(&(tenant, id)).map(|(upload, _)| upload.clone()))
    }

    async fn upload_content(&mut self, tenant: TenantId, id: UploadId) -> StoreResult<Option<Vec<u8>>> {
        Ok(self.state.uploads.get(&(tenant, id)).map(|(_, content)| content.to_vec()))
    }

    async fn uploads(&mut self, tenant: TenantId) -> StoreResult<Vec<Upload>> {
        let uploads = self.state.uploads.range((tenant, Id::nil())..=(tenant, Id::max()));
        Ok(uploads.rev().map(|(_, (upload, _))| upload.clone()).collect())
    }

    async fn update_upload(&mut self, upload: &Upload) -> StoreResult<()> {
        self.state_mut()?.uploads.change(&(upload.tenant_id, upload.id), |(stored, _)| {
            stored.choices.clone_from(&upload.choices);
            stored.progress.clone_from(&upload.progress);
        });
        Ok(())
    }

    async fn delete_upload(&mut self, tenant: TenantId, id: UploadId) -> StoreResult<()> {
        self.state_mut()?.uploads.take(&(tenant, id));
        Ok(())
    }

    async fn delete_expired_uploads(&mut self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        Ok(self.state_mut()?.uploads.take_first(limit, |_, (upload, _)| upload.expires_at < now))
    }
}
