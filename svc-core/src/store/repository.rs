//! The generic repository of each resource, and what contacts and payments need besides.

use std::ops::Range;

use async_trait::async_trait;

use super::StoreResult;
use crate::pages::ListQuery;
use crate::resources::Resource;
use crate::resources::contacts::{ContactId, OfContact};
use crate::resources::invoices::{InvoiceId, Payment, PaymentId};
use crate::resources::starts::{HasStart, StartPlace};
use crate::values::{Email, Id, TenantId, Timestamp};

/// The records of one resource. Every method sees only records of the tenant that it is given.
#[async_trait]
pub trait Repository<R: Resource>: Send {
    /// Returns the record with this id, even if it is deleted.
    async fn get(&mut self, tenant: TenantId, id: Id<R>) -> StoreResult<Option<R>>;

    /// Returns those of the records with these ids that there are, in any order, even if they are deleted.
    async fn get_many(&mut self, tenant: TenantId, ids: &[Id<R>]) -> StoreResult<Vec<R>> {
        let mut found = Vec::with_capacity(ids.len());
        for id in ids {
            found.extend(self.get(tenant, *id).await?);
        }
        Ok(found)
    }

    /// Returns the records of a list in its order, at most as many as its limit.
    ///
    /// It costs O(limit), whatever the filter is. Ids come from [`Env::id`](crate::env::Env::id) and sort like
    /// `created_at`, so a store may order by either.
    async fn list(&mut self, tenant: TenantId, listing: &ListQuery<R::Filter>) -> StoreResult<Vec<R>>;

    /// Adds a record.
    ///
    /// # Errors
    /// [`StoreError::Conflict`](crate::error::StoreError::Conflict) when the tenant has a record with this id or another
    /// unique value of it.
    async fn insert(&mut self, tenant: TenantId, record: &R) -> StoreResult<()>;

    /// Replaces the record with the same id.
    ///
    /// # Errors
    /// [`StoreError::Internal`](crate::error::StoreError::Internal) when there is none, at the latest at the commit.
    async fn update(&mut self, tenant: TenantId, record: &R) -> StoreResult<()>;
}

/// Finds contacts by their email, for the rule that no two contacts of a tenant have the same.
///
/// A list by email would do as well, but it has an order and returns whole records, which costs every new contact twice as
/// much.
#[async_trait]
pub trait ContactEmailRepository: Send {
    /// Returns a contact of the tenant that has this email, ignoring case, and is not deleted; any of them if there are
    /// several.
    async fn contact_with_email(&mut self, tenant: TenantId, email: &Email) -> StoreResult<Option<ContactId>>;
}

/// The records of one resource by the contact that they belong to.
#[async_trait]
pub trait RecordsOfContact<R: OfContact>: Send {
    /// Returns at most `limit` records of a contact that were created before `before`, newest first. It costs O(limit).
    async fn records_of_contact(
        &mut self,
        tenant: TenantId,
        contact: ContactId,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<R>>;
}

/// The records of one resource by when they start.
#[async_trait]
pub trait RecordsByStart<R: HasStart>: Send {
    /// Returns at most `limit` records from a place on, of those that start at `last` or before: the soonest first, and of those
    /// that start at the same time the one first that was created first. Records without a start are left out. It costs
    /// O(limit).
    async fn records_by_start(
        &mut self,
        tenant: TenantId,
        from: StartPlace,
        last: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<R>>;

    /// Returns at most `limit` records before a place, of those that start at `first` or later: in the opposite order, so the
    /// latest first. It costs O(limit).
    async fn records_before(
        &mut self,
        tenant: TenantId,
        before: StartPlace,
        first: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<R>>;
}

/// Payments of invoices, and refunds.
#[async_trait]
pub trait PaymentRepository: Send {
    /// Adds a payment or a refund.
    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> StoreResult<()>;

    /// Returns the newest payments and refunds of an invoice, at most `limit`, newest first.
    async fn payments(&mut self, tenant: TenantId, invoice: InvoiceId, limit: u32) -> StoreResult<Vec<Payment>>;

    /// Returns the newest payments and refunds of a tenant whose ids are in a range, at most `limit`, newest first. It costs
    /// O(limit).
    async fn payments_in(&mut self, tenant: TenantId, ids: Range<PaymentId>, limit: u32) -> StoreResult<Vec<Payment>>;
}
