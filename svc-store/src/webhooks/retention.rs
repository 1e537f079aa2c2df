//! What has had its day.

use async_trait::async_trait;
use svc_core::env;
use svc_core::error::StoreError;
use svc_core::store::RetentionStore;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::retention::{EventRange, ExpiredKind};
use uuid::Uuid;

use crate::sql::{Cells, Column as _, SqlTx};

const EXPIRED: &str = "SELECT id FROM events WHERE tenant_id = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT $4";

/// The finished deliveries of some events. Their ids are made for the times of their events, so they are a range of the
/// key, and no index of events is kept.
macro_rules! finished {
    () => {
        "d.tenant_id = $1 AND d.id >= $2 AND d.id < $3 AND d.state IN ('succeeded', 'failed')"
    };
}

const DROP_ATTEMPTS: &str = concat!(
    "DELETE FROM delivery_attempts WHERE (tenant_id, delivery_id, attempt) IN \
     (SELECT a.tenant_id, a.delivery_id, a.attempt FROM deliveries d \
     JOIN delivery_attempts a ON a.tenant_id = d.tenant_id AND a.delivery_id = d.id WHERE ",
    finished!(),
    " LIMIT $4)"
);
const DROP_DELIVERIES: &str = concat!(
    "DELETE FROM deliveries WHERE (tenant_id, id) IN (SELECT d.tenant_id, d.id FROM deliveries d WHERE ",
    finished!(),
    " LIMIT $4)"
);
/// What still has a delivery stays.
macro_rules! abandoned {
    ($kept:literal) => {
        concat!(
            "FROM events e WHERE e.tenant_id = $1 AND e.id >= $2 AND e.id < $3 AND e.id NOT IN \
             (SELECT d.event_id FROM deliveries d WHERE d.tenant_id = $1 AND d.id >= $2 AND d.id < $3",
            $kept,
            ")"
        )
    };
}

const DROP_EVENTS: &str =
    concat!("DELETE FROM events WHERE (tenant_id, id) IN (SELECT e.tenant_id, e.id ", abandoned!(""), " LIMIT $4)");

const COUNT_ATTEMPTS: &str = concat!(
    "SELECT count(*) FROM deliveries d \
     JOIN delivery_attempts a ON a.tenant_id = d.tenant_id AND a.delivery_id = d.id WHERE ",
    finished!()
);
const COUNT_DELIVERIES: &str = concat!("SELECT count(*) FROM deliveries d WHERE ", finished!());
const COUNT_EVENTS: &str = concat!("SELECT count(*) ", abandoned!(" AND d.state IN ('pending', 'held')"));

/// A replay that was finished before some time began before it too, which the key tells.
const DROP_REPLAYS: &str = "DELETE FROM replays WHERE (tenant_id, id) IN \
     (SELECT tenant_id, id FROM replays WHERE tenant_id = $1 AND id < $2 AND finished_at < $3 LIMIT $4)";
const COUNT_REPLAYS: &str = "SELECT count(*) FROM replays WHERE tenant_id = $1 AND id < $2 AND finished_at < $3";
const COUNT_PRUNABLE: &str = "SELECT (SELECT count(*) FROM idempotency WHERE created_at < $1) \
     + (SELECT count(*) FROM used_signatures WHERE expires_at < $2)";

#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[
    EXPIRED,
    DROP_ATTEMPTS,
    DROP_DELIVERIES,
    DROP_EVENTS,
    COUNT_ATTEMPTS,
    COUNT_DELIVERIES,
    COUNT_EVENTS,
    DROP_REPLAYS,
    COUNT_REPLAYS,
    COUNT_PRUNABLE,
];

/// The first id of the events in a range and of all their deliveries, and the first behind them: no two events of a
/// tenant share a microsecond.
fn ids(range: EventRange) -> [Uuid; 2] {
    [range.after, range.until].map(|event| env::first_id_at(env::time_of_id(event).next()))
}

impl SqlTx<'_> {
    async fn count_rows(&mut self, sql: &str, params: &[crate::sql::Param<'_>]) -> Result<u64, StoreError> {
        let read = |cells: &mut Cells<'_>| cells.take();
        Ok(self.fetch_one(sql, params, "count", read).await?.unwrap_or_default())
    }
}

#[async_trait]
impl RetentionStore for SqlTx<'_> {
    async fn expired_until(
        &mut self,
        tenant: TenantId,
        after: Uuid,
        before: Timestamp,
        limit: u32,
    ) -> Result<Option<Uuid>, StoreError> {
        let end: Uuid = env::first_id_at(before);
        let params = [tenant.param(), after.param(), end.param(), limit.param()];
        let ids: Vec<Uuid> = self.fetch(EXPIRED, &params, "events", |cells| cells.take()).await?;
        Ok(ids.last().copied())
    }

    async fn drop_expired(
        &mut self,
        tenant: TenantId,
        remains: ExpiredKind,
        range: EventRange,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let sql = match remains {
            ExpiredKind::Attempts => DROP_ATTEMPTS,
            ExpiredKind::Deliveries => DROP_DELIVERIES,
            ExpiredKind::Event => DROP_EVENTS,
        };
        let [first, end] = ids(range);
        self.execute(sql, &[tenant.param(), first.param(), end.param(), limit.param()]).await
    }

    async fn count_expired(
        &mut self,
        tenant: TenantId,
        remains: ExpiredKind,
        range: EventRange,
    ) -> Result<u64, StoreError> {
        let sql = match remains {
            ExpiredKind::Attempts => COUNT_ATTEMPTS,
            ExpiredKind::Deliveries => COUNT_DELIVERIES,
            ExpiredKind::Event => COUNT_EVENTS,
        };
        let [first, end] = ids(range);
        self.count_rows(sql, &[tenant.param(), first.param(), end.param()]).await
    }

    async fn drop_replays(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let end = env::first_id_at(before);
        self.execute(DROP_REPLAYS, &[tenant.param(), end.param(), before.param(), limit.param()]).await
    }

    async fn count_replays(&mut self, tenant: TenantId, before: Timestamp) -> Result<u64, StoreError> {
        let end = env::first_id_at(before);
        self.count_rows(COUNT_REPLAYS, &[tenant.param(), end.param(), before.param()]).await
    }

    async fn count_prunable(&mut self, recorded_before: Timestamp, now: Timestamp) -> Result<u64, StoreError> {
        self.count_rows(COUNT_PRUNABLE, &[recorded_before.param(), now.param()]).await
    }
}
