//! The tenants of records.

use async_trait::async_trait;
use uuid::Uuid;

use super::{Key, MemoryTx};
use crate::error::StoreError;
use crate::store::{OwnedKind, OwnerRepository};
use crate::values::TenantId;

#[async_trait]
impl OwnerRepository for MemoryTx<'_> {
    async fn owners(&mut self, kind: OwnedKind, id: Uuid) -> Result<Vec<TenantId>, StoreError> {
        let state = &self.state;
        let keys: Vec<&Key> = match kind {
            OwnedKind::Invoice => state.invoices.keys().collect(),
            OwnedKind::Quote => state.quotes.keys().collect(),
            OwnedKind::Subscription => state.subscriptions.keys().collect(),
            OwnedKind::Delivery => state.deliveries.keys().collect(),
        };
        Ok(keys.into_iter().filter(|(_, other)| *other == id).map(|(tenant, _)| *tenant).collect())
    }
}
