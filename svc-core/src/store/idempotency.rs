//! Idempotency keys and the responses that are stored under them.

use async_trait::async_trait;

use crate::accounts::idempotency::StoredResponse;
use crate::error::StoreError;
use crate::values::{TenantId, Timestamp};

/// Idempotency keys and the responses that are stored under them.
#[async_trait]
pub trait IdempotencyRepository: Send {
    /// Claims an idempotency key until the transaction ends. Returns `false` if another transaction holds the claim.
    ///
    /// A store that runs one write transaction after the other always returns `true`.
    async fn claim_idempotency(&mut self, tenant: TenantId, key: &str) -> Result<bool, StoreError>;

    /// Returns the response that was stored under an idempotency key after `after`.
    async fn stored_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        after: Timestamp,
    ) -> Result<Option<StoredResponse>, StoreError>;

    /// Stores a response under an idempotency key, in place of an older one.
    async fn store_response(
        &mut self,
        tenant: TenantId,
        key: &str,
        response: &StoredResponse,
    ) -> Result<(), StoreError>;
}
