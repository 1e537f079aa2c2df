//! Events of tenants, and operational events that have not been published yet.

use async_trait::async_trait;

use super::{MemoryTx, insert, of_tenant};
use crate::accounts::operational::{OperationalEvent, OperationalEventId};
use crate::env::first_id_at;
use crate::error::StoreError;
use crate::store::{
    EventFilter, EventRepository, EventWithActor, OperationalEventRepository, StoreResult, events_in_one_read,
};
use crate::values::{Id, TenantId, Timestamp};
use crate::webhooks::events::{Event, EventId};

#[async_trait]
impl EventRepository for MemoryTx<'_> {
    async fn insert_event(&mut self, event: &Event) -> StoreResult<()> {
        let (key, actor) = ((event.tenant_id, event.id), self.actor.to_string());
        let state = self.state_mut()?;
        insert(&mut state.events, key, event)?;
        insert(&mut state.event_actors, key, &actor)?;
        self.written_events.add(event.id);
        Ok(())
    }

    async fn replace_event_data(&mut self, event: &Event) -> StoreResult<()> {
        let key = (event.tenant_id, event.id);
        self.state_mut()?.events.change(&key, |stored| stored.data.clone_from(&event.data));
        Ok(())
    }

    async fn event(&mut self, tenant: TenantId, id: EventId) -> StoreResult<Option<Event>> {
        Ok(self.state.events.get(&(tenant, id)).cloned())
    }

    async fn events_after(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> StoreResult<Vec<Event>> {
        let from = self.state.events.range((tenant, first_id_at(after).into())..=(tenant, Id::max()));
        let events = from.map(|(_, event)| event).filter(|event| event.created_at > after).take(limit as usize);
        let read = events_in_one_read(events.clone().map(|event| event.data.get().len()));
        Ok(events.take(read).cloned().collect())
    }

    async fn event_ids(&mut self, tenant: TenantId, until: Timestamp, limit: u32) -> StoreResult<Vec<EventId>> {
        let events = of_tenant(&self.state.events, tenant).filter(|event| event.created_at < until).rev();
        Ok(events.take(limit as usize).map(|event| event.id).collect())
    }

    async fn list_events(&mut self, tenant: TenantId, filter: &EventFilter) -> StoreResult<Vec<EventWithActor>> {
        let EventFilter { record_id, since, until, oldest_first, limit } = *filter;
        let matches = |event: &&Event| {
            (since..until).contains(&event.created_at)
                && record_id.is_none_or(|record| event.record_id() == Some(record))
        };
        let with_actor = |event: &Event| EventWithActor {
            event: event.clone(),
            actor: self.state.event_actors.get(&(tenant, event.id)).cloned(),
        };
        let events = of_tenant(&self.state.events, tenant).filter(matches);
        let mut events: Vec<&Event> = if oldest_first {
            events.take(limit as usize).collect()
        } else {
            events.rev().take(limit as usize).collect()
        };
        events.truncate(events_in_one_read(events.iter().map(|event| event.data.get().len())));
        Ok(events.into_iter().map(with_actor).collect())
    }
}

#[async_trait]
impl OperationalEventRepository for MemoryTx<'_> {
    async fn insert_operational_event(&mut self, event: &OperationalEvent) -> StoreResult<()> {
        insert(&mut self.state_mut()?.operational_events, event.id, event)
    }

    async fn operational_events(&mut self, limit: u32) -> StoreResult<Vec<OperationalEvent>> {
        Ok(self.state.operational_events.values().take(limit as usize).cloned().collect())
    }

    async fn delete_operational_event(&mut self, id: OperationalEventId) -> StoreResult<()> {
        let events = &mut self.state_mut()?.operational_events;
        if !events.contains_key(&id) {
            return Err(StoreError::Internal("a deletion of operational_events found no row".to_owned()));
        }
        events.take(&id);
        Ok(())
    }
}
