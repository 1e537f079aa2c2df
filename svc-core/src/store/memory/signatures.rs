//! Request signatures that were used.

use async_trait::async_trait;
use uuid::Uuid;

use super::MemoryTx;
use crate::error::StoreError;
use crate::store::UsedSignatureRepository;
use crate::values::Timestamp;

#[async_trait]
impl UsedSignatureRepository for MemoryTx<'_> {
    async fn claim_signature(
        &mut self,
        key_id: Uuid,
        mac: &[u8; 32],
        expires_at: Timestamp,
    ) -> Result<bool, StoreError> {
        Ok(self.state_mut()?.used_signatures.add((key_id, *mac), expires_at))
    }
}
