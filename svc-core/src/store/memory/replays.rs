//! Bulk replays.

use async_trait::async_trait;

use super::{MemoryTx, insert, of_tenant};
use crate::error::StoreError;
use crate::store::ReplayRepository;
use crate::values::TenantId;
use crate::webhooks::replays::{Replay, ReplayId};

#[async_trait]
impl ReplayRepository for MemoryTx<'_> {
    async fn insert_replay(&mut self, replay: &Replay) -> Result<(), StoreError> {
        insert(&mut self.state_mut()?.replays, (replay.tenant_id, replay.id), replay)?;
        self.delivery_wakeup.mark();
        Ok(())
    }

    async fn replay(&mut self, tenant: TenantId, id: ReplayId) -> Result<Option<Replay>, StoreError> {
        Ok(self.state.replays.get(&(tenant, id)).cloned())
    }

    async fn replays(&mut self, tenant: TenantId, limit: u32) -> Result<Vec<Replay>, StoreError> {
        Ok(of_tenant(&self.state.replays, tenant).rev().take(limit as usize).cloned().collect())
    }

    async fn unfinished_replay(&mut self, tenant: TenantId) -> Result<Option<Replay>, StoreError> {
        let unfinished = of_tenant(&self.state.replays, tenant).filter(|replay| replay.finished_at.is_none());
        Ok(unfinished.min_by_key(|replay| (replay.stepped_at, replay.id)).cloned())
    }

    async fn tenants_with_unfinished_replays(&mut self, limit: u32) -> Result<Vec<TenantId>, StoreError> {
        Ok(self.unfinished_replays(limit).await?.into_iter().map(|replay| replay.tenant_id).collect())
    }

    async fn unfinished_replays(&mut self, limit: u32) -> Result<Vec<Replay>, StoreError> {
        let mut unfinished: Vec<&Replay> =
            self.state.replays.values().filter(|replay| replay.finished_at.is_none()).collect();
        unfinished.sort_by_key(|replay| (replay.stepped_at, replay.id));
        Ok(unfinished.into_iter().take(limit as usize).cloned().collect())
    }

    async fn update_replay(&mut self, replay: &Replay) -> Result<(), StoreError> {
        self.state_mut()?.replays.put((replay.tenant_id, replay.id), replay.clone());
        Ok(())
    }
}
