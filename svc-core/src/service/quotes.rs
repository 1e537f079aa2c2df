//! Quotes of an account.

use futures_util::stream::BoxStream;

use super::Account;
use super::executor::operation;
use super::records::Records;
use crate::error::Error;
use crate::pages::{ListParams, Page};
use crate::resources::quotes::{self, Quote, QuoteCreate, QuoteFilter, QuoteId, QuoteUpdate};
use crate::values::Timestamp;

/// The quotes of an account: offers with a price.
#[derive(Clone, Copy)]
pub struct Quotes<'e> {
    records: Records<'e, Quote>,
}

impl<'e> Quotes<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { records: Records::new(account.runner, account.id) }
    }

    /// Creates a quote, and fires its event.
    ///
    /// # Errors
    /// [`Error::Validation`] and the other errors of the rules; [`Error::UnknownTenant`] if there is no such account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let quote = account.quotes().create(QuoteCreate::new(contact.id, "149.50".parse()?)).await?;
    /// assert_eq!(quote.quote_number, "QUO-0001");
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: QuoteCreate) -> Result<Quote, Error> {
        self.records.create(operation!("svc.quotes.create"), input).await
    }

    /// Returns the quote with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such quote.
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
    /// assert_eq!(svc.account(tenant).quotes().get(quote.id).await?, quote);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: QuoteId) -> Result<Quote, Error> {
        self.records.get(operation!("svc.quotes.get"), id).await
    }

    /// Returns a page of the quotes, newest first, or in the order of their changes with `updated_since`.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] if the cursor was not returned by this list with these filters.
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
    /// let page = svc.account(tenant).quotes().list(QuoteFilter::default(), ListParams::default()).await?;
    /// assert_eq!((page.data, page.next_cursor), (vec![quote], None));
    /// # Ok(()) });
    /// ```
    pub async fn list(self, filter: QuoteFilter, params: ListParams) -> Result<Page<Quote>, Error> {
        self.records.list(operation!("svc.quotes.list"), filter, params).await
    }

    /// Streams the quotes, newest first. Pages of 200 are read as they are needed, each in a transaction of its own, so memory
    /// is bounded however many there are. What is created after the stream began is not part of it.
    ///
    /// Use [`StreamExt`](futures_util::StreamExt) or [`TryStreamExt`](futures_util::TryStreamExt) of the crate
    /// `futures-util` to take its items.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// use futures_util::TryStreamExt;
    ///
    /// # let account = svc.account(tenant);
    /// # let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let quote = account.quotes().create(QuoteCreate::new(contact.id, "149.50".parse()?)).await?;
    /// let mut all = svc.account(tenant).quotes().stream(QuoteFilter::default());
    /// while let Some(quote) = all.try_next().await? {
    ///     println!("{}", quote.id);
    /// }
    /// # Ok(()) });
    /// ```
    pub fn stream(self, filter: QuoteFilter) -> BoxStream<'e, Result<Quote, Error>> {
        self.records.stream(operation!("svc.quotes.list"), filter, None)
    }

    /// Streams the quotes that changed at or after `since`, the oldest change first, as [`stream`](Self::stream) does. A
    /// quote that changes while the stream runs comes again.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// use futures_util::TryStreamExt;
    ///
    /// # let account = svc.account(tenant);
    /// # let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let quote = account.quotes().create(QuoteCreate::new(contact.id, "149.50".parse()?)).await?;
    /// let since = quote.updated_at;
    /// let changed: Vec<_> = svc.account(tenant).quotes().changed_since(QuoteFilter::default(), since).try_collect().await?;
    /// assert_eq!(changed, [quote]);
    /// # Ok(()) });
    /// ```
    pub fn changed_since(self, filter: QuoteFilter, since: Timestamp) -> BoxStream<'e, Result<Quote, Error>> {
        self.records.stream(operation!("svc.quotes.list"), filter, Some(since))
    }

    /// Changes the quote, and fires its events. A change without effect fires none.
    ///
    /// # Errors
    /// [`Error::NotFound`], and the errors of the rules.
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
    /// let change = QuoteUpdate { status: Patch::Set(QuoteStatus::Sent), ..QuoteUpdate::default() };
    /// let quote = svc.account(tenant).quotes().update(quote.id, change).await?;
    /// assert_eq!(quote.status, QuoteStatus::Sent);
    /// # Ok(()) });
    /// ```
    pub async fn update(self, id: QuoteId, change: QuoteUpdate) -> Result<Quote, Error> {
        self.records.update(operation!("svc.quotes.update"), id, change).await
    }

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
        let (runner, tenant) = (self.records.runner, self.records.tenant);
        runner
            .write(operation!("svc.quotes.accept", id), (tenant, id), async |tx, &(tenant, id)| {
                quotes::accept(tx, tenant, id).await
            })
            .await
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
        let (runner, tenant) = (self.records.runner, self.records.tenant);
        runner
            .write(operation!("svc.quotes.decline", id), (tenant, id), async |tx, &(tenant, id)| {
                quotes::decline(tx, tenant, id).await
            })
            .await
    }
}
