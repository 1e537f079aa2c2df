//! API keys, beyond what all collections have.

use std::time::Duration;

use svc_core::accounts::keys::KeyId;
use svc_core::platform::{ApiKey, ApiKeyRotation, ApiKeyWithSecret, operations};

use super::Platform;
use crate::collection::Collection;
use crate::error::Result;

impl Collection<ApiKey, Platform> {
    /// Revokes a key, which is refused from the next request on. A revocation cannot be undone. Revoking a revoked key
    /// changes nothing.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn revoke(&self, id: KeyId) -> Result<ApiKey> {
        self.call(&operations::REVOKE_KEY, Some(id.uuid()), &()).await
    }

    /// Creates a key with the settings of this one, which stays valid for the overlap: 24 hours, unless it is given. The
    /// response contains the text of the new key, which no other response does.
    ///
    /// # Errors
    /// `not_found`, `not_allowed` for a key that is revoked or expired, and any other [`Error`](crate::Error).
    pub async fn rotate(&self, id: KeyId, overlap: Option<Duration>) -> Result<ApiKeyWithSecret> {
        let rotation = ApiKeyRotation { overlap: overlap.map(Into::into) };
        self.call(&operations::ROTATE_KEY, Some(id.uuid()), &rotation).await
    }
}
