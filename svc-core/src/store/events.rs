//! Events of tenants, and operational events that have not been published yet.

use async_trait::async_trait;

use crate::accounts::operational::{OperationalEvent, OperationalEventId};
use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};
use crate::webhooks::events::{Event, EventId};

/// An event and the actor that caused it.
#[derive(Clone, Debug)]
pub struct EventWithActor {
    /// The event.
    pub event: Event,
    /// The actor as text. `None` for events that were stored before actors were.
    pub actor: Option<String>,
}

/// The stored events.
#[async_trait]
pub trait EventRepository: Send {
    /// Adds an event, with the actor of the transaction ([`Tx::actor`](super::Tx::actor)).
    async fn insert_event(&mut self, event: &Event) -> Result<(), StoreError>;

    /// Returns one event.
    async fn event(&mut self, tenant: TenantId, id: EventId) -> Result<Option<Event>, StoreError>;

    /// Returns at most `limit` events of a tenant that are later than `after`, oldest first.
    async fn events_after(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> Result<Vec<Event>, StoreError>;

    /// Returns how many events of a tenant are at or after `since` and before `until`, and `limit` for that many or more.
    async fn count_events(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let before = Timestamp::from_micros(since.as_micros() - 1);
        let events = self.events_after(tenant, before, limit).await?;
        Ok(events.iter().take_while(|event| event.created_at < until).count() as u64)
    }

    /// Returns at most `limit` events of a tenant at or after `since` and before `until` with their actors, newest first.
    async fn events_with_actor(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> Result<Vec<EventWithActor>, StoreError>;
}

/// Operational events that have not been published yet, of all tenants.
#[async_trait]
pub trait OperationalEventRepository: Send {
    /// Adds an event.
    async fn insert_operational_event(&mut self, event: &OperationalEvent) -> Result<(), StoreError>;

    /// Returns the first `limit` events, in the order of their ids.
    async fn operational_events(&mut self, limit: u32) -> Result<Vec<OperationalEvent>, StoreError>;

    /// Deletes an event, which must be there: the transaction fails otherwise.
    async fn delete_operational_event(&mut self, id: OperationalEventId) -> Result<(), StoreError>;
}
