//! The rows about requests.

use async_trait::async_trait;

use super::{MemoryTx, insert, of_tenant};
use crate::accounts::idempotency::StoredResponse;
use crate::requests::ApiRequest;
use crate::store::{IdempotencyRepository, RequestLogRepository, StoreResult};
use crate::values::{TenantId, Timestamp};

#[async_trait]
impl IdempotencyRepository for MemoryTx<'_> {
    async fn claim_idempotency(&mut self, _tenant: TenantId, _key: &str) -> StoreResult<bool> {
        Ok(true)
    }

    async fn stored_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        after: Timestamp,
    ) -> StoreResult<Option<StoredResponse>> {
        let response = self.state.responses.get(&(tenant, key.to_owned()));
        Ok(response.filter(|response| response.created_at > after).cloned())
    }

    async fn store_response(&mut self, tenant: TenantId, key: &str, response: &StoredResponse) -> StoreResult<()> {
        self.state_mut()?.responses.put((tenant, key.to_owned()), response.clone());
        Ok(())
    }
}

#[async_trait]
impl RequestLogRepository for MemoryTx<'_> {
    async fn insert_requests(&mut self, requests: &[ApiRequest]) -> StoreResult<()> {
        let state = self.state_mut()?;
        requests.iter().try_for_each(|row| insert(&mut state.request_log, (row.tenant_id, row.id), row))
    }

    async fn logged_requests(
        &mut self,
        tenant: TenantId,
        since: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<ApiRequest>> {
        let requests = of_tenant(&self.state.request_log, tenant).rev().filter(|row| row.started_at >= since);
        Ok(requests.take(limit as usize).cloned().collect())
    }

    async fn delete_surplus_requests(&mut self, tenant: TenantId, keep: u32) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let surplus = of_tenant(&state.request_log, tenant).rev().skip(keep as usize);
        let surplus: Vec<_> = surplus.map(|row| (tenant, row.id)).collect();
        surplus.iter().for_each(|key| state.request_log.take(key));
        Ok(surplus.len() as u64)
    }

    async fn delete_requests_before(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let mut expired: Vec<_> = state.request_log.values().filter(|row| row.started_at < before).collect();
        expired.sort_by_key(|row| row.id);
        let expired: Vec<_> = expired.iter().take(limit as usize).map(|row| (row.tenant_id, row.id)).collect();
        expired.iter().for_each(|key| state.request_log.take(key));
        Ok(expired.len() as u64)
    }
}
