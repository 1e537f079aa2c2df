//! Operational events that have not been published yet.

use async_trait::async_trait;

use crate::accounts::operational::{OperationalEvent, OperationalEventId};
use crate::error::StoreError;

/// Operational events that have not been published yet, of all tenants.
#[async_trait]
pub trait OperationalEventRepository: Send {
    /// Adds an event.
    async fn insert_operational_event(&mut self, event: &OperationalEvent) -> Result<(), StoreError>;

    /// Returns the first `limit` events, in the order of their ids.
    async fn operational_events(&mut self, limit: u32) -> Result<Vec<OperationalEvent>, StoreError>;

    /// Deletes an event, which must be there: the transaction fails otherwise.
    async fn delete_operational_event(&mut self, id: OperationalEventId) -> Result<(), StoreError>;
}
