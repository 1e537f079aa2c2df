//! Deliveries, their attempts, and the turns of endpoints.

use std::fmt::Write as _;

use async_trait::async_trait;
use svc_core::env;
use svc_core::error::StoreError;
use svc_core::store::{DeliveryFilter, DeliveryStore};
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, AttemptSummary, BACKLOG_COUNTED, Backlog, Delivery, DeliveryStatus};
use svc_core::webhooks::events::Event;
use svc_core::webhooks::replays::Replay;
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use crate::sql::{Cells, Column as _, Param, SqlTx};
use crate::webhooks::events::read_event;

const TABLE: &str = "deliveries";

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, tenant_id, event_id, kind, subscription_id, state, attempts, failures, last_status, \
             next_attempt_at, lease, created_at FROM deliveries WHERE tenant_id = $1",
            $rest
        )
    };
}

const INSERT: &str = "INSERT INTO deliveries (tenant_id, id, event_id, kind, subscription_id, state, attempts, \
     failures, last_status, next_attempt_at, lease, created_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
const GET: &str = select!(" AND id = $2");
const LIST: &str = select!("");
/// Two nulls are the same here: what nobody holds.
const UPDATE: &str = "UPDATE deliveries SET state = $1, attempts = $2, failures = $3, last_status = $4, \
     next_attempt_at = $5, lease = $6 WHERE tenant_id = $7 AND id = $8 AND lease IS NOT DISTINCT FROM $9";
const DUE: &str = "SELECT d.id, d.tenant_id, d.event_id, d.kind, d.subscription_id, d.state, d.attempts, d.failures, \
     d.last_status, d.next_attempt_at, d.lease, d.created_at, \
     e.id, e.tenant_id, e.kind, e.data, e.created_at, e.only_for \
     FROM deliveries d JOIN events e ON e.tenant_id = d.tenant_id AND e.id = d.event_id \
     WHERE d.tenant_id = $1 AND d.subscription_id = $2 AND d.state = 'pending' AND d.next_attempt_at <= $3 \
     ORDER BY d.next_attempt_at LIMIT $4";
/// Ids are asked for by fours, so that there is one statement for any number.
const BY_IDS: &str = select!(" AND id IN ($2, $3, $4, $5)");
const NEXT_DUE: &str = "SELECT next_attempt_at FROM deliveries \
     WHERE tenant_id = $1 AND subscription_id = $2 AND state = 'pending' ORDER BY next_attempt_at LIMIT 1";
const HOLD: &str = "UPDATE deliveries SET state = 'held', next_attempt_at = NULL \
     WHERE tenant_id = $1 AND subscription_id = $2 AND state = 'pending'";

const BRING_TURN_FORWARD: &str = "INSERT INTO turns (tenant_id, subscription_id, at) VALUES ($1, $2, $3) \
     ON CONFLICT (tenant_id, subscription_id) DO UPDATE SET at = excluded.at WHERE excluded.at < turns.at";
const SET_TURN: &str = "INSERT INTO turns (tenant_id, subscription_id, at) VALUES ($1, $2, $3) \
     ON CONFLICT (tenant_id, subscription_id) DO UPDATE SET at = excluded.at";
const DROP_TURN: &str = "DELETE FROM turns WHERE tenant_id = $1 AND subscription_id = $2";
const TURNS: &str = "SELECT tenant_id, subscription_id FROM turns WHERE at <= $1 ORDER BY at LIMIT $2";
const FIRST_TURN: &str = "SELECT at FROM turns ORDER BY at LIMIT 1";

const INSERT_ATTEMPT: &str = "INSERT INTO delivery_attempts (tenant_id, delivery_id, attempt, started_at, duration_ms, \
     status, error, response_body, response_truncated, remote_addr) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
const ATTEMPTS: &str = "SELECT attempt, started_at, duration_ms, status, error, response_body, response_truncated, \
     remote_addr FROM delivery_attempts WHERE tenant_id = $1 AND delivery_id = $2 ORDER BY attempt";
/// The bodies of answers are large, and stay where they are.
const ATTEMPT_SUMMARIES: &str = "SELECT a.status, a.error IS NOT NULL, a.duration_ms FROM deliveries d \
     JOIN delivery_attempts a ON a.tenant_id = d.tenant_id AND a.delivery_id = d.id \
     WHERE d.tenant_id = $1 AND d.subscription_id = $2 AND d.id >= $3 AND d.id < $4";
const COUNT: &str = "SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND state = $3";
/// Literals, so that partial indexes serve them. Sorting what is pending would read all of it.
const PENDING: &str = "SELECT count(*), min(created_at) FROM \
     (SELECT created_at FROM deliveries WHERE state = 'pending' LIMIT $1) AS counted";
const FAILED: &str = "SELECT count(*), min(created_at) FROM \
     (SELECT created_at FROM deliveries WHERE state = 'failed' ORDER BY created_at LIMIT $1) AS counted";
const HELD: &str = "SELECT count(*), min(created_at) FROM \
     (SELECT created_at FROM deliveries WHERE state = 'held' ORDER BY created_at LIMIT $1) AS counted";
const NOTE_OUTCOME: &str = "UPDATE subscriptions SET last_delivery_at = $1, last_delivery_status = $2, \
     consecutive_failures = $3 WHERE tenant_id = $4 AND id = $5";

macro_rules! select_replay {
    ($rest:literal) => {
        concat!(
            "SELECT id, tenant_id, subscription_id, since, until, statuses, missed, position, stepped_at, \
             replayed, created_at, finished_at FROM replays WHERE ",
            $rest
        )
    };
}

const INSERT_REPLAY: &str = "INSERT INTO replays (tenant_id, id, subscription_id, since, until, statuses, missed, \
     position, stepped_at, replayed, created_at, finished_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
const REPLAY: &str = select_replay!("tenant_id = $1 AND id = $2");
const REPLAYS: &str = select_replay!("tenant_id = $1 ORDER BY id DESC LIMIT $2");
const UNFINISHED_REPLAY: &str =
    select_replay!("tenant_id = $1 AND finished_at IS NULL ORDER BY stepped_at, id LIMIT 1");
const REPLAYING: &str = "SELECT tenant_id FROM replays WHERE finished_at IS NULL ORDER BY stepped_at, id LIMIT $1";
const UPDATE_REPLAY: &str = "UPDATE replays SET position = $1, stepped_at = $2, replayed = $3, finished_at = $4 \
     WHERE tenant_id = $5 AND id = $6";

#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[
    INSERT,
    GET,
    LIST,
    UPDATE,
    DUE,
    BY_IDS,
    NEXT_DUE,
    HOLD,
    BRING_TURN_FORWARD,
    SET_TURN,
    DROP_TURN,
    TURNS,
    FIRST_TURN,
    INSERT_ATTEMPT,
    ATTEMPTS,
    ATTEMPT_SUMMARIES,
    COUNT,
    PENDING,
    FAILED,
    HELD,
    NOTE_OUTCOME,
    INSERT_REPLAY,
    REPLAY,
    REPLAYS,
    UNFINISHED_REPLAY,
    REPLAYING,
    UPDATE_REPLAY,
];

/// Those that serve [`DeliveryStore::backlog`], and their indexes.
#[cfg(test)]
pub(crate) const BACKLOGS: [(&str, &str); 3] =
    [(PENDING, "deliveries_due"), (FAILED, "deliveries_stopped"), (HELD, "deliveries_stopped")];

/// Lists as [`list_statement`] makes them.
#[cfg(test)]
pub(crate) const LISTS_OF_AN_ENDPOINT: &[&str] = &[
    select!(" AND subscription_id = $2 ORDER BY id DESC LIMIT $3"),
    select!(" AND subscription_id = $2 AND state = $3 ORDER BY id DESC LIMIT $4"),
    select!(" AND subscription_id = $2 AND id >= $3 AND id < $4 ORDER BY id LIMIT $5"),
];

pub(crate) fn read(cells: &mut Cells<'_>) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        id: cells.take()?,
        tenant_id: cells.take()?,
        event_id: cells.take()?,
        kind: cells.take()?,
        subscription_id: cells.take()?,
        status: cells.take()?,
        attempts: cells.take()?,
        failures: cells.take()?,
        last_status: cells.take()?,
        next_attempt_at: cells.take()?,
        lease: cells.take()?,
        created_at: cells.take()?,
    })
}

pub(crate) fn read_attempt(cells: &mut Cells<'_>) -> Result<AttemptLog, StoreError> {
    Ok(AttemptLog {
        attempt: cells.take()?,
        started_at: cells.take()?,
        duration_ms: cells.take()?,
        status: cells.take()?,
        error: cells.take()?,
        response_body: cells.take()?,
        response_truncated: cells.take()?,
        remote_addr: cells.take()?,
    })
}

pub(crate) fn read_replay(cells: &mut Cells<'_>) -> Result<Replay, StoreError> {
    Ok(Replay {
        id: cells.take()?,
        tenant_id: cells.take()?,
        subscription_id: cells.take()?,
        since: cells.take()?,
        until: cells.take()?,
        statuses: cells.take()?,
        missed: cells.take()?,
        position: cells.take()?,
        stepped_at: cells.take()?,
        replayed: cells.take()?,
        created_at: cells.take()?,
        finished_at: cells.take()?,
    })
}

/// The list that a filter asks for. Ids sort like the times of their events, so a span of time is one of ids.
fn list_statement(tenant: TenantId, filter: &DeliveryFilter) -> (String, Vec<Param<'static>>) {
    let mut sql = LIST.to_owned();
    let mut params = vec![Param::Uuid(tenant.0)];
    // No two events of a tenant share a microsecond.
    let of_event = filter.event_id.map(env::time_of_id);
    let since = filter.since.max(of_event);
    let until = [filter.until, of_event.map(Timestamp::next)].into_iter().flatten().min();
    let conditions = [
        ("subscription_id =", filter.subscription_id.map(Param::Uuid)),
        ("event_id =", filter.event_id.map(Param::Uuid)),
        ("state =", filter.status.map(|state| state.as_str().into())),
        ("kind =", filter.kind.map(|kind| kind.as_str().into())),
        ("id >=", since.map(|since| Param::Uuid(env::first_id_at(since)))),
        ("id <", until.map(|until| Param::Uuid(env::first_id_at(until)))),
    ];
    for (condition, value) in conditions {
        if let Some(value) = value {
            params.push(value);
            let _ = write!(sql, " AND {condition} ${}", params.len());
        }
    }
    params.push(Param::Int(if filter.limit == 0 { i64::MAX } else { i64::from(filter.limit) }));
    let order = if filter.oldest_first { "id" } else { "id DESC" };
    let _ = write!(sql, " ORDER BY {order} LIMIT ${}", params.len());
    (sql, params)
}

#[async_trait]
impl DeliveryStore for SqlTx<'_> {
    async fn insert_delivery(&mut self, delivery: &Delivery) -> Result<(), StoreError> {
        let params = [
            delivery.tenant_id.param(),
            delivery.id.param(),
            delivery.event_id.param(),
            delivery.kind.param(),
            delivery.subscription_id.param(),
            delivery.status.param(),
            delivery.attempts.param(),
            delivery.failures.param(),
            delivery.last_status.param(),
            delivery.next_attempt_at.param(),
            delivery.lease.param(),
            delivery.created_at.param(),
        ];
        self.pipeline(INSERT, &params).await?;
        match delivery.next_attempt_at {
            Some(due) => self.schedule_endpoint_by(delivery.tenant_id, delivery.subscription_id, due).await,
            None => Ok(()),
        }
    }

    async fn delivery(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Delivery>, StoreError> {
        self.fetch_one(GET, &[tenant.param(), id.param()], TABLE, read).await
    }

    async fn deliveries(&mut self, tenant: TenantId, ids: &[Uuid]) -> Result<Vec<Delivery>, StoreError> {
        let mut found = Vec::with_capacity(ids.len());
        for ids in ids.chunks(4) {
            // What is missing is asked for twice.
            let id = |n: usize| Param::Uuid(ids.get(n).or(ids.last()).copied().unwrap_or_default());
            found.extend(self.fetch(BY_IDS, &[tenant.param(), id(0), id(1), id(2), id(3)], TABLE, read).await?);
        }
        Ok(found)
    }

    async fn update_delivery(&mut self, delivery: &Delivery, lease: Option<Uuid>) -> Result<(), StoreError> {
        let params = [
            delivery.status.param(),
            delivery.attempts.param(),
            delivery.failures.param(),
            delivery.last_status.param(),
            delivery.next_attempt_at.param(),
            delivery.lease.param(),
            delivery.tenant_id.param(),
            delivery.id.param(),
            lease.param(),
        ];
        self.pipeline(UPDATE, &params).await
    }

    async fn list_deliveries(
        &mut self,
        tenant: TenantId,
        filter: &DeliveryFilter,
    ) -> Result<Vec<Delivery>, StoreError> {
        let (sql, params) = list_statement(tenant, filter);
        self.fetch(&sql, &params, TABLE, read).await
    }

    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        now: Timestamp,
        limit: u32,
    ) -> Result<Vec<(Delivery, Event)>, StoreError> {
        let params = [tenant.param(), subscription.param(), now.param(), limit.param()];
        let read = |cells: &mut Cells<'_>| Ok((read(cells)?, read_event(cells)?));
        self.fetch(DUE, &params, TABLE, read).await
    }

    async fn next_due(&mut self, tenant: TenantId, subscription: Uuid) -> Result<Option<Timestamp>, StoreError> {
        self.fetch_one(NEXT_DUE, &[tenant.param(), subscription.param()], TABLE, |cells| cells.take()).await
    }

    async fn hold_deliveries(&mut self, tenant: TenantId, subscription: Uuid) -> Result<(), StoreError> {
        self.pipeline(HOLD, &[tenant.param(), subscription.param()]).await
    }

    async fn due_endpoints(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, Uuid)>, StoreError> {
        let read = |cells: &mut Cells<'_>| Ok((cells.take()?, cells.take()?));
        self.fetch(TURNS, &[now.param(), limit.param()], "turns", read).await
    }

    async fn next_endpoint_due(&mut self) -> Result<Option<Timestamp>, StoreError> {
        self.fetch_one(FIRST_TURN, &[], "turns", |cells| cells.take()).await
    }

    async fn schedule_endpoint(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        at: Option<Timestamp>,
    ) -> Result<(), StoreError> {
        let (tenant, subscription) = (tenant.param(), subscription.param());
        match at {
            Some(at) => self.pipeline(SET_TURN, &[tenant, subscription, at.param()]).await,
            None => self.pipeline(DROP_TURN, &[tenant, subscription]).await,
        }
    }

    async fn schedule_endpoint_by(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.pipeline(BRING_TURN_FORWARD, &[tenant.param(), subscription.param(), at.param()]).await?;
        self.delivery_wakeup.mark();
        Ok(())
    }

    async fn insert_attempt(&mut self, tenant: TenantId, delivery: Uuid, log: &AttemptLog) -> Result<(), StoreError> {
        let params = [
            tenant.param(),
            delivery.param(),
            log.attempt.param(),
            log.started_at.param(),
            log.duration_ms.param(),
            log.status.param(),
            log.error.param(),
            log.response_body.param(),
            log.response_truncated.param(),
            log.remote_addr.param(),
        ];
        self.pipeline(INSERT_ATTEMPT, &params).await
    }

    async fn attempts(&mut self, tenant: TenantId, delivery: Uuid) -> Result<Vec<AttemptLog>, StoreError> {
        self.fetch(ATTEMPTS, &[tenant.param(), delivery.param()], "delivery_attempts", read_attempt).await
    }

    async fn attempt_summaries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<AttemptSummary>, StoreError> {
        let span = [env::first_id_at(since), env::first_id_at(until)];
        let params = [tenant.param(), subscription.param(), span[0].param(), span[1].param()];
        let read = |cells: &mut Cells<'_>| {
            Ok(AttemptSummary { status: cells.take()?, failed: cells.take()?, duration_ms: cells.take()? })
        };
        self.fetch(ATTEMPT_SUMMARIES, &params, "delivery_attempts", read).await
    }

    async fn count_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: Uuid,
        state: DeliveryStatus,
    ) -> Result<u64, StoreError> {
        let params = [tenant.param(), subscription.param(), state.param()];
        let count = self.fetch_one(COUNT, &params, TABLE, |cells| cells.take()).await?;
        Ok(count.unwrap_or_default())
    }

    async fn backlog(&mut self, state: DeliveryStatus) -> Result<Backlog, StoreError> {
        let sql = match state {
            DeliveryStatus::Pending => PENDING,
            DeliveryStatus::Failed => FAILED,
            DeliveryStatus::Held => HELD,
            DeliveryStatus::Succeeded => return Ok(Backlog::default()),
        };
        let read = |cells: &mut Cells<'_>| Ok(Backlog { deliveries: cells.take()?, oldest: cells.take()? });
        Ok(self.fetch_one(sql, &[Param::Int(BACKLOG_COUNTED.into())], TABLE, read).await?.unwrap_or_default())
    }

    async fn insert_replay(&mut self, replay: &Replay) -> Result<(), StoreError> {
        self.delivery_wakeup.mark();
        let params = [
            replay.tenant_id.param(),
            replay.id.param(),
            replay.subscription_id.param(),
            replay.since.param(),
            replay.until.param(),
            replay.statuses.param(),
            replay.missed.param(),
            replay.position.param(),
            replay.stepped_at.param(),
            replay.replayed.param(),
            replay.created_at.param(),
            replay.finished_at.param(),
        ];
        self.pipeline(INSERT_REPLAY, &params).await
    }

    async fn replay(&mut self, tenant: TenantId, id: Uuid) -> Result<Option<Replay>, StoreError> {
        self.fetch_one(REPLAY, &[tenant.param(), id.param()], "replays", read_replay).await
    }

    async fn replays(&mut self, tenant: TenantId, limit: u32) -> Result<Vec<Replay>, StoreError> {
        self.fetch(REPLAYS, &[tenant.param(), limit.param()], "replays", read_replay).await
    }

    async fn unfinished_replay(&mut self, tenant: TenantId) -> Result<Option<Replay>, StoreError> {
        self.fetch_one(UNFINISHED_REPLAY, &[tenant.param()], "replays", read_replay).await
    }

    async fn tenants_with_replays(&mut self, limit: u32) -> Result<Vec<TenantId>, StoreError> {
        self.fetch(REPLAYING, &[limit.param()], "replays", |cells| cells.take()).await
    }

    async fn update_replay(&mut self, replay: &Replay) -> Result<(), StoreError> {
        let params = [
            replay.position.param(),
            replay.stepped_at.param(),
            replay.replayed.param(),
            replay.finished_at.param(),
            replay.tenant_id.param(),
            replay.id.param(),
        ];
        self.pipeline(UPDATE_REPLAY, &params).await
    }

    async fn update_delivery_state(
        &mut self,
        tenant: TenantId,
        subscription: &WebhookSubscription,
    ) -> Result<(), StoreError> {
        let params = [
            subscription.last_delivery_at.param(),
            subscription.last_delivery_status.param(),
            subscription.consecutive_failures.param(),
            tenant.param(),
            subscription.id.param(),
        ];
        self.pipeline(NOTE_OUTCOME, &params).await
    }
}
