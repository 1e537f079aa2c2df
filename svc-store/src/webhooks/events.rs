//! The table of events.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::env;
use svc_core::store::{EventFilter, EventRepository, EventWithActor, StoreResult};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::events::{Event, EventId};
use uuid::Uuid;

use crate::column::Column as _;
use crate::sql::{CellError, Cells, Param, SqlTx};
use crate::table::{TableRow, record, select, select_all};

record!(Event, "events", key: [tenant_id, id], {
    extra: [actor: Option<String>, record_id: Option<Uuid>],
    inserted: [id, tenant_id, kind, created_at, only_for],
    updated: [data],
});

static AFTER: LazyLock<String> =
    LazyLock::new(|| select::<Event>("WHERE tenant_id = $1 AND id >= $2 ORDER BY id LIMIT $3"));
/// The lists of all events and of those of a record, each with the newest and with the oldest first.
static LISTS: LazyLock<[[String; 2]; 2]> = LazyLock::new(|| {
    let of = |record: &str, limit: &str| {
        ["DESC", "ASC"].map(|order| {
            select_all::<Event>(&format!(
                "WHERE tenant_id = $1 AND id >= $2 AND id < $3 {record}ORDER BY id {order} LIMIT {limit}"
            ))
        })
    };
    [of("", "$4"), of("AND record_id = $4 ", "$5")]
});

const COUNT: &str =
    "SELECT count(*) FROM (SELECT 1 FROM events WHERE tenant_id = $1 AND id >= $2 AND id < $3 LIMIT $4) AS counted";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let lists = LISTS.iter().flatten().map(String::as_str);
    [AFTER.as_str(), COUNT].into_iter().chain(lists).collect()
}

fn read_with_actor(cells: &mut Cells<'_>) -> Result<EventWithActor, CellError> {
    let event = Event::read(cells)?;
    let (actor, _) = Event::read_extra(cells)?;
    Ok(EventWithActor { event, actor })
}

#[async_trait]
impl EventRepository for SqlTx<'_> {
    async fn insert_event(&mut self, event: &Event) -> StoreResult<()> {
        let actor = Param::Text(self.actor.to_string().into());
        let record = event.record_id();
        self.insert_record(&[actor, record.param()], event).await?;
        self.written_events.add(event.id);
        Ok(())
    }

    async fn replace_event_data(&mut self, event: &Event) -> StoreResult<()> {
        self.update_record(event, &[event.tenant_id.param(), event.id.param()]).await
    }

    async fn event(&mut self, tenant: TenantId, id: EventId) -> StoreResult<Option<Event>> {
        self.get_record(&[tenant.param(), id.param()]).await
    }

    async fn events_after(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> StoreResult<Vec<Event>> {
        let first = env::first_id_at(after.next());
        self.fetch(&AFTER, &[tenant.param(), first.param(), limit.param()], Event::read).await
    }

    async fn count_events(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        let (first, end) = (env::first_id_at(since), env::first_id_at(until));
        self.count(COUNT, &[tenant.param(), first.param(), end.param(), limit.param()], "events").await
    }

    async fn list_events(&mut self, tenant: TenantId, filter: &EventFilter) -> StoreResult<Vec<EventWithActor>> {
        let [newest_first, oldest_first] = &LISTS[usize::from(filter.record_id.is_some())];
        let (first, end) = (env::first_id_at(filter.since), env::first_id_at(filter.until));
        let mut params = vec![tenant.param(), first.param(), end.param()];
        params.extend(filter.record_id.iter().map(Uuid::param));
        params.push(filter.limit.param());
        let statement = if filter.oldest_first { oldest_first } else { newest_first };
        self.fetch(statement, &params, read_with_actor).await
    }
}
