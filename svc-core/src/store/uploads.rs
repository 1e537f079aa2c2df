//! Files that people upload for an import.

use async_trait::async_trait;

use super::StoreResult;
use crate::accounts::uploads::{Upload, UploadId};
use crate::values::{TenantId, Timestamp};

/// Uploads. The tenant is locked where they are changed.
#[async_trait]
pub trait UploadRepository: Send {
    /// Adds an upload with the content of its file.
    async fn insert_upload(&mut self, upload: &Upload, content: &[u8]) -> StoreResult<()>;

    /// Returns an upload of a tenant.
    async fn upload(&mut self, tenant: TenantId, id: UploadId) -> StoreResult<Option<Upload>>;

    /// Returns the content of the file of an upload.
    async fn upload_content(&mut self, tenant: TenantId, id: UploadId) -> StoreResult<Option<Vec<u8>>>;

    /// Returns all uploads of a tenant, the newest first.
    async fn uploads(&mut self, tenant: TenantId) -> StoreResult<Vec<Upload>>;

    /// Stores the choices and the progress of an upload.
    async fn update_upload(&mut self, upload: &Upload) -> StoreResult<()>;

    /// Deletes an upload.
    async fn delete_upload(&mut self, tenant: TenantId, id: UploadId) -> StoreResult<()>;

    /// Deletes at most `limit` uploads of any tenant that expired before `now`, and returns how many.
    async fn delete_expired_uploads(&mut self, now: Timestamp, limit: u32) -> StoreResult<u64>;
}
