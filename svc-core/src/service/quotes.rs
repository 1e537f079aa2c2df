//! The decisions of customers about quotes, and the records that quotes and jobs become.

use super::records::Records;
use crate::error::Error;
use crate::platform::{SharedAddress, SharedAddressCreate, operations};
use crate::resources::conversions::{JobInvoicing, QuoteConversion};
use crate::resources::invoices::Invoice;
use crate::resources::jobs::{Job, JobId};
use crate::resources::quotes::{Quote, QuoteId};

/// The decisions of customers.
impl Records<'_, Quote> {
    /// Records that the customer accepts the offer. Fires `quote.accepted`, then `quote.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if the quote is neither sent nor viewed, or is no longer valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// # let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let quote = account.quotes().create(QuoteCreate::new(contact.id, "149.50".parse()?)).await?;
    /// let sent = QuoteUpdate { status: Patch::Set(QuoteStatus::Sent), ..QuoteUpdate::default() };
    /// account.quotes().update(quote.id, sent).await?;
    /// let quote = account.quotes().accept(quote.id).await?;
    /// assert_eq!(quote.status, QuoteStatus::Accepted);
    /// # Ok(()) });
    /// ```
    pub async fn accept(self, id: QuoteId) -> Result<Quote, Error> {
        self.account.call_on(&operations::ACCEPT_QUOTE, id, ()).await
    }

    /// Records that the customer declines the offer. Fires `quote.declined`, then `quote.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::NotAllowed`] if the quote is neither sent nor viewed.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// # let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let quote = account.quotes().create(QuoteCreate::new(contact.id, "149.50".parse()?)).await?;
    /// let sent = QuoteUpdate { status: Patch::Set(QuoteStatus::Sent), ..QuoteUpdate::default() };
    /// account.quotes().update(quote.id, sent).await?;
    /// let quote = account.quotes().decline(quote.id).await?;
    /// assert_eq!(quote.status, QuoteStatus::Declined);
    /// # Ok(()) });
    /// ```
    pub async fn decline(self, id: QuoteId) -> Result<Quote, Error> {
        self.account.call_on(&operations::DECLINE_QUOTE, id, ()).await
    }

    /// Makes the job of a quote, which becomes `converted`. One that the customer has not decided on is accepted first. Fires
    /// `job.created`, then `quote.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::AlreadyConverted`] with the id of the job that it has; [`Error::NotAllowed`] if the
    /// quote was not sent, was declined or is no longer valid.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// # let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let quote = account.quotes().create(QuoteCreate::new(contact.id, "149.50".parse()?)).await?;
    /// let sent = QuoteUpdate { status: Patch::Set(QuoteStatus::Sent), ..QuoteUpdate::default() };
    /// account.quotes().update(quote.id, sent).await?;
    /// let job = account.quotes().convert(quote.id, QuoteConversion::default()).await?;
    /// assert_eq!(job.title.as_str(), "Work for QUO-0001");
    /// let invoice = account.jobs().invoice(job.id, JobInvoicing::default()).await?;
    /// assert_eq!(invoice.total, quote.total);
    /// # Ok(()) });
    /// ```
    pub async fn convert(self, id: QuoteId, conversion: QuoteConversion) -> Result<Job, Error> {
        self.account.call_on(&operations::CONVERT_QUOTE, id, conversion).await
    }

    /// Returns the address at which the customer sees a quote, and can accept or decline it, without signing in. It is made if there is
    /// none; with `renew`, one that there is ends, and another one is made.
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
    /// # let account = svc.account(tenant);
    /// # let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let quote = account.quotes().create(QuoteCreate::new(contact.id, "149.50".parse()?)).await?;
    /// let address = account.quotes().share(quote.id, SharedAddressCreate::default()).await?;
    /// assert_eq!(account.quotes().share(quote.id, SharedAddressCreate::default()).await?, address);
    /// account.quotes().unshare(quote.id).await?;
    /// # Ok(()) });
    /// ```
    pub async fn share(self, id: QuoteId, input: SharedAddressCreate) -> Result<SharedAddress, Error> {
        self.account.call_on(&operations::SHARE_QUOTE, id, input).await
    }

    /// Ends the address at which the customer sees a quote, if there is one.
    ///
    /// # Errors
    /// [`Error::NotFound`].
    pub async fn unshare(self, id: QuoteId) -> Result<(), Error> {
        self.account.call_on(&operations::UNSHARE_QUOTE, id, ()).await
    }
}

/// The invoices of jobs.
impl Records<'_, Job> {
    /// Makes the invoice of a job, a draft. The job becomes `invoiced`. Fires `invoice.created`, then `job.updated`.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::AlreadyConverted`] with the id of the invoice that it has; [`Error::NotAllowed`] if the
    /// job is cancelled; [`Error::Validation`] without any amount.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let job = account.jobs().create(JobCreate::new("New pump".parse()?)).await?;
    /// let total = Some("480".parse()?);
    /// let invoice = account.jobs().invoice(job.id, JobInvoicing { total, ..JobInvoicing::default() }).await?;
    /// let job = account.jobs().get(job.id).await?;
    /// assert_eq!((job.status, job.invoice_id), (JobStatus::Invoiced, Some(invoice.id)));
    /// # Ok(()) });
    /// ```
    pub async fn invoice(self, id: JobId, invoicing: JobInvoicing) -> Result<Invoice, Error> {
        self.account.call_on(&operations::INVOICE_JOB, id, invoicing).await
    }
}
