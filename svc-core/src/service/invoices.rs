//! Invoices of an account, with the operations of the back office.

use std::ops::Range;

use super::executor::Account;
use super::records::Records;
use crate::error::Error;
use crate::platform::{OverdueCheck, SharedAddress, SharedAddressCreate, operations};
use crate::resources::contacts::ContactId;
use crate::resources::invoices::{
    self, BookedPayment, Invoice, InvoiceCreate, InvoiceId, InvoiceUpdate, Outstanding, Payment, PaymentCreate,
};
use crate::values::{Decimal, Timestamp};

/// The operations of the back office on invoices. The API cannot change them.
impl Records<'_, Invoice> {
    /// Returns the address at which the customer sees an invoice without signing in. It is made if there is none; with `renew`, one
    /// that there is ends, and another one is made.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if the contact is deleted.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let invoices = svc.account(tenant).invoices();
    /// let invoice = invoices.create(InvoiceCreate::new("149.50".parse().unwrap())).await?;
    /// let address = invoices.share(invoice.id, SharedAddressCreate::default()).await?;
    /// let renewed = invoices.share(invoice.id, SharedAddressCreate { renew: Some(true) }).await?;
    /// assert_ne!(address.path, renewed.path);
    /// invoices.unshare(invoice.id).await?;
    /// # Ok(()) });
    /// ```
    pub async fn share(self, id: InvoiceId, input: SharedAddressCreate) -> Result<SharedAddress, Error> {
        self.account.call_on(&operations::SHARE_INVOICE, id, input).await
    }

    /// Ends the address at which the customer sees an invoice, if there is one.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn unshare(self, id: InvoiceId) -> Result<(), Error> {
        self.account.call_on(&operations::UNSHARE_INVOICE, id, ()).await
    }

    /// Returns the newest payments and refunds of an invoice, at most `limit`, newest first.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let invoices = svc.account(tenant).invoices();
    /// let invoice = invoices.create(InvoiceCreate::new("149.50".parse().unwrap())).await?;
    /// invoices.pay_part(invoice.id, "49.50".parse().unwrap()).await?;
    /// let payments = invoices.payments(invoice.id, 10).await?;
    /// assert_eq!(payments[0].amount.to_string(), "49.5");
    /// # Ok(()) });
    /// ```
    pub async fn payments(self, id: InvoiceId, limit: u32) -> Result<Vec<Payment>, Error> {
        let Account { runner, id: tenant } = self.account;
        let input = (tenant, id, limit);
        runner
            .on(id)
            .read("svc.invoices.payments", input, async |tx, &(tenant, id, limit)| {
                Ok(tx.payments(tenant, id, limit).await?)
            })
            .await
    }

    /// Returns the newest payments and refunds of the account in a range of times, newest first and at most `limit`, and the
    /// time before which the next page begins, if there may be more.
    ///
    /// # Errors
    /// [`Error::Store`].
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let invoices = svc.account(tenant).invoices();
    /// let invoice = invoices.create(InvoiceCreate::new("149.50".parse().unwrap())).await?;
    /// invoices.pay(invoice.id).await?;
    /// let (booked, next) = invoices.booked_payments(Timestamp::from_micros(0)..Timestamp::MAX, 10).await?;
    /// assert_eq!((booked[0].invoice_number.as_str(), next), ("INV-0001", None));
    /// # Ok(()) });
    /// ```
    pub async fn booked_payments(
        self,
        times: Range<Timestamp>,
        limit: u32,
    ) -> Result<(Vec<BookedPayment>, Option<Timestamp>), Error> {
        let Account { runner, id: tenant } = self.account;
        let read =
            runner.read("svc.invoices.booked_payments", (tenant, times, limit), async |tx, (tenant, times, limit)| {
                invoices::payments(tx, *tenant, None, times.clone(), *limit).await
            });
        read.await
    }

    /// Records a payment with its method and its reference.
    ///
    /// # Errors
    /// As [`pay`](Self::pay).
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let invoices = svc.account(tenant).invoices();
    /// let invoice = invoices.create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// let payment = PaymentCreate { method: Some("card".parse()?), ..PaymentCreate::default() };
    /// invoices.pay_with(invoice.id, payment).await?;
    /// assert_eq!(invoices.payments(invoice.id, 1).await?[0].method, Some("card".parse()?));
    /// # Ok(()) });
    /// ```
    pub async fn pay_with(self, id: InvoiceId, payment: PaymentCreate) -> Result<Invoice, Error> {
        self.account.call_on(&operations::PAY_INVOICE, id, payment).await
    }

    /// Returns what a contact has yet to pay, by currency.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn outstanding_of(self, contact: ContactId) -> Result<Outstanding, Error> {
        let Account { runner, id: tenant } = self.account;
        runner
            .read("svc.invoices.outstanding_of", (tenant, contact), async |tx, &(tenant, contact)| {
                invoices::outstanding_of(tx, tenant, contact).await
            })
            .await
    }

    /// Creates a draft. Fires `invoice.created`.
    ///
    /// # Errors
    /// [`Error::Validation`] for a total with more decimals than the currency has, and [`Error::ReferenceNotFound`] for a contact
    /// that does not exist.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let account = svc.account(tenant);
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let invoice = InvoiceCreate { contact_id: Some(contact.id), ..InvoiceCreate::new("149.50".parse()?) };
    /// let invoice = account.invoices().create(invoice).await?;
    /// assert_eq!(invoice.invoice_number, "INV-0001");
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: InvoiceCreate) -> Result<Invoice, Error> {
        self.account.call(&operations::CREATE_INVOICE, input).await
    }

    /// Changes an invoice that is neither paid nor cancelled. Fires `invoice.updated`. A change without effect fires no event.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if it is paid or cancelled; and the errors of the rules.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// let change = InvoiceUpdate { total: Patch::Set("99".parse()?), ..InvoiceUpdate::default() };
    /// let invoice = account.invoices().update(invoice.id, change).await?;
    /// assert_eq!(invoice.total.to_string(), "99");
    /// # Ok(()) });
    /// ```
    pub async fn update(self, id: InvoiceId, change: InvoiceUpdate) -> Result<Invoice, Error> {
        self.account.call_on(&operations::UPDATE_INVOICE, id, change).await
    }

    /// Records that a draft was sent to the customer. Fires `invoice.sent`, then `invoice.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if the invoice is not a draft.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// let invoice = account.invoices().send(invoice.id).await?;
    /// assert_eq!(invoice.status, InvoiceStatus::Sent);
    /// # Ok(()) });
    /// ```
    pub async fn send(self, id: InvoiceId) -> Result<Invoice, Error> {
        self.account.call_on(&operations::SEND_INVOICE, id, ()).await
    }

    /// Records that the customer has seen the invoice. Fires `invoice.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if the status is not `sent`.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// account.invoices().send(invoice.id).await?;
    /// let invoice = account.invoices().view(invoice.id).await?;
    /// assert_eq!(invoice.status, InvoiceStatus::Viewed);
    /// # Ok(()) });
    /// ```
    pub async fn view(self, id: InvoiceId) -> Result<Invoice, Error> {
        self.account.call_on(&operations::VIEW_INVOICE, id, ()).await
    }

    /// Records that the invoice was sent again, without a change. Fires `invoice.resent`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if the invoice was not sent before, or is paid or cancelled.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// account.invoices().send(invoice.id).await?;
    /// let invoice = account.invoices().resend(invoice.id).await?;
    /// assert_eq!(invoice.status, InvoiceStatus::Sent);
    /// # Ok(()) });
    /// ```
    pub async fn resend(self, id: InvoiceId) -> Result<Invoice, Error> {
        self.account.call_on(&operations::RESEND_INVOICE, id, ()).await
    }

    /// Records the payment of all that is left to pay. Fires `payment.succeeded`, `invoice.paid` and `invoice.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if nothing can be paid on it.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// account.invoices().send(invoice.id).await?;
    /// let invoice = account.invoices().pay(invoice.id).await?;
    /// assert_eq!(invoice.status, InvoiceStatus::Paid);
    /// # Ok(()) });
    /// ```
    pub async fn pay(self, id: InvoiceId) -> Result<Invoice, Error> {
        self.account.call_on(&operations::PAY_INVOICE, id, PaymentCreate::default()).await
    }

    /// Records a payment of this amount, which may be all that is left. Fires the events of [`pay`](Self::pay), without
    /// `invoice.paid` while something is left.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if nothing can be paid on it; [`Error::Validation`] for an amount that is
    /// not positive or more than what is left.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// account.invoices().send(invoice.id).await?;
    /// let invoice = account.invoices().pay_part(invoice.id, "49.50".parse()?).await?;
    /// assert_eq!(invoice.status, InvoiceStatus::Partial);
    /// # Ok(()) });
    /// ```
    pub async fn pay_part(self, id: InvoiceId, amount: Decimal) -> Result<Invoice, Error> {
        self.account.call_on(&operations::PAY_INVOICE, id, PaymentCreate::of(amount)).await
    }

    /// Records the refund of all that was paid. Fires `invoice.refunded`, then `invoice.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if nothing was paid.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// account.invoices().send(invoice.id).await?;
    /// account.invoices().pay(invoice.id).await?;
    /// let invoice = account.invoices().refund(invoice.id).await?;
    /// assert_eq!(invoice.status, InvoiceStatus::Cancelled);
    /// # Ok(()) });
    /// ```
    pub async fn refund(self, id: InvoiceId) -> Result<Invoice, Error> {
        self.account.call_on(&operations::REFUND_INVOICE, id, PaymentCreate::default()).await
    }

    /// Records a refund of this amount. Fires `invoice.refunded`, then `invoice.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if nothing was paid; [`Error::Validation`] for an amount that is not positive
    /// or more than what was paid.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// account.invoices().send(invoice.id).await?;
    /// account.invoices().pay(invoice.id).await?;
    /// let invoice = account.invoices().refund_part(invoice.id, "49.50".parse()?).await?;
    /// assert_eq!(invoice.amount_paid.to_string(), "100");
    /// # Ok(()) });
    /// ```
    pub async fn refund_part(self, id: InvoiceId, amount: Decimal) -> Result<Invoice, Error> {
        self.account.call_on(&operations::REFUND_INVOICE, id, PaymentCreate::of(amount)).await
    }

    /// Cancels an invoice on which nothing was paid. Fires `invoice.voided`, then `invoice.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if something was paid, or it is cancelled already.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let invoice = account.invoices().create(InvoiceCreate::new("149.50".parse()?)).await?;
    /// account.invoices().send(invoice.id).await?;
    /// let invoice = account.invoices().void(invoice.id).await?;
    /// assert_eq!(invoice.status, InvoiceStatus::Cancelled);
    /// # Ok(()) });
    /// ```
    pub async fn void(self, id: InvoiceId) -> Result<Invoice, Error> {
        self.account.call_on(&operations::VOID_INVOICE, id, ()).await
    }

    /// Marks the invoices that were not paid by their due date as `overdue`, and returns them. Each fires `invoice.updated`.
    ///
    /// It reads 200 invoices in a transaction. Over a store, each such step is committed by itself.
    ///
    /// # Errors
    /// [`Error::UnknownTenant`] if there is no such account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let account = svc.account(tenant);
    /// let invoice = InvoiceCreate { due_date: Some("2026-03-01".parse()?), ..InvoiceCreate::new("149.50".parse()?) };
    /// let invoice = account.invoices().create(invoice).await?;
    /// account.invoices().send(invoice.id).await?;
    /// let overdue = account.invoices().mark_overdue().await?;
    /// assert_eq!(overdue[0].status, InvoiceStatus::Overdue);
    /// # Ok(()) });
    /// ```
    pub async fn mark_overdue(self) -> Result<Vec<Invoice>, Error> {
        let (mut marked, mut next) = (Vec::new(), None);
        loop {
            let step = self.account.call(&operations::MARK_OVERDUE_INVOICES, OverdueCheck { next }).await?;
            marked.extend(step.data);
            next = step.next;
            if next.is_none() {
                return Ok(marked);
            }
        }
    }
}
