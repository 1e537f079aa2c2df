//! Request signatures that were used.

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::StoreError;
use crate::values::Timestamp;

/// Request signatures that were used, each of which is accepted once.
#[async_trait]
pub trait UsedSignatureRepository: Send {
    /// Marks a request signature of a key as used until `expires_at`. `false` when it was used before, or may have been:
    /// when a used signature of the key that expired then or later has been deleted. That happens only after the clock was
    /// set back, as signatures are deleted when they have expired.
    async fn claim_signature(
        &mut self,
        key_id: Uuid,
        mac: &[u8; 32],
        expires_at: Timestamp,
    ) -> Result<bool, StoreError>;
}
