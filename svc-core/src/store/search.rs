//! The texts by which records are found.

use async_trait::async_trait;
use uuid::Uuid;

use super::StoreResult;
use crate::values::{RecordKind, TenantId, Timestamp};

/// The text of a record in the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexedText {
    /// The kind of the record.
    pub kind: RecordKind,
    /// The id of the record.
    pub id: Uuid,
    /// When the record last changed.
    pub changed_at: Timestamp,
    /// Its searched fields in the form in which they are compared, a line each, of which the first is what people call it.
    /// Empty if it is not to be found.
    pub text: String,
}

/// The index of [`find`](crate::find): a text for each record, and the time until which it has all changes.
#[async_trait]
pub trait SearchRepository: Send {
    /// Returns the time until which the index has all changes of a tenant, or `None` if it has none.
    async fn indexed_until(&mut self, tenant: TenantId) -> StoreResult<Option<Timestamp>>;

    /// Stores the texts of records in place of those that they had, and the time until which the index has all changes. An
    /// empty text removes the record from the index.
    async fn store_texts(&mut self, tenant: TenantId, texts: &[IndexedText], until: Timestamp) -> StoreResult<()>;

    /// Returns the first `limit` records of a tenant whose text contains `text`, of one kind or of all, those that entered the
    /// index last first. `text` has at least [`MIN_TEXT`](crate::find::MIN_TEXT) characters, is in the form of the index, and is no pattern: every
    /// character stands for itself.
    async fn records_with_text(
        &mut self,
        tenant: TenantId,
        kind: Option<RecordKind>,
        text: &str,
        limit: u32,
    ) -> StoreResult<Vec<(RecordKind, Uuid)>>;

    /// Returns at most `limit` tenants after the tenant `after`, or of all, whose clock is not the time until which the index
    /// has their changes, in the order of their ids.
    async fn tenants_to_index(&mut self, after: Option<TenantId>, limit: u32) -> StoreResult<Vec<TenantId>>;
}
