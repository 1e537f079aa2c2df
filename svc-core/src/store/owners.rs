//! The tenants of records, for operators who know an id alone.

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::StoreError;
use crate::values::TenantId;

/// The types of records whose tenants can be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedKind {
    /// An invoice.
    Invoice,
    /// A quote.
    Quote,
    /// A webhook subscription.
    Subscription,
    /// A delivery.
    Delivery,
}

/// Finds the tenants of a record by its id. Every other lookup of a record is within a tenant; the API never uses this one.
#[async_trait]
pub trait OwnerRepository: Send {
    /// Returns the tenants that have a record of this type with this id, deleted or not. There is one, unless the same rows
    /// were imported for several tenants.
    async fn owners(&mut self, kind: OwnedKind, id: Uuid) -> Result<Vec<TenantId>, StoreError>;
}
