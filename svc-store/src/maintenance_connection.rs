//! The interface to a connection for maintenance, which both databases implement.

use async_trait::async_trait;
use svc_core::store::{Access, StoreResult};

use crate::dialect::Dialect;
use crate::migrations::ExpectedSchema;
use crate::sql::Sql;

/// The changes that are allowed when a database is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// Nothing. The database must have the schema of this version.
    Read,
    /// The schema of an earlier version is migrated.
    Migrate,
    /// A database or a schema that is missing is created as well.
    Create,
}

impl Opening {
    /// Returns the schema that the database must have before it is changed.
    pub(crate) fn expected_schema(self) -> ExpectedSchema {
        match self {
            Self::Read => ExpectedSchema::Current,
            Self::Migrate | Self::Create => ExpectedSchema::Any,
        }
    }
}

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
