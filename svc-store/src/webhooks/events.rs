//! The table of events.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::env;
use svc_core::store::{EventFilter, EventRepository, EventWithActor, MAX_EVENT_BYTES, StoreResult, events_in_one_read};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::events::{Event, EventId};
use uuid::Uuid;

use crate::column::{CellError, Column as _, Param};
use crate::dialect::Dialect;
use crate::sql::{Cells, SqlTx};
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

const IDS: &str = "SELECT id FROM events WHERE tenant_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3";
const COUNT: &str =
    "SELECT count(*) FROM (SELECT 1 FROM events WHERE tenant_id = $1 AND id >= $2 AND id < $3 LIMIT $4) AS counted";
/// How many sizes of events are asked for at first, when nothing is known of them.
const FIRST_SIZES: u32 = 20;

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let lists = LISTS.iter().flatten().map(String::as_str);
    [AFTER.as_str(), IDS, COUNT].into_iter().chain(lists).collect()
}

/// Returns the statement that selects the sizes of the data of a list's events, without reading the data.
fn sizes(dialect: Dialect, is_of_record: bool, oldest_first: bool) -> String {
    let size = match dialect {
        Dialect::Sqlite => "octet_length(data)",
        Dialect::Postgres => "octet_length(data::text)",
    };
    let (record, limit) = if is_of_record { ("AND record_id = $4 ", "$5") } else { ("", "$4") };
    let order = if oldest_first { "ASC" } else { "DESC" };
    format!(
        "SELECT id, CAST({size} AS bigint) FROM events WHERE tenant_id = $1 AND id >= $2 AND id < $3 {record}\
         ORDER BY id {order} LIMIT {limit}"
    )
}

/// Returns the statements that each database gets in a form of its own.
#[cfg(test)]
pub(crate) fn own_statements(dialect: Dialect) -> Vec<String> {
    let both = [false, true];
    both.iter().flat_map(|record| both.map(|oldest_first| sizes(dialect, *record, oldest_first))).collect()
}

impl SqlTx<'_> {
    /// Returns how many of the first events of a list one read returns. The limit is the last parameter.
    async fn events_in_one_read(
        &mut self,
        is_of_record: bool,
        oldest_first: bool,
        params: &[Param<'_>],
        limit: u32,
    ) -> StoreResult<u32> {
        if limit <= 1 {
            return Ok(limit);
        }
        let statement = sizes(self.dialect, is_of_record, oldest_first);
        let (mut params, mut sizes) = (params.to_vec(), Vec::new());
        let read = |cells: &mut Cells<'_>| {
            Ok((cells.take::<Uuid>("events", "id")?, cells.take::<u64>("events", "octet_length(data)")?))
        };
        // PostgreSQL decompresses the data of all events whose sizes it is asked for.
        while let Some(part) = next_part(&sizes, limit) {
            let last_param = params.len() - 1;
            params[last_param] = Param::Int(part.into());
            let found: Vec<(Uuid, u64)> = self.fetch(&statement, &params, read).await?;
            sizes.extend(found.iter().map(|(_, size)| usize::try_from(*size).unwrap_or(usize::MAX)));
            let Some((last, _)) = found.last().filter(|_| found.len() == part as usize) else { break };
            if oldest_first {
                params[1] = Param::Uuid(Uuid::from_u128(last.as_u128().saturating_add(1)));
            } else {
                params[2] = Param::Uuid(*last);
            }
        }
        Ok(u32::try_from(events_in_one_read(sizes)).unwrap_or(limit))
    }
}

/// Returns how many further sizes are asked for: so many as may fit if they are like those so far.
fn next_part(sizes: &[usize], limit: u32) -> Option<u32> {
    let sum = sizes.iter().copied().fold(0, usize::saturating_add);
    let left = limit.saturating_sub(sizes.len() as u32);
    if left == 0 || sum >= MAX_EVENT_BYTES {
        return None;
    }
    let mean = (sum / sizes.len().max(1)).max(1);
    let fit = u32::try_from((MAX_EVENT_BYTES - sum) / mean).unwrap_or(u32::MAX);
    Some(if sizes.is_empty() { FIRST_SIZES } else { fit.max(FIRST_SIZES) }.min(left))
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

    async fn events(&mut self, tenant: TenantId, ids: &[EventId]) -> StoreResult<Vec<Event>> {
        let ids: Vec<Uuid> = ids.iter().map(|id| id.uuid()).collect();
        self.get_records(tenant, &ids).await
    }

    async fn events_after(&mut self, tenant: TenantId, after: Timestamp, limit: u32) -> StoreResult<Vec<Event>> {
        let (first, end) = (env::first_id_at(after.next()), Uuid::max());
        let params = [tenant.param(), first.param(), end.param(), limit.param()];
        let limit = self.events_in_one_read(false, true, &params, limit).await?;
        self.fetch(&AFTER, &[tenant.param(), first.param(), limit.param()], Event::read).await
    }

    async fn event_ids(&mut self, tenant: TenantId, until: Timestamp, limit: u32) -> StoreResult<Vec<EventId>> {
        let end = env::first_id_at(until);
        let params = [tenant.param(), end.param(), limit.param()];
        self.fetch(IDS, &params, |cells| cells.take("events", "id")).await
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
        let is_of_record = filter.record_id.is_some();
        let read = self.events_in_one_read(is_of_record, filter.oldest_first, &params, filter.limit).await?;
        params.pop();
        params.push(read.param());
        let statement = if filter.oldest_first { oldest_first } else { newest_first };
        self.fetch(statement, &params, read_with_actor).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_asked_for_until_they_are_enough() {
        for (sizes, limit, want) in [
            (&[][..], 200, Some(20)),
            (&[], 7, Some(7)),
            (&[300; 20], 200, Some(180)),
            (&[64 * 1024; 20], 200, Some(20)),
            (&[30_000; 20], 200, Some(49)),
            (&[0; 20], 200, Some(180)),
            (&[MAX_EVENT_BYTES / 20 + 1; 20], 200, None),
            (&[usize::MAX; 2], 200, None),
            (&[300; 20], 20, None),
        ] {
            assert_eq!(next_part(sizes, limit), want, "{} {limit}", sizes.len());
        }
    }
}
