//! The generic repository of a resource.

use async_trait::async_trait;

use crate::error::StoreError;
use crate::pages::ListQuery;
use crate::resources::Resource;
use crate::values::{Id, TenantId};

/// The records of one resource. Every method sees only records of the tenant that it is given.
#[async_trait]
pub trait Repository<R: Resource>: Send {
    /// Returns the record with this id, even if it is deleted.
    async fn get(&mut self, tenant: TenantId, id: Id<R>) -> Result<Option<R>, StoreError>;

    /// Returns the records of a list in its order, at most as many as its limit.
    ///
    /// It costs O(limit), whatever the filter is. Ids come from [`Env::id`](crate::env::Env::id) and sort like
    /// `created_at`, so a store may order by either.
    async fn list(&mut self, tenant: TenantId, listing: &ListQuery<R::Filter>) -> Result<Vec<R>, StoreError>;

    /// Adds a record.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] when the tenant has a record with this id or another unique value of it.
    async fn insert(&mut self, tenant: TenantId, record: &R) -> Result<(), StoreError>;

    /// Replaces the record with the same id.
    ///
    /// # Errors
    /// [`StoreError::Internal`] when there is none, at the latest at the commit.
    async fn update(&mut self, tenant: TenantId, record: &R) -> Result<(), StoreError>;
}
