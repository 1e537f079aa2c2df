//! The steps of invoices and quotes that the back office of the operator takes.

use svc_core::input::ToBody as _;
use svc_core::platform::{MarkedInvoices, OverdueCheck, PaymentAmount};
use svc_core::resources::invoices::{Invoice, InvoiceId};
use svc_core::resources::quotes::{Quote, QuoteId};
use svc_core::values::{Decimal, Id};

use super::Platform;
use crate::collection::Collection;
use crate::error::{Error, Result};
use crate::etag::Versioned;
use crate::records::Record;

impl<R: Record<Id = Id<R>>> Collection<R, Platform> {
    /// Takes a step of a record, which returns the record.
    async fn step(&self, id: Id<R>, step: &str, body: Option<Vec<u8>>) -> Result<Versioned<R>> {
        self.versioned(&self.post(&[&id.to_string(), step], body).await?)
    }
}

/// The steps of invoices. Each has an `Idempotency-Key`, so a retry of one call pays once; to repeat a payment safely after
/// a restart of your program, set a key of yours by [`with_idempotency_key`](Self::with_idempotency_key). A step that the
/// status of the invoice does not allow fails with `not_allowed`.
impl Collection<Invoice, Platform> {
    /// Marks a draft as sent.
    ///
    /// # Errors
    /// `not_found`, `not_allowed`, and any other [`Error`].
    pub async fn send(&self, id: InvoiceId) -> Result<Versioned<Invoice>> {
        self.step(id, "send", None).await
    }

    /// Records that the customer has seen the invoice.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn view(&self, id: InvoiceId) -> Result<Versioned<Invoice>> {
        self.step(id, "view", None).await
    }

    /// Fires the event of an invoice that was sent once more.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn resend(&self, id: InvoiceId) -> Result<Versioned<Invoice>> {
        self.step(id, "resend", None).await
    }

    /// Records a payment: of this amount in the currency of the invoice, or of all that is left to pay.
    ///
    /// # Errors
    /// As [`send`](Self::send); `validation_failed` for more than is left to pay.
    pub async fn pay(&self, id: InvoiceId, amount: Option<Decimal>) -> Result<Versioned<Invoice>> {
        self.step(id, "pay", Some(PaymentAmount { amount }.to_body())).await
    }

    /// Records a refund: of this amount in the currency of the invoice, or of all that was paid, which cancels the invoice.
    ///
    /// # Errors
    /// As [`send`](Self::send); `validation_failed` for more than was paid.
    pub async fn refund(&self, id: InvoiceId, amount: Option<Decimal>) -> Result<Versioned<Invoice>> {
        self.step(id, "refund", Some(PaymentAmount { amount }.to_body())).await
    }

    /// Cancels an invoice on which nothing was paid.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub async fn void(&self, id: InvoiceId) -> Result<Versioned<Invoice>> {
        self.step(id, "void", None).await
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
    ///     let marked = account.invoices().mark_overdue(next.as_deref()).await?;
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
    /// Any [`Error`].
    pub async fn mark_overdue(&self, next: Option<&str>) -> Result<MarkedInvoices> {
        let next = next.map(str::parse).transpose();
        let next = next.map_err(|issue: svc_core::error::Issue| Error::InvalidArgument(format!("next {issue}")))?;
        let response = self.post(&["mark-overdue"], Some(OverdueCheck { next }.to_body())).await?;
        response.json(&self.client().transport().env)
    }
}

/// The steps of quotes.
impl Collection<Quote, Platform> {
    /// Records that the customer has accepted the quote.
    ///
    /// # Errors
    /// `not_found`, `not_allowed`, and any other [`Error`].
    pub async fn accept(&self, id: QuoteId) -> Result<Versioned<Quote>> {
        self.step(id, "accept", None).await
    }

    /// Records that the customer has declined the quote.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub async fn decline(&self, id: QuoteId) -> Result<Versioned<Quote>> {
        self.step(id, "decline", None).await
    }
}
