//! Operational events that have not been published yet.

use async_trait::async_trait;

use super::{MemoryTx, insert};
use crate::accounts::operational::{OperationalEvent, OperationalEventId};
use crate::error::StoreError;
use crate::store::OperationalEventRepository;

#[async_trait]
impl OperationalEventRepository for MemoryTx<'_> {
    async fn insert_operational_event(&mut self, event: &OperationalEvent) -> Result<(), StoreError> {
        insert(&mut self.state_mut()?.operational_events, event.id, event)
    }

    async fn operational_events(&mut self, limit: u32) -> Result<Vec<OperationalEvent>, StoreError> {
        Ok(self.state.operational_events.values().take(limit as usize).cloned().collect())
    }

    async fn delete_operational_event(&mut self, id: OperationalEventId) -> Result<(), StoreError> {
        let events = &mut self.state_mut()?.operational_events;
        if !events.contains_key(&id) {
            return Err(StoreError::Internal("a deletion of operational_events found no row".to_owned()));
        }
        events.take(&id);
        Ok(())
    }
}
