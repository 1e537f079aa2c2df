//! The generic repository of each resource, and what contacts and payments need besides.

use std::ops::Range;

use async_trait::async_trait;

use super::{Key, MemoryTx, Table, insert, of_tenant};
use crate::error::StoreError;
use crate::pages::{ListQuery, Order};
use crate::resources::bookings::Booking;
use crate::resources::contacts::{Contact, ContactId, OfContact};
use crate::resources::invoices::{Invoice, InvoiceId, Payment, PaymentId};
use crate::resources::jobs::Job;
use crate::resources::quotes::Quote;
use crate::resources::starts::{HasStart, StartPlace};
use crate::resources::{Filter, Resource};
use crate::store::{
    ContactEmailRepository, PaymentRepository, RecordsByStart, RecordsOfContact, Repository, StoreResult,
};
use crate::values::{Email, Id, TenantId, Timestamp};
use crate::webhooks::subscriptions::WebhookSubscription;

/// Implements [`Repository`] over one table each; a generic implementation could not name the table.
macro_rules! repositories {
    ($($record:ty => $table:ident,)+) => {$(
        #[async_trait]
        impl Repository<$record> for MemoryTx<'_> {
            async fn get(&mut self, tenant: TenantId, id: Id<$record>) -> StoreResult<Option<$record>> {
                Ok(self.state.$table.get(&(tenant, id)).cloned())
            }
            async fn list(
                &mut self,
                tenant: TenantId,
                listing: &ListQuery<<$record as Resource>::Filter>,
            ) -> StoreResult<Vec<$record>> {
                Ok(select(&self.state.$table, tenant, listing))
            }
            async fn insert(&mut self, tenant: TenantId, record: &$record) -> StoreResult<()> {
                insert(&mut self.state_mut()?.$table, (tenant, record.id()), record)
            }
            async fn update(&mut self, tenant: TenantId, record: &$record) -> StoreResult<()> {
                update(&mut self.state_mut()?.$table, tenant, record)
            }
        }
    )+};
}

repositories! {
    Contact => contacts,
    Invoice => invoices,
    Booking => bookings,
    Quote => quotes,
    Job => jobs,
    WebhookSubscription => subscriptions,
}

fn select<R: Resource>(table: &Table<Key<R>, R>, tenant: TenantId, listing: &ListQuery<R::Filter>) -> Vec<R> {
    let mut rows: Vec<&R> = of_tenant(table, tenant).filter(|row| listing.filter.matches(row)).collect();
    match listing.order {
        Order::NewestFirst { before } => {
            rows.retain(|row| before.is_none_or(|before| row.created_at() < before));
            rows.sort_by_key(|row| std::cmp::Reverse(row.created_at()));
        }
        Order::OldestChangeFirst { from } => {
            rows.retain(|row| row.updated_at() >= from);
            rows.sort_by_key(|row| row.updated_at());
        }
    }
    rows.into_iter().take(listing.limit as usize).cloned().collect()
}

fn update<R: Resource>(table: &mut Table<Key<R>, R>, tenant: TenantId, record: &R) -> StoreResult<()> {
    let found = table.change(&(tenant, record.id()), |stored| *stored = record.clone());
    if found { Ok(()) } else { Err(StoreError::Internal("an update found no row".to_owned())) }
}

#[async_trait]
impl ContactEmailRepository for MemoryTx<'_> {
    async fn contact_with_email(&mut self, tenant: TenantId, email: &Email) -> StoreResult<Option<ContactId>> {
        let has_email = |other: &Email| other.key() == email.key();
        let mut live = of_tenant(&self.state.contacts, tenant).filter(|contact| contact.deleted_at.is_none());
        Ok(live.find(|contact| contact.email.as_ref().is_some_and(has_email)).map(|contact| contact.id))
    }
}

/// Each record is found in a list of all, which a store of tests can afford.
#[async_trait]
impl<R: OfContact> RecordsOfContact<R> for MemoryTx<'_>
where
    Self: Repository<R>,
{
    async fn records_of_contact(
        &mut self,
        tenant: TenantId,
        contact: ContactId,
        before: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<R>> {
        let order = Order::NewestFirst { before: Some(before) };
        let mut rows = self.list(tenant, &ListQuery { limit: u32::MAX, order, filter: R::Filter::none() }).await?;
        rows.retain(|row| row.contact() == Some(contact.uuid()));
        rows.truncate(limit as usize);
        Ok(rows)
    }
}

#[async_trait]
impl<R: HasStart> RecordsByStart<R> for MemoryTx<'_>
where
    Self: Repository<R>,
{
    async fn records_by_start(
        &mut self,
        tenant: TenantId,
        from: StartPlace,
        last: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<R>> {
        let rows = by_start(self, tenant).await?;
        let rows = rows.into_iter().filter(|(place, _)| *place >= from && place.start <= last);
        Ok(rows.take(limit as usize).map(|(_, row)| row).collect())
    }

    async fn records_before(
        &mut self,
        tenant: TenantId,
        before: StartPlace,
        first: Timestamp,
        limit: u32,
    ) -> StoreResult<Vec<R>> {
        let rows = by_start(self, tenant).await?;
        let rows = rows.into_iter().rev().filter(|(place, _)| *place < before && place.start >= first);
        Ok(rows.take(limit as usize).map(|(_, row)| row).collect())
    }
}

/// Returns all records that have a start, with their places, in the order of these.
async fn by_start<R: HasStart>(
    repository: &mut dyn Repository<R>,
    tenant: TenantId,
) -> StoreResult<Vec<(StartPlace, R)>> {
    let order = Order::NewestFirst { before: None };
    let rows = repository.list(tenant, &ListQuery { limit: u32::MAX, order, filter: R::Filter::none() }).await?;
    let place = |row: R| row.start().map(|start| (StartPlace { start, created_from: row.created_at() }, row));
    let mut rows: Vec<_> = rows.into_iter().filter_map(place).collect();
    rows.sort_by_key(|(place, _)| *place);
    Ok(rows)
}

#[async_trait]
impl PaymentRepository for MemoryTx<'_> {
    async fn insert_payment(&mut self, tenant: TenantId, payment: &Payment) -> StoreResult<()> {
        insert(&mut self.state_mut()?.payments, (tenant, payment.id), payment)
    }

    async fn payments(&mut self, tenant: TenantId, invoice: InvoiceId, limit: u32) -> StoreResult<Vec<Payment>> {
        let payments = of_tenant(&self.state.payments, tenant).rev().filter(|payment| payment.invoice_id == invoice);
        Ok(payments.take(limit as usize).cloned().collect())
    }

    async fn payments_in(&mut self, tenant: TenantId, ids: Range<PaymentId>, limit: u32) -> StoreResult<Vec<Payment>> {
        let payments = of_tenant(&self.state.payments, tenant).rev().filter(|payment| ids.contains(&payment.id));
        Ok(payments.take(limit as usize).cloned().collect())
    }
}
