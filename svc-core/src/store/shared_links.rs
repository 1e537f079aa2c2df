//! Secret addresses at which people see one thing of an account.

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreResult;
use crate::accounts::shared_links::{SharedLink, SharedLinkId, SharedLinkPurpose};
use crate::values::TenantId;

/// Shared links. The tenant is locked where they are changed.
#[async_trait]
pub trait SharedLinkRepository: Send {
    /// Adds a link with the SHA-256 digest of its secret.
    async fn insert_shared_link(&mut self, link: &SharedLink, secret_hash: &[u8; 32]) -> StoreResult<()>;

    /// Returns the link of any tenant with this digest.
    async fn shared_link_by_secret(&mut self, secret_hash: &[u8; 32]) -> StoreResult<Option<SharedLink>>;

    /// Returns the link of a tenant for a purpose and a record, or for one without a record.
    async fn shared_link(
        &mut self,
        tenant: TenantId,
        purpose: SharedLinkPurpose,
        record: Option<Uuid>,
    ) -> StoreResult<Option<SharedLink>>;

    /// Deletes a link.
    async fn delete_shared_link(&mut self, tenant: TenantId, id: SharedLinkId) -> StoreResult<()>;
}
