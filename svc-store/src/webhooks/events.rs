//! The table of events.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::env;
use svc_core::store::{EventRepository, EventWithActor, StoreResult};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::events::{Event, EventId};
use uuid::Uuid;

use crate::column::Column as _;
use crate::sql::{CellError, Cells, Param, SqlTx};
use crate::table::{TableRow, record, select, select_all};

record!(Event, "events", key: [tenant_id, id], {
    extra: [actor: Option<String>, record_id: Option<Uuid>],
    inserted: [id, tenant_id, kind, data, created_at, only_for],
    updated: [],
});

static AFTER: LazyLock<String> =
    LazyLock::new(|| select::<Event>("WHERE tenant_id = $1 AND id >= $2 ORDER BY id LIMIT $3"));
static WITH_ACTOR: LazyLock<String> =
    LazyLock::new(|| select_all::<Event>("WHERE tenant_id = $1 AND id >= $2 AND id < $3 ORDER BY id DESC LIMIT $4"));
static OF_RECORD: LazyLock<String> = LazyLock::new(|| {
    select_all::<Event>("WHERE tenant_id = $1 AND record_id = $2 AND id < $3 ORDER BY id DESC LIMIT $4")
});

const COUNT: &str =
    "SELECT count(*) FROM (SELECT 1 FROM events WHERE tenant_id = $1 AND id >= $2 AND id < $3 LIMIT $4) AS counted";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&AFTER, &WITH_ACTOR, &OF_RECORD, COUNT]
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

    async fn events_with_actor(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<EventWithActor>> {
        let (first, end) = (env::first_id_at(since), env::first_id_at(until));
        self.fetch(&WITH_ACTOR, &[tenant.param(), first.param(), end.param(), limit.param()], read_with_actor).await
    }

    async fn events_of_record(
        &mut self,
        tenant: TenantId,
        record: Uuid,
        until: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<EventWithActor>> {
        let end = env::first_id_at(until);
        self.fetch(&OF_RECORD, &[tenant.param(), record.param(), end.param(), limit.param()], read_with_actor).await
    }
}
