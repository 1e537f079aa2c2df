//! The interface to a connection for maintenance, which both databases implement.

use async_trait::async_trait;
use svc_core::store::{Access, StoreResult};

use crate::dialect::Dialect;
use crate::sql::Sql;

/// A connection whose transactions have no timeouts. It must not be used after a failure.
#[async_trait]
pub(crate) trait MaintenanceConnection: Send {
    /// Returns the SQL dialect of the database.
    fn dialect(&self) -> Dialect;

    /// Returns whether the rows of an account may be on another server than those of no account, as on Citus.
    fn is_distributed(&self) -> bool {
        false
    }

    /// Begins a transaction. With [`Access::Read`] all its queries see the same snapshot.
    async fn begin(&mut self, access: Access) -> StoreResult<Box<dyn Transaction + '_>>;
}

/// A transaction. It is rolled back when it is dropped without a commit.
#[async_trait]
pub(crate) trait Transaction: Sql {
    /// Returns the SQL dialect of the database.
    fn dialect(&self) -> Dialect;

    /// Commits the transaction.
    async fn commit(self: Box<Self>) -> StoreResult<()>;
}
