//! One connection for work on a whole database, beside the store's own.

use async_trait::async_trait;
use svc_core::error::StoreError;
use svc_core::store::Access;

use crate::dialect::Dialect;
use crate::sql::Sql;

/// A connection whose transactions may be as long as they need. After a failure it is of no more use.
#[async_trait]
pub(crate) trait MaintenanceConnection: Send {
    fn dialect(&self) -> Dialect;

    /// Begins a transaction; one that reads sees one state of the database throughout.
    async fn begin(&mut self, access: Access) -> Result<Box<dyn Transaction + '_>, StoreError>;
}

/// A transaction, undone unless it is committed.
#[async_trait]
pub(crate) trait Transaction: Sql {
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}
