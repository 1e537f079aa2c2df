//! The repository of bulk replays.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::values::TenantId;
use crate::webhooks::replays::{Replay, ReplayId};

/// Bulk replays of deliveries.
#[async_trait]
pub trait ReplayRepository: Send {
    /// Adds a bulk replay, and wakes the sender after the commit.
    async fn insert_replay(&mut self, replay: &Replay) -> Result<(), StoreError>;

    /// Returns one bulk replay.
    async fn replay(&mut self, tenant: TenantId, id: ReplayId) -> Result<Option<Replay>, StoreError>;

    /// Returns at most `limit` bulk replays of a tenant, newest first.
    async fn replays(&mut self, tenant: TenantId, limit: u32) -> Result<Vec<Replay>, StoreError>;

    /// Returns the unfinished bulk replay of a tenant whose last step is longest ago.
    async fn unfinished_replay(&mut self, tenant: TenantId) -> Result<Option<Replay>, StoreError>;

    /// Returns the tenants of at most `limit` unfinished bulk replays, those whose last step is longest ago first. A tenant
    /// is returned once for each of its bulk replays.
    async fn tenants_with_unfinished_replays(&mut self, limit: u32) -> Result<Vec<TenantId>, StoreError>;

    /// Returns at most `limit` unfinished bulk replays of all tenants, those whose last step is longest ago first.
    async fn unfinished_replays(&mut self, limit: u32) -> Result<Vec<Replay>, StoreError>;

    /// Stores the progress of a bulk replay.
    async fn update_replay(&mut self, replay: &Replay) -> Result<(), StoreError>;
}
