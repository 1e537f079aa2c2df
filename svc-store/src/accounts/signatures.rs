//! The table of request signatures that were used.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::keys::KeyId;
use svc_core::store::{StoreResult, UsedSignatureRepository};
use svc_core::values::Timestamp;

use crate::column::{CellError, Column as _};
use crate::sql::{Cells, SqlTx};
use crate::table::{TableRow, insert_params, record};

/// A request signature that was used.
pub(crate) struct UsedSignature {
    key_id: KeyId,
    mac: [u8; 32],
    expires_at: Timestamp,
}

record!(UsedSignature, "used_signatures", key: [key_id, mac], {
    inserted: [key_id, mac, expires_at],
    updated: [],
});

static CLAIM: LazyLock<String> =
    LazyLock::new(|| format!("{} ON CONFLICT DO NOTHING", UsedSignature::statements().insert));
const DELETE_EXPIRED: &str = "DELETE FROM used_signatures WHERE (key_id, mac) IN \
     (SELECT key_id, mac FROM used_signatures WHERE expires_at < $1 ORDER BY expires_at LIMIT $2) \
     RETURNING key_id, expires_at";
const SET_DELETED_UNTIL: &str = "UPDATE api_keys SET signatures_deleted_until = $1 \
     WHERE id = $2 AND (signatures_deleted_until IS NULL OR signatures_deleted_until < $1)";
const IS_DELETED: &str = "SELECT 1 FROM api_keys WHERE id = $1 AND signatures_deleted_until >= $2";

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    vec![&CLAIM, DELETE_EXPIRED, SET_DELETED_UNTIL, IS_DELETED]
}

#[async_trait]
impl UsedSignatureRepository for SqlTx<'_> {
    async fn claim_signature(&mut self, key_id: KeyId, mac: &[u8; 32], expires_at: Timestamp) -> StoreResult<bool> {
        let signature = UsedSignature { key_id, mac: *mac, expires_at };
        // Asked after the insertion, which waits for a transaction that deletes the same signature.
        Ok(self.execute(&CLAIM, &insert_params(&[], &signature)).await? == 1
            && !self.may_be_deleted(key_id, expires_at).await?)
    }
}

impl SqlTx<'_> {
    /// Returns whether a used signature of a key could have been deleted that expires at `expires_at`.
    async fn may_be_deleted(&mut self, key_id: KeyId, expires_at: Timestamp) -> StoreResult<bool> {
        let params = [key_id.param(), expires_at.param()];
        Ok(self.fetch_one(IS_DELETED, &params, |cells| cells.take::<i64>("api_keys", "id")).await?.is_some())
    }

    /// Deletes at most `limit` signatures that expired before `now`, and records until when each key's are deleted.
    pub(crate) async fn delete_expired_signatures(&mut self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        let read = |cells: &mut Cells<'_>| -> Result<(KeyId, Timestamp), CellError> {
            Ok((cells.take("used_signatures", "key_id")?, cells.take("used_signatures", "expires_at")?))
        };
        let deleted = self.fetch(DELETE_EXPIRED, &[now.param(), limit.param()], read).await?;
        // In the order of the keys, so that two nodes never deadlock.
        let mut deleted_until = BTreeMap::new();
        for (key_id, expires_at) in &deleted {
            let until = deleted_until.entry(*key_id).or_insert(*expires_at);
            *until = (*until).max(*expires_at);
        }
        for (key_id, until) in &deleted_until {
            self.pipeline(SET_DELETED_UNTIL, &[until.param(), key_id.param()]).await?;
        }
        Ok(deleted.len() as u64)
    }
}
