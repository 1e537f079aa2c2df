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
        let keys: Vec<(TenantId, Uuid)> = match kind {
            OwnedKind::Invoice => plain(state.invoices.keys()),
            OwnedKind::Quote => plain(state.quotes.keys()),
            OwnedKind::Subscription => plain(state.subscriptions.keys()),
            OwnedKind::Delivery => plain(state.deliveries.keys()),
        };
        Ok(keys.into_iter().filter(|(_, other)| *other == id).map(|(tenant, _)| tenant).collect())
    }
}

/// Returns the keys of a table without the types of their ids.
fn plain<'k, R: 'k>(keys: impl Iterator<Item = &'k Key<R>>) -> Vec<(TenantId, Uuid)> {
    keys.map(|(tenant, id)| (*tenant, id.uuid())).collect()
}
