//! The decisions of customers about quotes.

use super::records::Records;
use crate::error::Error;
use crate::platform::operations;
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
}
