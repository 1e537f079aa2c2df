//! The table of request signatures that were used.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::error::StoreError;
use svc_core::store::UsedSignatureRepository;
use svc_core::values::Timestamp;
use uuid::Uuid;

use crate::record::{Record, record};
use crate::sql::{SqlTx, insert_params};

/// A request signature that was used.
pub(crate) struct UsedSignature {
    key_id: Uuid,
    mac: [u8; 32],
    expires_at: Timestamp,
}

record!(UsedSignature, "used_signatures", key: [key_id, mac], {
    inserted: [key_id, mac, expires_at],
    updated: [],
});

static CLAIM: LazyLock<String> =
    LazyLock::new(|| format!("{} ON CONFLICT DO NOTHING", UsedSignature::statements().insert));
pub(crate) const DELETE_EXPIRED: &str = "DELETE FROM used_signatures WHERE (key_id, mac) IN \
     (SELECT key_id, mac FROM used_signatures WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&CLAIM, DELETE_EXPIRED]
}

#[async_trait]
impl UsedSignatureRepository for SqlTx<'_> {
    async fn claim_signature(
        &mut self,
        key_id: Uuid,
        mac: &[u8; 32],
        expires_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let signature = UsedSignature { key_id, mac: *mac, expires_at };
        Ok(self.execute(&CLAIM, &insert_params(&[], &signature)).await? == 1)
    }
}
