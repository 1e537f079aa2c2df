//! The table of idempotency keys and the responses that are stored under them.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::idempotency::StoredResponse;
use svc_core::crypto::sha256;
use svc_core::store::{IdempotencyRepository, StoreResult};
use svc_core::values::{TenantId, Timestamp};

use crate::column::{Column as _, Param};
use crate::sql::SqlTx;
use crate::table::{TableRow, insert_params, record, upsert};

record!(StoredResponse, "idempotency", key: [tenant_id, key], {
    extra: [tenant_id: TenantId, key: String],
    inserted: [],
    updated: [fingerprint, status, location, etag, body, created_at],
});

static GET: LazyLock<String> = LazyLock::new(|| format!("{} AND created_at > $3", StoredResponse::statements().get));
static STORE: LazyLock<String> = LazyLock::new(upsert::<StoredResponse>);
pub(crate) const DELETE_EXPIRED: &str = "DELETE FROM idempotency WHERE (tenant_id, key) IN \
     (SELECT tenant_id, key FROM idempotency WHERE created_at < $1 ORDER BY created_at LIMIT $2)";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&GET, &STORE, DELETE_EXPIRED]
}

#[async_trait]
impl IdempotencyRepository for SqlTx<'_> {
    async fn claim_idempotency(&mut self, tenant: TenantId, key: &str) -> StoreResult<bool> {
        let Some(claim) = self.dialect.claim() else { return Ok(true) };
        // Two keys share a number once in 2^64. Then one of two concurrent requests waits without need.
        let digest = sha256(&[tenant.0.as_bytes(), key.as_bytes()].concat());
        let number = digest.first_chunk().copied().map_or(0, i64::from_be_bytes);
        let claimed = self.fetch_one(claim, &[Param::Int(number)], |cells| cells.take("idempotency", "key")).await?;
        Ok(claimed.unwrap_or(false))
    }

    async fn stored_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        after: Timestamp,
    ) -> StoreResult<Option<StoredResponse>> {
        let params = [tenant.param(), Param::Text(key.into()), after.param()];
        self.fetch_one(&GET, &params, StoredResponse::read).await
    }

    async fn store_response(&mut self, tenant: TenantId, key: &str, response: &StoredResponse) -> StoreResult<()> {
        let params = insert_params(&[tenant.param(), Param::Text(key.into())], response);
        self.pipeline(&STORE, &params).await
    }
}
