//! Secret addresses at which people see one thing of an account.

use async_trait::async_trait;
use uuid::Uuid;

use super::{MemoryTx, by_hash, insert_hashed};
use crate::accounts::shared_links::{SharedLink, SharedLinkId, SharedLinkPurpose};
use crate::store::{SharedLinkRepository, StoreResult};
use crate::values::TenantId;

#[async_trait]
impl SharedLinkRepository for MemoryTx<'_> {
    async fn insert_shared_link(&mut self, link: &SharedLink, secret_hash: &[u8; 32]) -> StoreResult<()> {
        insert_hashed(&mut self.state_mut()?.shared_links, link.id, link, secret_hash)
    }

    async fn shared_link_by_secret(&mut self, secret_hash: &[u8; 32]) -> StoreResult<Option<SharedLink>> {
        Ok(by_hash(&self.state.shared_links, secret_hash).cloned())
    }

    async fn shared_link(
        &mut self,
        tenant: TenantId,
        purpose: SharedLinkPurpose,
        record: Option<Uuid>,
    ) -> StoreResult<Option<SharedLink>> {
        let mut links = self.state.shared_links.values().map(|(link, _)| link);
        let is_wanted =
            |link: &&SharedLink| (link.tenant_id, link.purpose, link.record_id) == (tenant, purpose, record);
        Ok(links.find(is_wanted).cloned())
    }

    async fn delete_shared_link(&mut self, tenant: TenantId, id: SharedLinkId) -> StoreResult<()> {
        let links = &mut self.state_mut()?.shared_links;
        if links.get(&id).is_some_and(|(link, _)| link.tenant_id == tenant) {
            links.take(&id);
        }
        Ok(())
    }
}
