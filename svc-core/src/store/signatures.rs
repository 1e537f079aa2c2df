//! The repository of used request signatures.

use async_trait::async_trait;

use crate::accounts::keys::KeyId;
use crate::error::StoreError;
use crate::values::Timestamp;

/// The request signatures that were accepted. Each is accepted only once.
#[async_trait]
pub trait UsedSignatureRepository: Send {
    /// Marks a request signature of a key as used until `expires_at`. Returns `false` if it was used before, or may have
    /// been: if a used signature of the key that expired then or later has been deleted. That happens only after the clock
    /// was set back, because signatures are deleted when they have expired.
    async fn claim_signature(
        &mut self,
        key_id: KeyId,
        mac: &[u8; 32],
        expires_at: Timestamp,
    ) -> Result<bool, StoreError>;
}
