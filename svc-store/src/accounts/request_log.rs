//! The table of the request log.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::env;
use svc_core::requests::ApiRequest;
use svc_core::store::{RequestLogRepository, StoreResult};
use svc_core::values::{TenantId, Timestamp};

use crate::column::Column as _;
use crate::dialect::Dialect;
use crate::sql::SqlTx;
use crate::table::{BulkInsert, TableRow, record, select};

record!(ApiRequest, "request_log", key: [tenant_id, id], {
    inserted: [id, tenant_id, request_id, key_id, method, path, query, status, code,
        failing_fields, started_at, duration_us, events, first_event_id, last_event_id],
    updated: [],
});

static INSERT: LazyLock<BulkInsert> = LazyLock::new(|| BulkInsert::of::<ApiRequest>(""));
static LIST: LazyLock<String> =
    LazyLock::new(|| select::<ApiRequest>("WHERE tenant_id = $1 AND id >= $2 ORDER BY id DESC LIMIT $3"));
const DELETE_SURPLUS: &str = "DELETE FROM request_log WHERE tenant_id = $1 AND id <= \
     (SELECT id FROM request_log WHERE tenant_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)";
const DELETE_BEFORE: &str =
    "DELETE FROM request_log WHERE id IN (SELECT id FROM request_log WHERE id < $1 ORDER BY id LIMIT $2)";

/// Deletes rows that are in no partition which is dropped as a whole.
const POSTGRES_DELETE_BEFORE: &str = "DELETE FROM request_log_kept WHERE (tenant_id, id) IN \
     (SELECT tenant_id, id FROM request_log_kept WHERE id < $1 LIMIT $2)";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let mut all: Vec<&str> = vec![&LIST, DELETE_SURPLUS];
    all.extend(INSERT.all());
    all
}

/// Returns the statement that only this database gets.
pub(crate) const fn delete_before(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Sqlite => DELETE_BEFORE,
        Dialect::Postgres => POSTGRES_DELETE_BEFORE,
    }
}

#[async_trait]
impl RequestLogRepository for SqlTx<'_> {
    async fn insert_requests(&mut self, requests: &[ApiRequest]) -> StoreResult<()> {
        self.insert_records(&INSERT, requests).await
    }

    async fn logged_requests(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<ApiRequest>> {
        let first = env::first_id_at(since);
        self.fetch(&LIST, &[tenant.param(), first.param(), limit.param()], ApiRequest::read).await
    }

    async fn delete_surplus_requests(&mut self, tenant: TenantId, keep: u32) -> StoreResult<u64> {
        self.execute(DELETE_SURPLUS, &[tenant.param(), keep.param()]).await
    }

    async fn delete_requests_before(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let end = env::first_id_at(before);
        self.execute(delete_before(self.dialect), &[end.param(), limit.param()]).await
    }
}
