//! The texts by which records are found.

use async_trait::async_trait;
use uuid::Uuid;

use super::MemoryTx;
use crate::find::IndexedText;
use crate::store::{SearchRepository, StoreResult};
use crate::values::{RecordKind, TenantId, Timestamp};

#[async_trait]
impl SearchRepository for MemoryTx<'_> {
    async fn indexed_until(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>> {
        Ok(self.state.search_progress.get(&tenant).copied())
    }

    async fn store_texts(&mut self, tenant: TenantId, texts: &[IndexedText], until: Timestamp) -> StoreResult<()> {
        let tables = self.state_mut()?;
        for IndexedText { kind, id, text, .. } in texts {
            let key = (tenant, *kind, *id);
            let places = tables.search_texts.values().map(|(place, _)| place + 1);
            let place = tables.search_texts.get(&key).map(|(place, _)| *place).or(places.max()).unwrap_or_default();
            if text.is_empty() {
                tables.search_texts.take(&key);
            } else {
                tables.search_texts.put(key, (place, text.clone()));
            }
        }
        tables.search_progress.put(tenant, until);
        Ok(())
    }

    async fn records_with_text(
        &mut self,
        tenant: TenantId,
        kind: Option<RecordKind>,
        text: &str,
        limit: u32,
    ) -> StoreResult<Vec<(RecordKind, Uuid)>> {
        let is_wanted = |of: TenantId, found: RecordKind| of == tenant && kind.is_none_or(|kind| kind == found);
        let texts = self.state.search_texts.range(..).filter(|((of, kind, _), _)| is_wanted(*of, *kind));
        let mut found: Vec<_> = texts.filter(|(_, (_, indexed))| indexed.contains(text)).collect();
        found.sort_by_key(|(_, (place, _))| std::cmp::Reverse(*place));
        Ok(found.into_iter().take(limit as usize).map(|((_, kind, id), _)| (*kind, *id)).collect())
    }

    async fn tenants_to_index(&mut self, after: Option<TenantId>, limit: u32) -> StoreResult<Vec<TenantId>> {
        let has_changes = |(tenant, clock): &(&TenantId, &Timestamp)| {
            after.is_none_or(|after| **tenant > after) && self.state.search_progress.get(tenant) != Some(*clock)
        };
        let tenants = self.state.clocks.range(..).filter(has_changes).map(|(tenant, _)| *tenant);
        Ok(tenants.take(limit as usize).collect())
    }
}
