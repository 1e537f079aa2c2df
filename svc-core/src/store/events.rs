//! Events of tenants, and operational events that have not been published yet.

use std::ops::Range;

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreResult;
use crate::accounts::operational::{OperationalEvent, OperationalEventId};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::events::{Event, EventId};

/// The size of the data, in bytes, with which a read of events ends. The last event is the one that reaches it, so a read returns
/// one event at least.
pub const MAX_EVENT_BYTES: usize = 2 * 1024 * 1024;

/// Returns how many of the first events of a list one read returns, given the sizes of their data.
pub fn events_in_one_read(sizes: impl IntoIterator<Item = usize>) -> usize {
    let (mut events, mut bytes) = (0, 0_usize);
    for size in sizes {
        events += 1;
        bytes = bytes.saturating_add(size);
        if bytes >= MAX_EVENT_BYTES {
            break;
        }
    }
    events
}

/// Returns whether there may be more events than a read with this limit returned: it returned as many, or those that it returned
/// have [`MAX_EVENT_BYTES`] of data.
pub fn is_cut<'e>(events: impl IntoIterator<Item = &'e Event>, limit: u32) -> bool {
    let (mut count, mut bytes) = (0_u32, 0_usize);
    for event in events {
        count += 1;
        bytes = bytes.saturating_add(event.data.get().len());
    }
    count >= limit || bytes >= MAX_EVENT_BYTES
}

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
    async fn insert_event(&mut self, event: &Event) -> StoreResult<()>;

    /// Stores the data of an event in place of what it had.
    async fn replace_event_data(&mut self, event: &Event) -> StoreResult<()>;

    /// Returns one event.
    async fn event(&mut self, tenant: TenantId, id: EventId) -> StoreResult<Option<Event>>;

    /// Returns the events of a tenant with these ids that are there, in any order. Their data is not bounded together, so ask for
    /// as many as a page shows.
    async fn events(&mut self, tenant: TenantId, ids: &[EventId]) -> StoreResult<Vec<Event>> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.extend(self.event(tenant, *id).await?);
        }
        Ok(found)
    }

    /// Returns the first events of a tenant that are later than `after`, oldest first: at most `limit`, and no more after those
    /// whose data has [`MAX_EVENT_BYTES`] together. [`is_cut`] tells whether there may be more.
    async fn events_after(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> StoreResult<Vec<Event>>;

    /// Returns the ids of the newest `limit` events of a tenant before `until`, newest first.
    async fn event_ids(&mut self, tenant: TenantId, until: Timestamp, limit: u32) -> StoreResult<Vec<EventId>>;

    /// Returns how many events of a tenant are at or after `since` and before `until`, and `limit` for that many or more.
    async fn count_events(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        let (mut counted, mut after) = (0, Timestamp::from_micros(since.as_micros() - 1));
        loop {
            let left = limit - counted;
            let events = self.events_after(tenant, after, left).await?;
            let in_time = events.iter().take_while(|event| event.created_at < until).count();
            counted += u32::try_from(in_time).unwrap_or(left);
            match events.last() {
                Some(last) if in_time == events.len() && counted < limit && is_cut(&events, left) => {
                    after = last.created_at;
                }
                _ => return Ok(counted.into()),
            }
        }
    }

    /// Returns the events that match a filter, with their actors: at most as many as its limit, and no more after those whose
    /// data has [`MAX_EVENT_BYTES`] together. [`is_cut`] tells whether there may be more. It costs O(limit).
    async fn list_events(&mut self, tenant: TenantId, filter: &EventFilter) -> StoreResult<Vec<EventWithActor>>;
}

/// A filter of events. Every condition that is set must hold.
#[derive(Clone, Debug)]
pub struct EventFilter {
    /// Events in the history of this record ([`Event::record_id`]).
    pub record_id: Option<Uuid>,
    /// Events at or after this time.
    pub since: Timestamp,
    /// Events before this time.
    pub until: Timestamp,
    /// Whether the oldest come first instead of the newest.
    pub oldest_first: bool,
    /// The maximum number of events to return.
    pub limit: u32,
}

impl EventFilter {
    /// Returns the filter of the newest events of a time span.
    pub fn newest(times: Range<Timestamp>, limit: u32) -> Self {
        Self { record_id: None, since: times.start, until: times.end, oldest_first: false, limit }
    }

    /// Returns the filter of the newest events in the history of a record that are before `until`.
    pub fn of_record(record: Uuid, until: Timestamp, limit: u32) -> Self {
        Self { record_id: Some(record), ..Self::newest(Timestamp::from_micros(0)..until, limit) }
    }
}

/// Operational events that have not been published yet, of all tenants.
#[async_trait]
pub trait OperationalEventRepository: Send {
    /// Adds an event.
    async fn insert_operational_event(&mut self, event: &OperationalEvent) -> StoreResult<()>;

    /// Returns the first `limit` events, in the order of their ids.
    async fn operational_events(&mut self, limit: u32) -> StoreResult<Vec<OperationalEvent>>;

    /// Deletes an event, which must be there: the transaction fails otherwise.
    async fn delete_operational_event(&mut self, id: OperationalEventId) -> StoreResult<()>;
}
