//! Idempotency keys and the responses that are stored under them.

use async_trait::async_trait;

use super::MemoryTx;
use crate::accounts::idempotency::StoredResponse;
use crate::error::StoreError;
use crate::store::IdempotencyRepository;
use crate::values::{TenantId, Timestamp};

#[async_trait]
impl IdempotencyRepository for MemoryTx<'_> {
    async fn claim_idempotency(&mut self, _tenant: TenantId, _key: &str) -> Result<bool, StoreError> {
        Ok(true)
    }

    async fn stored_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        after: Timestamp,
    ) -> Result<Option<StoredResponse>, StoreError> {
        let response = self.state.responses.get(&(tenant, key.to_owned()));
        Ok(response.filter(|response| response.created_at > after).cloned())
    }

    async fn store_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        response: &StoredResponse,
    ) -> Result<(), StoreError> {
        self.state_mut()?.responses.put((tenant, key.to_owned()), response.clone());
        Ok(())
    }
}
