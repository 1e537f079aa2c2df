//! The steps of invoices and quotes that the back office of the operator takes.

use svc_core::operation::Listing;
use svc_core::pages::Page;
use svc_core::personal::{ContactData, ContactDataParams, Erasure, ErasureCreate};
use svc_core::platform::{
    LogParams, MarkedInvoices, OverdueCheck, PaymentListFilter, SharedAddress, SharedAddressCreate, operations,
};
use svc_core::resources::contacts::{Contact, ContactId};
use svc_core::resources::conversions::{JobInvoicing, QuoteConversion};
use svc_core::resources::invoices::{BookedPayment, Invoice, InvoiceId, OverduePosition, PaymentCreate};
use svc_core::resources::jobs::{Job, JobId};
use svc_core::resources::quotes::{Quote, QuoteId};

use super::Platform;
use crate::collection::Collection;
use crate::error::Result;
use crate::etag::Versioned;

/// The steps of invoices. Each has an `Idempotency-Key`, so a retry of one call pays once; to repeat a payment safely after
/// a restart of your program, set a key of yours by [`with_idempotency_key`](Self::with_idempotency_key). A step that the
/// status of the invoice does not allow fails with `not_allowed`.
impl Collection<Invoice, Platform> {
    /// Marks a draft as sent.
    ///
    /// # Errors
    /// `not_found`, `not_allowed`, and any other [`Error`](crate::Error).
    pub async fn send(&self, id: InvoiceId) -> Result<Versioned<Invoice>> {
        self.call_versioned(&operations::SEND_INVOICE, Some(id.uuid()), &()).await
    }

    /// Records that the customer has seen the invoice.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn view(&self, id: InvoiceId) -> Result<Versioned<Invoice>> {
        self.call_versioned(&operations::VIEW_INVOICE, Some(id.uuid()), &()).await
    }

    /// Fires the event of an invoice that was sent once more.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn resend(&self, id: InvoiceId) -> Result<Versioned<Invoice>> {
        self.call_versioned(&operations::RESEND_INVOICE, Some(id.uuid()), &()).await
    }

    /// Records a payment: of its amount in the currency of the invoice, or without one of all that is left to pay.
    ///
    /// # Errors
    /// As [`send`](Self::send); `validation_failed` for more than is left to pay.
    pub async fn pay(&self, id: InvoiceId, payment: &PaymentCreate) -> Result<Versioned<Invoice>> {
        self.call_versioned(&operations::PAY_INVOICE, Some(id.uuid()), payment).await
    }

    /// Records a refund: of its amount in the currency of the invoice, or without one of all that was paid, which cancels the
    /// invoice.
    ///
    /// # Errors
    /// As [`send`](Self::send); `validation_failed` for more than was paid.
    pub async fn refund(&self, id: InvoiceId, refund: &PaymentCreate) -> Result<Versioned<Invoice>> {
        self.call_versioned(&operations::REFUND_INVOICE, Some(id.uuid()), refund).await
    }

    /// Returns a page of the payments and refunds of the account, or of an invoice, the newest first. The `next_cursor` of a
    /// page is the `cursor` of the next one.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use svc_core::platform::{LogParams, PaymentListFilter};
    ///
    /// # async fn example(account: svc_client::AccountClient) -> Result<(), svc_client::Error> {
    /// let page = account.invoices().payments(LogParams::default(), PaymentListFilter::default()).await?;
    /// for payment in &page.data {
    ///     println!("{} {}", payment.invoice_number, payment.amount);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn payments(&self, page: LogParams, filter: PaymentListFilter) -> Result<Page<BookedPayment>> {
        self.call(&operations::LIST_PAYMENTS, None, &Listing { page, filter }).await
    }

    /// Cancels an invoice on which nothing was paid.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn void(&self, id: InvoiceId) -> Result<Versioned<Invoice>> {
        self.call_versioned(&operations::VOID_INVOICE, Some(id.uuid()), &()).await
    }

    /// Returns the address at which the customer sees the invoice without signing in. It is made if there is none; with `renew`, one
    /// that there is ends, and another one is made.
    ///
    /// # Errors
    /// `not_found`; `not_allowed` if the contact is deleted; and any other [`Error`](crate::Error).
    pub async fn share(&self, id: InvoiceId, input: &SharedAddressCreate) -> Result<SharedAddress> {
        self.call(&operations::SHARE_INVOICE, Some(id.uuid()), input).await
    }

    /// Ends the address at which the customer sees the invoice, if there is one.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn unshare(&self, id: InvoiceId) -> Result<()> {
        self.call(&operations::UNSHARE_INVOICE, Some(id.uuid()), &()).await
    }

    /// Marks the next of the unpaid invoices as overdue, those whose due date is before today. `next` is `None` at first,
    /// and then that of the previous call, until there is none.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(account: svc_client::AccountClient) -> Result<(), svc_client::Error> {
    /// let mut next = None;
    /// loop {
    ///     let marked = account.invoices().mark_overdue(next).await?;
    ///     for invoice in &marked.data {
    ///         println!("{} is overdue", invoice.invoice_number);
    ///     }
    ///     next = marked.next;
    ///     if next.is_none() {
    ///         break;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Any [`Error`](crate::Error).
    pub async fn mark_overdue(&self, next: Option<OverduePosition>) -> Result<MarkedInvoices> {
        self.call(&operations::MARK_OVERDUE_INVOICES, None, &OverdueCheck { next }).await
    }
}

/// All data of a contact, and its erasure, as the laws on privacy ask for.
impl Collection<Contact, Platform> {
    /// Returns all that the account knows of a contact, also if it was deleted. It is read page by page, and returned whole.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn data(&self, id: ContactId) -> Result<ContactData> {
        let page = async |cursor| {
            self.call(&operations::GET_CONTACT_DATA, Some(id.uuid()), &ContactDataParams { cursor }).await
        };
        let mut data: ContactData = page(None).await?;
        while let Some(cursor) = data.next_cursor.take() {
            data = data.and(page(Some(cursor)).await?);
        }
        Ok(data)
    }

    /// Takes a step that erases a contact. Repeat it until nothing is left.
    ///
    /// # Errors
    /// As [`data`](Self::data).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(account: svc_client::AccountClient, id: svc_core::resources::contacts::ContactId)
    /// # -> Result<(), Box<dyn std::error::Error>> {
    /// use svc_core::personal::ErasureCreate;
    ///
    /// let reason = ErasureCreate { reason: "asked by letter".parse()? };
    /// while !account.contacts().erase(id, &reason).await?.is_complete {}
    /// # Ok(()) }
    /// ```
    pub async fn erase(&self, id: ContactId, input: &ErasureCreate) -> Result<Erasure> {
        self.call(&operations::ERASE_CONTACT, Some(id.uuid()), input).await
    }
}

/// The steps of quotes.
impl Collection<Quote, Platform> {
    /// Records that the customer has accepted the quote.
    ///
    /// # Errors
    /// `not_found`, `not_allowed`, and any other [`Error`](crate::Error).
    pub async fn accept(&self, id: QuoteId) -> Result<Versioned<Quote>> {
        self.call_versioned(&operations::ACCEPT_QUOTE, Some(id.uuid()), &()).await
    }

    /// Records that the customer has declined the quote.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub async fn decline(&self, id: QuoteId) -> Result<Versioned<Quote>> {
        self.call_versioned(&operations::DECLINE_QUOTE, Some(id.uuid()), &()).await
    }

    /// Makes the job of a quote, which becomes `converted`. One that the customer has not decided on is accepted first.
    ///
    /// # Errors
    /// As [`accept`](Self::accept). One that has a job fails with `not_allowed`, and the id of the job as `existing_id`.
    pub async fn convert(&self, id: QuoteId, conversion: &QuoteConversion) -> Result<Versioned<Job>> {
        self.call_versioned(&operations::CONVERT_QUOTE, Some(id.uuid()), conversion).await
    }

    /// Returns the address at which the customer sees the quote, and can accept or decline it, without signing in. It is made if there
    /// is none; with `renew`, one that there is ends, and another one is made.
    ///
    /// # Errors
    /// `not_found`; `not_allowed` if the contact is deleted; and any other [`Error`](crate::Error).
    pub async fn share(&self, id: QuoteId, input: &SharedAddressCreate) -> Result<SharedAddress> {
        self.call(&operations::SHARE_QUOTE, Some(id.uuid()), input).await
    }

    /// Ends the address at which the customer sees the quote, if there is one.
    ///
    /// # Errors
    /// `not_found`, and any other [`Error`](crate::Error).
    pub async fn unshare(&self, id: QuoteId) -> Result<()> {
        self.call(&operations::UNSHARE_QUOTE, Some(id.uuid()), &()).await
    }
}

/// The invoices of jobs.
impl Collection<Job, Platform> {
    /// Makes the invoice of a job, a draft. The job becomes `invoiced`.
    ///
    /// # Errors
    /// `not_found`; `not_allowed`, with the id of the invoice as `existing_id` if the job has one; `validation_failed` without
    /// any amount; and any other [`Error`](crate::Error).
    pub async fn invoice(&self, id: JobId, invoicing: &JobInvoicing) -> Result<Versioned<Invoice>> {
        self.call_versioned(&operations::INVOICE_JOB, Some(id.uuid()), invoicing).await
    }
}
