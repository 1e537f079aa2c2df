//! The operations that all resources share.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;

use futures_util::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};

use super::executor::Account;
use crate::error::Error;
use crate::operation::Listing;
use crate::pages::{Limit, ListParams, MAX_LIMIT, Page, SentCursor, Since};
use crate::platform::operations;
use crate::resources::contacts::{self, Contact, ContactId, OfContact};
use crate::resources::starts::{self, HasStart, StartListParams, StartOrder};
use crate::resources::{Create, Delete, Resource, Update, crud};
use crate::values::{Id, Timestamp};

/// The records of one resource and one account, such as its contacts.
///
/// [`Account::contacts`] and its like return it. An operation that a resource lacks does not compile: no one deletes a quote. Invoices,
/// quotes and webhook subscriptions have more operations than the others.
pub struct Records<'e, R> {
    pub(super) account: Account<'e>,
    resource: PhantomData<fn() -> R>,
}

impl<R> Clone for Records<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Records<'_, R> {}

impl<'e, R: Resource> Records<'e, R> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { account, resource: PhantomData }
    }

    /// Returns the record with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such record, or it is deleted.
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
    pub async fn get(self, id: Id<R>) -> Result<R, Error> {
        self.account.call_on(&operations::Records::<R>::GET, id, ()).await
    }

    /// Returns a page of the records, newest first, or in the order of their changes with `updated_since`.
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
    pub async fn list(self, filter: R::Filter, params: ListParams) -> Result<Page<R>, Error> {
        self.account.call(&operations::Records::<R>::LIST, Listing { page: params, filter }).await
    }

    /// Streams the records, newest first. Pages of 200 are read as they are needed, each in a transaction of its own, so memory
    /// is bounded however many there are. Records that are created after the stream began are not part of it.
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
    pub fn stream(self, filter: R::Filter) -> BoxStream<'e, Result<R, Error>> {
        self.pages(filter, None)
    }

    /// Streams the records that changed at or after `since`, the oldest change first, as [`stream`](Self::stream) does. A
    /// record that changes while the stream runs comes again.
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
    /// let changed: Vec<_> =
    ///     svc.account(tenant).contacts().changed_since(ContactFilter::default(), since).try_collect().await?;
    /// assert_eq!(changed, [contact]);
    /// # Ok(()) });
    /// ```
    pub fn changed_since(self, filter: R::Filter, since: Timestamp) -> BoxStream<'e, Result<R, Error>> {
        self.pages(filter, Some(Since(since)))
    }

    /// Reads page after page, each in a transaction of its own, and keeps one in memory.
    fn pages(self, filter: R::Filter, updated_since: Option<Since>) -> BoxStream<'e, Result<R, Error>> {
        let first = ListParams { limit: Limit::new(MAX_LIMIT), cursor: None, updated_since };
        let pages = stream::try_unfold(Some(first), move |params| {
            let filter = filter.clone();
            async move {
                let Some(params) = params else { return Ok::<_, Error>(None) };
                let page = self.list(filter, params.clone()).await?;
                let next =
                    page.next_cursor.map(|cursor| ListParams { cursor: Some(SentCursor::from(cursor)), ..params });
                Ok(Some((page.data, next)))
            }
        });
        pages.map_ok(|records| stream::iter(records.into_iter().map(Ok))).try_flatten().boxed()
    }
}

impl<R: Resource> Records<'_, R> {
    /// Returns one page of the records that were created in a range of times, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] if the cursor was not returned for this list with this filter.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let jobs = svc.account(tenant).jobs();
    /// let job = jobs.create(JobCreate::new("New pump".parse().unwrap())).await?;
    /// let later = job.created_at.next()..Timestamp::MAX;
    /// assert_eq!(jobs.created_in(later, JobFilter::default(), ListParams::default()).await?.data, []);
    /// # Ok(()) });
    /// ```
    pub async fn created_in(
        self,
        range: Range<Timestamp>,
        filter: R::Filter,
        params: ListParams,
    ) -> Result<Page<R>, Error> {
        let Account { runner, id: tenant } = self.account;
        let input = (tenant, params, filter, range);
        let list = runner.read(R::PROFILE.list.id, input, async |tx, (tenant, params, filter, range)| {
            crud::list_created(tx, *tenant, params, filter, range.clone()).await
        });
        list.await
    }
}

impl<R: OfContact> Records<'_, R> {
    /// Returns one page of the records of a contact that were created in a range of times, newest first.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] if the cursor was not returned for this contact.
    pub async fn of_contact(
        self,
        contact: ContactId,
        range: Range<Timestamp>,
        params: ListParams,
    ) -> Result<Page<R>, Error> {
        let Account { runner, id: tenant } = self.account;
        let input = (tenant, params, contact, range);
        let list = runner.read(R::PROFILE.list.id, input, async |tx, (tenant, params, contact, range)| {
            contacts::list_of(tx, *tenant, params, *contact, range.clone()).await
        });
        list.await
    }
}

impl<R: HasStart> Records<'_, R> {
    /// Returns one page of the records by when they start, or of invoices that await payment by when they are due.
    ///
    /// # Errors
    /// [`Error::InvalidCursor`] if the cursor was not returned for this list with the same parameters, and
    /// [`Error::Validation`] if the range of starts is empty.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    /// use svc_core::today::Days;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let (jobs, zone) = (svc.account(tenant).jobs(), svc.account(tenant).settings().await?.time_zone);
    /// let start = Some("2026-03-15T09:00:00Z".parse()?);
    /// let job = jobs.create(JobCreate { scheduled_start: start, ..JobCreate::new("New pump".parse()?) }).await?;
    /// let week = Days::Week.params::<Job>("2026-03-15".parse()?, &zone);
    /// assert_eq!(jobs.by_start(week, Days::Week.order::<Job>(), JobFilter::default()).await?.data, [job]);
    /// # Ok(()) });
    /// ```
    pub async fn by_start(
        self,
        params: StartListParams,
        order: StartOrder,
        filter: R::Filter,
    ) -> Result<Page<R, String>, Error> {
        let Account { runner, id: tenant } = self.account;
        let input = (tenant, params, order, filter);
        let list = runner.read(R::PROFILE.list.id, input, async |tx, (tenant, params, order, filter)| {
            starts::list_in_order(tx, *tenant, params, *order, filter).await
        });
        list.await
    }
}

impl Records<'_, Contact> {
    /// Returns what contacts are called, also those that are deleted. Ids of no contact are left out.
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
    /// let contacts = svc.account(tenant).contacts();
    /// let ada = contacts.create(ContactCreate::new("ada@example.com".parse().unwrap())).await?;
    /// assert_eq!(contacts.names(vec![ada.id]).await?[&ada.id], "ada@example.com");
    /// # Ok(()) });
    /// ```
    pub async fn names(self, ids: Vec<ContactId>) -> Result<BTreeMap<ContactId, String>, Error> {
        let Account { runner, id: tenant } = self.account;
        let read = runner.read("svc.contacts.names", (tenant, ids), async |tx, (tenant, ids)| {
            let contacts = Contact::repository(tx).get_many(*tenant, ids).await?;
            Ok(contacts.iter().map(|contact| (contact.id, contact.display_name())).collect())
        });
        read.await
    }
}

impl<R: Create<Input: Clone>> Records<'_, R> {
    /// Creates a record, and fires its event. A new webhook subscription has the secret that signs its deliveries.
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
    /// let account = svc.account(tenant);
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let visit = BookingCreate::new(contact.id, "Consultation".parse()?, "2026-03-14T15:00:00Z".parse()?);
    /// let visit = account.bookings().create(visit).await?;
    /// assert_eq!(visit.end_time.to_string(), "2026-03-14T16:00:00.000000Z");
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: R::Input) -> Result<R, Error> {
        self.account.call(&operations::Records::<R>::CREATE, input).await
    }
}

impl<R: Update> Records<'_, R> {
    /// Changes the record, and fires its events. A change without effect fires none. Disabling a webhook subscription holds its
    /// pending deliveries.
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
    /// let job = account.jobs().create(JobCreate::new("Fix the tap".parse()?)).await?;
    /// let change = JobUpdate { status: Patch::Set(JobStatus::Completed), ..JobUpdate::default() };
    /// let job = svc.account(tenant).jobs().update(job.id, change).await?;
    /// assert!(job.actual_end.is_some());
    /// # Ok(()) });
    /// ```
    pub async fn update(self, id: Id<R>, change: R::Input) -> Result<R, Error> {
        self.account.call_on(&operations::Records::<R>::UPDATE, id, change).await
    }
}

impl<R: Delete> Records<'_, R> {
    /// Deletes the record. Its row stays, for the records that refer to it. The pending deliveries of a webhook subscription fail.
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
    pub async fn delete(self, id: Id<R>) -> Result<(), Error> {
        self.account.call_on(&operations::Records::<R>::DELETE, id, ()).await
    }
}
