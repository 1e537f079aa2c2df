//! The table of deliveries.

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::env;
use svc_core::store::{DeliveryFilter, DeliveryRepository, DueDelivery, Endpoint, StoreResult, WaitingFor};
use svc_core::values::{Id, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{Backlog, Delivery, DeliveryId, DeliveryStatus, FailureReason, MAX_BACKLOG_COUNT};
use svc_core::webhooks::events::Event;
use svc_core::webhooks::subscriptions::SubscriptionId;
use uuid::Uuid;

use crate::column::{Column as _, Param};
use crate::dialect::Dialect;
use crate::sql::{Cells, SqlTx};
use crate::table::{BulkInsert, TableRow, fields, record, select};

const TABLE: &str = "deliveries";

record!(Delivery, "deliveries", key: [tenant_id, id], {
    inserted: [id, tenant_id, event_id, kind, subscription_id, created_at, order_key],
    updated: [status, attempts, failures, last_status, next_attempt_at, lease, failure_reason],
});

static INSERT: LazyLock<BulkInsert> = LazyLock::new(|| BulkInsert::of::<Delivery>(""));
/// `IS NOT DISTINCT FROM` is true for two nulls, which are a delivery without a lease.
static UPDATE: LazyLock<String> = LazyLock::new(|| {
    let lease = Delivery::UPDATED.len() + Delivery::KEY.len() + 1;
    format!("{} AND lease IS NOT DISTINCT FROM ${lease}", Delivery::statements().update)
});
/// Only what a claim changes: SQLite also looks at every index of a column that is set to the value that it has.
const CLAIM: &str = "UPDATE deliveries SET attempts = $1, next_attempt_at = $2, lease = $3 \
     WHERE tenant_id = $4 AND id = $5 AND lease IS NOT DISTINCT FROM $6";
static DUE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, {}, (SELECT sandbox_of FROM tenants WHERE id = $1) \
         FROM deliveries d JOIN events e ON e.tenant_id = d.tenant_id AND e.id = d.event_id \
         WHERE d.tenant_id = $1 AND d.subscription_id = $2 AND d.status = 'pending' AND d.next_attempt_at <= $3 \
         ORDER BY d.next_attempt_at LIMIT $4",
        fields::<Delivery>("d."),
        fields::<Event>("e."),
    )
});
/// The conditions of the two indexes that have the deliveries of an endpoint: the pending ones, and those that have ended.
pub(super) const BY_ENDPOINT: [&str; 2] = ["next_attempt_at IS NOT NULL", "next_attempt_at IS NULL"];
/// Four ids at a time, so that one statement serves any number of them. On PostgreSQL only, where it saves round trips: SQLite
/// makes a table of an `IN`, which costs more than a search by the key.
static BY_IDS: LazyLock<String> =
    LazyLock::new(|| select::<Delivery>("WHERE tenant_id = $1 AND id IN ($2, $3, $4, $5)"));
const FIRST_ORDERED: &str = "SELECT id FROM deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND order_key = $3 \
     AND next_attempt_at IS NOT NULL ORDER BY id LIMIT 1";
const IN_FLIGHT: &str = "SELECT count(*) FROM deliveries WHERE tenant_id = $1 AND subscription_id = $2 \
     AND status = 'pending' AND next_attempt_at >= $3 AND next_attempt_at < $4 AND lease IS NOT NULL";
const NEXT_DUE: &str = "SELECT next_attempt_at FROM deliveries \
     WHERE tenant_id = $1 AND subscription_id = $2 AND status = 'pending' ORDER BY next_attempt_at LIMIT 1";
/// The conditions are those of [`WaitingFor::of`].
static BRING_FORWARD: LazyLock<[String; 3]> = LazyLock::new(|| {
    let backpressure = "failures > 0 AND last_status IN (429, 503)";
    [
        "lease IS NOT NULL".to_owned(),
        format!("lease IS NULL AND failures = $4 AND NOT ({backpressure})"),
        format!("lease IS NULL AND {backpressure}"),
    ]
    .map(|waiting| {
        format!(
            "UPDATE deliveries SET next_attempt_at = $1 \
             WHERE tenant_id = $2 AND subscription_id = $3 AND status = 'pending' AND next_attempt_at > $1 AND {waiting}"
        )
    })
});
const HOLD: &str = "UPDATE deliveries SET status = 'held', next_attempt_at = NULL WHERE tenant_id = $1 AND id IN \
     (SELECT id FROM deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND status = 'pending' \
     AND id < $3 ORDER BY next_attempt_at LIMIT $4)";
// One statement for each status, which has it as a literal, so that a partial index serves it.
const FAIL_PENDING: &str = "UPDATE deliveries SET status = 'failed', failure_reason = $1, next_attempt_at = NULL \
     WHERE tenant_id = $2 AND id IN (SELECT id FROM deliveries \
     WHERE tenant_id = $2 AND subscription_id = $3 AND status = 'pending' ORDER BY next_attempt_at LIMIT $4)";
const FAIL_HELD: &str = "UPDATE deliveries SET status = 'failed', failure_reason = $1 \
     WHERE tenant_id = $2 AND id IN (SELECT id FROM deliveries \
     WHERE tenant_id = $2 AND subscription_id = $3 AND status = 'held' ORDER BY id LIMIT $4)";
const COUNT_PENDING: &str = "SELECT count(*) FROM (SELECT 1 FROM deliveries \
     WHERE tenant_id = $1 AND subscription_id = $2 AND status = 'pending' LIMIT $3) AS counted";
const COUNT_FAILED: &str = "SELECT count(*) FROM (SELECT 1 FROM deliveries \
     WHERE tenant_id = $1 AND subscription_id = $2 AND status = 'failed' LIMIT $3) AS counted";
const COUNT_HELD: &str = "SELECT count(*) FROM (SELECT 1 FROM deliveries \
     WHERE tenant_id = $1 AND subscription_id = $2 AND status = 'held' LIMIT $3) AS counted";
// These have the status as a literal, so that partial indexes serve them. Pending deliveries are not sorted, as that would
// read all of them.
const PENDING: &str = "SELECT count(*), min(created_at) FROM \
     (SELECT created_at FROM deliveries WHERE status = 'pending' LIMIT $1) AS counted";
const FAILED: &str = "SELECT count(*), min(created_at) FROM \
     (SELECT created_at FROM deliveries WHERE status = 'failed' \
     AND tenant_id NOT IN (SELECT id FROM tenants WHERE sandbox_of IS NOT NULL) ORDER BY created_at LIMIT $1) AS counted";
const HELD: &str = "SELECT count(*), min(created_at) FROM \
     (SELECT created_at FROM deliveries WHERE status = 'held' \
     AND tenant_id NOT IN (SELECT id FROM tenants WHERE sandbox_of IS NOT NULL) ORDER BY created_at LIMIT $1) AS counted";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let mut all: Vec<&str> = vec![
        &UPDATE,
        CLAIM,
        &DUE,
        &BY_IDS,
        NEXT_DUE,
        FIRST_ORDERED,
        IN_FLIGHT,
        HOLD,
        FAIL_PENDING,
        FAIL_HELD,
        COUNT_PENDING,
        COUNT_FAILED,
        COUNT_HELD,
        PENDING,
        FAILED,
        HELD,
    ];
    all.extend(INSERT.all());
    all.extend(BRING_FORWARD.iter().map(String::as_str));
    all
}

/// The statements of [`DeliveryRepository::backlog`], and the indexes that serve them.
#[cfg(test)]
pub(crate) const BACKLOGS: [(&str, &str); 3] =
    [(PENDING, "deliveries_due"), (FAILED, "deliveries_stopped"), (HELD, "deliveries_stopped")];

/// A list of deliveries, and the indexes that serve it on both databases.
#[cfg(test)]
pub(crate) struct List {
    pub(crate) sql: String,
    /// None of a list that the key of the table serves.
    pub(crate) indexes: &'static [&'static str],
}

/// Lists of one endpoint or of one tenant, as [`list_statement`], [`nth_statement`], [`count_statement`] and [`next_ids`] build
/// them.
#[cfg(test)]
pub(crate) fn lists(dialect: Dialect, subscription_id: Option<SubscriptionId>) -> Vec<List> {
    let (stopped, all): (&[_], &[_]) = match subscription_id {
        Some(_) => (
            &["deliveries_stopped_of_subscription"],
            &["deliveries_pending_of_subscription", "deliveries_ended_of_subscription"],
        ),
        None => (&["deliveries_stopped_of_tenant"], &[]),
    };
    let tenant = TenantId(Uuid::nil());
    let mut lists = Vec::new();
    for status in std::iter::once(None).chain(DeliveryStatus::ALL.iter().copied().map(Some)) {
        for time in [None, Some(Timestamp::from_micros(1))] {
            let filter = DeliveryFilter {
                subscription_id,
                status,
                since: time,
                until: time,
                oldest_first: time.is_some(),
                ..DeliveryFilter::default()
            };
            let indexes = if filter.indexed_status().is_some() { stopped } else { all };
            lists.push(List { sql: list_statement(dialect, tenant, &filter).0, indexes });
            lists.push(List { sql: nth_statement(dialect, tenant, &filter, 1).0, indexes });
            lists.push(List { sql: count_statement(dialect, tenant, &filter).0, indexes });
        }
    }
    if subscription_id.is_some() {
        lists.push(List { sql: next_ids(dialect), indexes: all });
    }
    lists
}

/// Returns the list that a filter selects. Ids sort like the times of their events, so a time range is a range of ids.
fn list_statement(dialect: Dialect, tenant: TenantId, filter: &DeliveryFilter) -> (String, Vec<Param<'static>>) {
    let (mut conditions, mut params) = conditions(tenant, filter);
    // An index that has the status in its condition would not find them in the order of their ids.
    let status = filter.status.filter(|_| filter.indexed_status().is_none());
    let others = [
        ("event_id", filter.event_id.map(|id| Param::Uuid(id.uuid()))),
        ("status", status.map(|status| status.as_str().into())),
        ("kind", filter.kind.map(|kind| Param::Text(kind.to_string().into()))),
    ];
    for (column, value) in others {
        if let Some(value) = value {
            params.push(value);
            let _ = write!(conditions, " AND {column} = ${}", params.len());
        }
    }
    params.push(Param::Int(if filter.limit == 0 { i64::MAX } else { i64::from(filter.limit) }));
    let most = format!("${}", params.len());
    let select = select::<Delivery>(&conditions);
    (from_indexes(dialect, &select, filter, &format!("LIMIT {most}"), &most), params)
}

/// Returns the statement of [`DeliveryRepository::nth_listed`].
fn nth_statement(dialect: Dialect, tenant: TenantId, filter: &DeliveryFilter, n: u32) -> (String, Vec<Param<'static>>) {
    let (conditions, mut params) = conditions(tenant, filter);
    params.push(Param::Int(n.into()));
    let offset = format!("${}", params.len());
    let (limit, most) = (format!("LIMIT 1 OFFSET {offset}"), format!("{offset} + 1"));
    (from_indexes(dialect, &format!("SELECT id FROM {TABLE} {conditions}"), filter, &limit, &most), params)
}

/// Returns the statement of [`DeliveryRepository::count_listed`].
fn count_statement(dialect: Dialect, tenant: TenantId, filter: &DeliveryFilter) -> (String, Vec<Param<'static>>) {
    let (conditions, mut params) = conditions(tenant, filter);
    params.push(Param::Int(filter.limit.into()));
    let most = format!("${}", params.len());
    let select = format!("SELECT id FROM {TABLE} {conditions}");
    let listed = from_indexes(dialect, &select, filter, &format!("LIMIT {most}"), &most);
    (format!("SELECT count(*) FROM ({listed}) AS counted"), params)
}

/// Returns the statement that selects the ids of the first `$4` deliveries of an endpoint after one of them, `$3`.
pub(super) fn next_ids(dialect: Dialect) -> String {
    let select = "SELECT id FROM deliveries WHERE tenant_id = $1 AND subscription_id = $2 AND id > $3";
    let oldest = DeliveryFilter { subscription_id: Some(Id::nil()), oldest_first: true, ..DeliveryFilter::default() };
    from_indexes(dialect, select, &oldest, "LIMIT $4", "$4")
}

/// Returns a list in the order of a filter, from the indexes that have what it selects.
fn from_indexes(dialect: Dialect, select: &str, filter: &DeliveryFilter, limit: &str, most: &str) -> String {
    let order = if filter.oldest_first { "id" } else { "id DESC" };
    match (filter.indexed_status(), filter.subscription_id) {
        // A literal, so that a partial index serves it.
        (Some(status), _) => format!("{select} AND status = '{status}' ORDER BY {order} {limit}"),
        (None, None) => format!("{select} ORDER BY {order} {limit}"),
        (None, Some(_)) => {
            let lists = BY_ENDPOINT.map(|part| format!("{select} AND {part}"));
            dialect.merge(&lists, order, limit, most)
        }
    }
}

/// Returns those conditions of a filter that an index serves, apart from the status.
fn conditions(tenant: TenantId, filter: &DeliveryFilter) -> (String, Vec<Param<'static>>) {
    let mut sql = "WHERE tenant_id = $1".to_owned();
    let mut params = vec![Param::Uuid(tenant.0)];
    // No two events of a tenant share a microsecond.
    let of_event = filter.event_id.map(|id| env::time_of_id(id.uuid()));
    let since = filter.since.max(of_event);
    let until = [filter.until, of_event.map(Timestamp::next)].into_iter().flatten().min();
    let values = [
        ("subscription_id =", filter.subscription_id.map(SubscriptionId::uuid)),
        ("id >=", since.map(env::first_id_at)),
        ("id <", until.map(env::first_id_at)),
    ];
    for (condition, value) in values {
        if let Some(value) = value {
            params.push(Param::Uuid(value));
            let _ = write!(sql, " AND {condition} ${}", params.len());
        }
    }
    (sql, params)
}

#[async_trait]
impl DeliveryRepository for SqlTx<'_> {
    async fn insert_deliveries(&mut self, deliveries: &[Delivery]) -> StoreResult<()> {
        self.insert_records(&INSERT, deliveries).await?;
        let due = deliveries.iter().filter_map(|delivery| {
            let due_at = delivery.next_attempt_at?;
            let endpoint = Endpoint { tenant_id: delivery.tenant_id, subscription_id: delivery.subscription_id };
            Some((endpoint, due_at))
        });
        self.schedule_endpoints_by(due).await
    }

    async fn delivery(&mut self, tenant: TenantId, id: DeliveryId) -> StoreResult<Option<Delivery>> {
        self.get_record(&[tenant.param(), id.param()]).await
    }

    async fn deliveries(&mut self, tenant: TenantId, ids: &[DeliveryId]) -> StoreResult<Vec<Delivery>> {
        let mut found = Vec::with_capacity(ids.len());
        if self.dialect == Dialect::Sqlite {
            for id in ids {
                found.extend(self.delivery(tenant, *id).await?);
            }
            return Ok(found);
        }
        for ids in ids.chunks(4) {
            // The last id fills the places that are left.
            let id = |n: usize| Param::Uuid(ids.get(n).or(ids.last()).copied().unwrap_or_default().uuid());
            let params = [tenant.param(), id(0), id(1), id(2), id(3)];
            found.extend(self.fetch(&BY_IDS, &params, Delivery::read).await?);
        }
        Ok(found)
    }

    async fn update_delivery(&mut self, delivery: &Delivery, lease: Option<Uuid>) -> StoreResult<()> {
        let mut params = delivery.updated_params();
        params.extend([delivery.tenant_id.param(), delivery.id.param(), lease.param()]);
        self.pipeline(&UPDATE, &params).await
    }

    async fn claim_delivery(&mut self, delivery: &Delivery, lease: Option<Uuid>) -> StoreResult<()> {
        let Delivery { attempts, next_attempt_at, lease: new_lease, tenant_id, id, .. } = delivery;
        let (new, old) = ([attempts.param(), next_attempt_at.param(), new_lease.param()], lease.param());
        self.pipeline(CLAIM, &[&new[..], &[tenant_id.param(), id.param(), old]].concat()).await
    }

    async fn list_deliveries(&mut self, tenant: TenantId, filter: &DeliveryFilter) -> StoreResult<Vec<Delivery>> {
        let (sql, params) = list_statement(self.dialect, tenant, filter);
        self.fetch(&sql, &params, Delivery::read).await
    }

    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        now: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<DueDelivery>> {
        let params = [tenant.param(), subscription.param(), now.param(), limit.param()];
        let read = |cells: &mut Cells<'_>| {
            let (delivery, event) = (Delivery::read(cells)?, Event::read(cells)?);
            let is_sandbox = cells.take::<Option<TenantId>>("tenants", "sandbox_of")?.is_some();
            Ok(DueDelivery { delivery, event, is_sandbox })
        };
        self.fetch(&DUE, &params, read).await
    }

    async fn next_delivery_due(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
    ) -> StoreResult<Option<Timestamp>> {
        let params = [tenant.param(), subscription.param()];
        self.fetch_one(NEXT_DUE, &params, |cells| cells.take(TABLE, "next_attempt_at")).await
    }

    async fn first_ordered(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        order_key: Uuid,
    ) -> StoreResult<Option<DeliveryId>> {
        let params = [tenant.param(), subscription.param(), order_key.param()];
        self.fetch_one(FIRST_ORDERED, &params, |cells| cells.take(TABLE, "id")).await
    }

    async fn count_in_flight(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        lease_ends: Range<Timestamp>,
    ) -> StoreResult<u64> {
        let Range { start, end } = lease_ends;
        self.count(IN_FLIGHT, &[tenant.param(), subscription.param(), start.param(), end.param()], TABLE).await
    }

    async fn bring_deliveries_forward(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        waiting: WaitingFor,
        latest: Timestamp,
    ) -> StoreResult<()> {
        let [outcome, attempt, after_backpressure] = &*BRING_FORWARD;
        let mut params = vec![latest.param(), tenant.param(), subscription.param()];
        let sql = match waiting {
            WaitingFor::Outcome => outcome,
            WaitingFor::Attempt { failures } => {
                params.push(Param::Int(failures.into()));
                attempt
            }
            WaitingFor::AttemptAfterBackpressure => after_backpressure,
        };
        self.pipeline(sql, &params).await
    }

    async fn hold_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<u64> {
        let end = env::first_id_at(before);
        self.execute(HOLD, &[tenant.param(), subscription.param(), end.param(), limit.param()]).await
    }

    async fn fail_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        reason: FailureReason,
        limit: u32,
    ) -> StoreResult<u64> {
        let mut failed = 0;
        for sql in [FAIL_PENDING, FAIL_HELD] {
            let left = Param::Int(i64::from(limit) - i64::try_from(failed).unwrap_or(i64::MAX));
            failed += self.execute(sql, &[reason.param(), tenant.param(), subscription.param(), left]).await?;
        }
        Ok(failed)
    }

    async fn nth_listed(
        &mut self,
        tenant: TenantId,
        filter: &DeliveryFilter,
        n: u32,
    ) -> StoreResult<Option<Timestamp>> {
        // The time of the event is in the id, so that no row is read besides the index.
        let (sql, params) = nth_statement(self.dialect, tenant, filter, n);
        let id: Option<Uuid> = self.fetch_one(&sql, &params, |cells| cells.take(TABLE, "id")).await?;
        Ok(id.map(env::time_of_id))
    }

    async fn count_listed(&mut self, tenant: TenantId, filter: &DeliveryFilter) -> StoreResult<u64> {
        let (sql, params) = count_statement(self.dialect, tenant, filter);
        self.count(&sql, &params, TABLE).await
    }

    async fn count_deliveries(
        &mut self,
        tenant: TenantId,
        subscription: SubscriptionId,
        status: DeliveryStatus,
    ) -> StoreResult<u64> {
        let sql = match status {
            DeliveryStatus::Pending => COUNT_PENDING,
            DeliveryStatus::Failed => COUNT_FAILED,
            DeliveryStatus::Held => COUNT_HELD,
            DeliveryStatus::Succeeded => return Ok(0),
        };
        self.count(sql, &[tenant.param(), subscription.param(), MAX_BACKLOG_COUNT.param()], TABLE).await
    }

    async fn backlog(&mut self, status: DeliveryStatus) -> StoreResult<Backlog> {
        let sql = match status {
            DeliveryStatus::Pending => PENDING,
            DeliveryStatus::Failed => FAILED,
            DeliveryStatus::Held => HELD,
            DeliveryStatus::Succeeded => return Ok(Backlog::default()),
        };
        let read = |cells: &mut Cells<'_>| {
            Ok(Backlog { deliveries: cells.take(TABLE, "count(*)")?, oldest: cells.take(TABLE, "created_at")? })
        };
        Ok(self.fetch_one(sql, &[Param::Int(MAX_BACKLOG_COUNT.into())], read).await?.unwrap_or_default())
    }
}
