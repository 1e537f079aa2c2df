//! Contacts of an account.

use futures_util::stream::BoxStream;

use super::Account;
use super::executor::operation;
use super::records::Records;
use crate::error::Error;
use crate::pages::{ListParams, Page};
use crate::resources::contacts::{Contact, ContactCreate, ContactFilter, ContactId, ContactUpdate};
use crate::values::Timestamp;

/// The contacts of an account: people and companies.
#[derive(Clone, Copy)]
pub struct Contacts<'e> {
    records: Records<'e, Contact>,
}

impl<'e> Contacts<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { records: Records::new(account.runner, account.id) }
    }

    /// Creates a contact, and fires its event.
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
    /// let contact = ContactCreate::new("ada@example.com".parse()?);
    /// let contact = svc.account(tenant).contacts().create(contact).await?;
    /// assert_eq!(contact.email, Some("ada@example.com".parse()?));
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: ContactCreate) -> Result<Contact, Error> {
        self.records.create(operation!("svc.contacts.create"), input).await
    }

    /// Returns the contact with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such contact, or it is deleted.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// assert_eq!(svc.account(tenant).contacts().get(contact.id).await?, contact);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: ContactId) -> Result<Contact, Error> {
        self.records.get(operation!("svc.contacts.get"), id).await
    }

    /// Returns a page of the contacts, newest first, or in the order of their changes with `updated_since`.
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
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let page = svc.account(tenant).contacts().list(ContactFilter::default(), ListParams::default()).await?;
    /// assert_eq!((page.data, page.next_cursor), (vec![contact], None));
    /// # Ok(()) });
    /// ```
    pub async fn list(self, filter: ContactFilter, params: ListParams) -> Result<Page<Contact>, Error> {
        self.records.list(operation!("svc.contacts.list"), filter, params).await
    }

    /// Streams the contacts, newest first. Pages of 200 are read as they are needed, each in a transaction of its own, so memory
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
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let mut all = svc.account(tenant).contacts().stream(ContactFilter::default());
    /// while let Some(contact) = all.try_next().await? {
    ///     println!("{}", contact.id);
    /// }
    /// # Ok(()) });
    /// ```
    pub fn stream(self, filter: ContactFilter) -> BoxStream<'e, Result<Contact, Error>> {
        self.records.stream(operation!("svc.contacts.list"), filter, None)
    }

    /// Streams the contacts that changed at or after `since`, the oldest change first, as [`stream`](Self::stream) does. A
    /// contact that changes while the stream runs comes again.
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
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let since = contact.updated_at;
    /// let changed: Vec<_> = svc.account(tenant).contacts().changed_since(ContactFilter::default(), since).try_collect().await?;
    /// assert_eq!(changed, [contact]);
    /// # Ok(()) });
    /// ```
    pub fn changed_since(self, filter: ContactFilter, since: Timestamp) -> BoxStream<'e, Result<Contact, Error>> {
        self.records.stream(operation!("svc.contacts.list"), filter, Some(since))
    }

    /// Changes the contact, and fires its events. A change without effect fires none.
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
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let change = ContactUpdate { email: Patch::Set(None), ..ContactUpdate::default() };
    /// let contact = svc.account(tenant).contacts().update(contact.id, change).await?;
    /// assert_eq!(contact.email, None);
    /// # Ok(()) });
    /// ```
    pub async fn update(self, id: ContactId, change: ContactUpdate) -> Result<Contact, Error> {
        self.records.update(operation!("svc.contacts.update"), id, change).await
    }

    /// Deletes the contact, and fires its event.
    ///
    /// # Errors
    /// [`Error::NotFound`], also if it is deleted already.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// svc.account(tenant).contacts().delete(contact.id).await?;
    /// assert_eq!(svc.account(tenant).contacts().get(contact.id).await, Err(Error::NotFound));
    /// # Ok(()) });
    /// ```
    pub async fn delete(self, id: ContactId) -> Result<(), Error> {
        self.records.delete(operation!("svc.contacts.delete"), id).await
    }
}
