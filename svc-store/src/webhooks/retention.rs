//! Deletion of what is older than its retention period.

use std::time::Duration;

use async_trait::async_trait;
use svc_core::env;
use svc_core::store::{RetentionRepository, StoreResult};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::retention::{DroppedHistory, ExpiredKind, IdRange};
use uuid::Uuid;

use crate::accounts::idempotency;
use crate::column::{Column as _, Param};
use crate::dialect::Dialect;
use crate::sql::{Cells, SqlTx};

const EVENTS: &str = "SELECT id FROM events WHERE tenant_id = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4";
const NTH_DELIVERY: &str =
    "SELECT id FROM deliveries WHERE tenant_id = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT 1 OFFSET $4";

/// The condition that selects the deliveries of a range that are not pending. Delivery ids are made for the times of their
/// events, so they are a range of the key, and no index by event is needed.
macro_rules! ended {
    () => {
        "d.tenant_id = $1 AND d.id >= $2 AND d.id < $3 AND d.status IN ('succeeded', 'failed', 'held')"
    };
}

const DELETE_ATTEMPTS: &str = concat!(
    "DELETE FROM delivery_attempts WHERE tenant_id = $1 AND (delivery_id, attempt) IN \
     (SELECT a.delivery_id, a.attempt FROM deliveries d \
     JOIN delivery_attempts a ON a.tenant_id = d.tenant_id AND a.delivery_id = d.id WHERE ",
    ended!(),
    " LIMIT $4)"
);
const DELETE_DELIVERIES: &str = concat!(
    "DELETE FROM deliveries WHERE tenant_id = $1 AND id IN (SELECT d.id FROM deliveries d WHERE ",
    ended!(),
    " LIMIT $4)"
);
/// Selects the events of a range without a delivery that keeps them.
macro_rules! unused_events {
    ($kept:literal) => {
        concat!(
            "FROM events e WHERE e.tenant_id = $1 AND e.id >= $2 AND e.id < $3 AND e.id NOT IN \
             (SELECT d.event_id FROM deliveries d WHERE d.tenant_id = $1 AND d.id >= $2 AND d.id < $3",
            $kept,
            ")"
        )
    };
}

const DELETE_EVENTS: &str =
    concat!("DELETE FROM events WHERE tenant_id = $1 AND id IN (SELECT e.id ", unused_events!(""), " LIMIT $4)");

const COUNT_ATTEMPTS: &str = concat!(
    "SELECT count(*) FROM deliveries d \
     JOIN delivery_attempts a ON a.tenant_id = d.tenant_id AND a.delivery_id = d.id WHERE ",
    ended!()
);
const COUNT_DELIVERIES: &str = concat!("SELECT count(*) FROM deliveries d WHERE ", ended!());
const COUNT_EVENTS: &str =
    concat!("SELECT count(*) ", unused_events!(" AND d.status NOT IN ('succeeded', 'failed', 'held')"));

/// A replay that was finished before some time was created before it too, which is a condition on the key.
const DELETE_REPLAYS: &str = "DELETE FROM replays WHERE tenant_id = $1 AND id IN \
     (SELECT id FROM replays WHERE tenant_id = $1 AND id < $2 AND finished_at < $3 LIMIT $4)";
const COUNT_REPLAYS: &str = "SELECT count(*) FROM replays WHERE tenant_id = $1 AND id < $2 AND finished_at < $3";
/// Subqueries with a limit are asked of each tenant of the page alone, with one search of a key each.
pub(crate) const TENANTS: &str = "SELECT t.id, \
     (SELECT e.id FROM events e WHERE e.tenant_id = t.id AND e.id < $1 ORDER BY e.id LIMIT 1) IS NOT NULL \
     OR (SELECT r.id FROM replays r WHERE r.tenant_id = t.id AND r.id < $1 ORDER BY r.id LIMIT 1) IS NOT NULL \
     FROM tenants t WHERE t.id > $2 ORDER BY t.id LIMIT $3";
/// The length of partitions is whole days, so that about six of them are within the retention: few for a search of all, and
/// little that is kept longer.
const PARTITIONS: u64 = 6;
const PREPARE_PARTITION: &str = "SELECT prepare_partition($1, $2, make_interval(days => $3))";
const STEP_PARTITIONS: &str =
    "SELECT first, until, done, blocked FROM step_partitions($1, $2, $3, make_interval(days => $4))";
/// Sets how long each further statement of the transaction may take.
const LIMIT: &str = "SELECT set_config('statement_timeout', $1, true)";
/// The longest that a step may lock a table, and so the longest that writes wait for it.
pub(crate) const MAX_LOCK: &str = "1s";
/// How far ahead there are partitions at least, unless something is in the way.
const MIN_AHEAD: Duration = Duration::from_secs(24 * 60 * 60);
const COUNT_REQUEST_RECORDS: &str = "SELECT (SELECT count(*) FROM idempotency WHERE created_at < $1) \
     + (SELECT count(*) FROM used_signatures WHERE expires_at < $2)";

#[cfg(test)]
pub(crate) const OWN_STATEMENTS_OF_POSTGRES: &[&str] = &[PREPARE_PARTITION, STEP_PARTITIONS, LIMIT];

#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[
    EVENTS,
    NTH_DELIVERY,
    DELETE_ATTEMPTS,
    DELETE_DELIVERIES,
    DELETE_EVENTS,
    COUNT_ATTEMPTS,
    COUNT_DELIVERIES,
    COUNT_EVENTS,
    DELETE_REPLAYS,
    COUNT_REPLAYS,
    TENANTS,
    COUNT_REQUEST_RECORDS,
];

/// Returns the length of the partitions of events.
fn days(now: Timestamp, before: Timestamp) -> u64 {
    (now.since(before).as_secs() / (24 * 60 * 60 * PARTITIONS)).max(1)
}

impl SqlTx<'_> {
    /// Makes the table of the next partition. Nobody waits for it, so it may take as long as it needs.
    pub(crate) async fn prepare_partition_until(&mut self, now: Timestamp, days: u64, ahead: u32) -> StoreResult<()> {
        self.limit("0").await?;
        let params = [now.param(), days.param(), ahead.param()];
        self.fetch_one(PREPARE_PARTITION, &params, |_| Ok(())).await.map(drop)
    }

    /// Does one step of the upkeep of partitions, so that they reach `ahead` days after now, and says so where it cannot.
    pub(crate) async fn step_partitions(
        &mut self,
        now: Timestamp,
        dropped_before: Timestamp,
        days: u64,
        ahead: u32,
        limit: &'static str,
    ) -> StoreResult<DroppedHistory> {
        self.limit(limit).await?;
        let params = [now.param(), dropped_before.param(), days.param(), ahead.param()];
        let read = |cells: &mut Cells<'_>| {
            Ok((
                cells.take::<Option<Timestamp>>("events", "the first partition")?,
                cells.take::<Option<Timestamp>>("events", "the last partition")?,
                cells.take::<Option<String>>("events", "the partition that was changed")?,
                cells.take::<Option<String>>("events", "what was in the way")?,
            ))
        };
        let Some((partitions_from, until, done, blocked)) = self.fetch_one(STEP_PARTITIONS, &params, read).await?
        else {
            return Ok(DroppedHistory::default());
        };
        let ahead = until.map_or(Duration::ZERO, |until| until.since(now));
        self.context.report_partitions(ahead, blocked.is_some());
        match blocked.as_deref() {
            Some("time") => tracing::warn!(
                "a partition was not made or dropped, as writes would have waited for it longer than {limit}; trying again in a \
                 minute. `svc db prune` makes and drops them without this limit"
            ),
            Some(_) if ahead < MIN_AHEAD => tracing::warn!(
                hours_ahead = ahead.as_secs() / 3600,
                "a partition was not made, as somebody has locked its table for long; trying again in a minute"
            ),
            _ => {}
        }
        let partitions = u64::from(done.as_deref() == Some("events"));
        Ok(DroppedHistory { partitions_from, partitions, has_more: done.is_some() })
    }

    async fn limit(&mut self, limit: &'static str) -> StoreResult<()> {
        self.fetch_one(LIMIT, &[Param::from(limit)], |_| Ok(())).await.map(drop)
    }
}

#[async_trait]
impl RetentionRepository for SqlTx<'_> {
    async fn prepare_partition(&mut self, now: Timestamp, before: Timestamp) -> StoreResult<()> {
        if self.dialect == Dialect::Postgres {
            self.prepare_partition_until(now, days(now, before), 0).await?;
        }
        Ok(())
    }

    async fn drop_expired(
        &mut self,
        now: Timestamp,
        before: Timestamp,
        sent_before: Timestamp,
    ) -> StoreResult<DroppedHistory> {
        if self.dialect == Dialect::Sqlite {
            return Ok(DroppedHistory::default());
        }
        let limit = if self.context.is_by_hand { "0" } else { MAX_LOCK };
        self.step_partitions(now, before.min(sent_before), days(now, before), 0, limit).await
    }

    async fn last_event(&mut self, tenant: TenantId, range: IdRange, limit: u32) -> StoreResult<Option<Uuid>> {
        let params = [tenant.param(), range.first.param(), range.end.param(), limit.param()];
        let ids: Vec<Uuid> = self.fetch(EVENTS, &params, |cells| cells.take("events", "id")).await?;
        Ok(ids.last().copied())
    }

    async fn nth_delivery(&mut self, tenant: TenantId, range: IdRange, n: u32) -> StoreResult<Option<Uuid>> {
        let params = [tenant.param(), range.first.param(), range.end.param(), n.param()];
        self.fetch_one(NTH_DELIVERY, &params, |cells| cells.take("deliveries", "id")).await
    }

    async fn delete_expired(
        &mut self,
        tenant: TenantId,
        kind: ExpiredKind,
        range: IdRange,
        limit: u32,
    ) -> StoreResult<u64> {
        let sql = match kind {
            ExpiredKind::Attempts => DELETE_ATTEMPTS,
            ExpiredKind::Deliveries => DELETE_DELIVERIES,
            ExpiredKind::Event => DELETE_EVENTS,
        };
        self.execute(sql, &[tenant.param(), range.first.param(), range.end.param(), limit.param()]).await
    }

    async fn count_expired(&mut self, tenant: TenantId, kind: ExpiredKind, range: IdRange) -> StoreResult<u64> {
        let (sql, table) = match kind {
            ExpiredKind::Attempts => (COUNT_ATTEMPTS, "delivery_attempts"),
            ExpiredKind::Deliveries => (COUNT_DELIVERIES, "deliveries"),
            ExpiredKind::Event => (COUNT_EVENTS, "events"),
        };
        self.count(sql, &[tenant.param(), range.first.param(), range.end.param()], table).await
    }

    async fn delete_finished_replays(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let end = env::first_id_at(before);
        self.execute(DELETE_REPLAYS, &[tenant.param(), end.param(), before.param(), limit.param()]).await
    }

    async fn count_finished_replays(&mut self, tenant: TenantId, before: Timestamp) -> StoreResult<u64> {
        let end = env::first_id_at(before);
        self.count(COUNT_REPLAYS, &[tenant.param(), end.param(), before.param()], "replays").await
    }

    async fn tenants_by_history(
        &mut self,
        after: TenantId,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<(TenantId, bool)>> {
        let end = env::first_id_at(before);
        let params = [end.param(), after.param(), limit.param()];
        let read = |cells: &mut Cells<'_>| Ok((cells.take("tenants", "id")?, cells.take("tenants", "has history")?));
        self.fetch(TENANTS, &params, read).await
    }

    async fn delete_request_records(
        &mut self,
        stored_before: Timestamp,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        let responses = self.execute(idempotency::DELETE_EXPIRED, &[stored_before.param(), limit.param()]).await?;
        let signatures = self.delete_expired_signatures(now, limit).await?;
        Ok(responses + signatures)
    }

    async fn count_request_records(&mut self, stored_before: Timestamp, now: Timestamp) -> StoreResult<u64> {
        self.count(COUNT_REQUEST_RECORDS, &[stored_before.param(), now.param()], "idempotency").await
    }
}
