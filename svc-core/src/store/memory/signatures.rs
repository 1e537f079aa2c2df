//! Request signatures that were used.

use async_trait::async_trait;

use super::MemoryTx;
use crate::accounts::keys::KeyId;
use crate::error::StoreError;
use crate::store::UsedSignatureRepository;
use crate::values::Timestamp;

#[async_trait]
impl UsedSignatureRepository for MemoryTx<'_> {
    async fn claim_signature(
        &mut self,
        key_id: KeyId,
        mac: &[u8; 32],
        expires_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let state = self.state_mut()?;
        let is_new = state.used_signatures.add((key_id, *mac), expires_at);
        let deleted_until = state.signatures_deleted_until.get(&key_id);
        Ok(is_new && deleted_until.is_none_or(|until| *until < expires_at))
    }
}
