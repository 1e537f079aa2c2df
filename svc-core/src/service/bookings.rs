//! Bookings of an account.

use futures_util::stream::BoxStream;

use super::Account;
use super::executor::operation;
use super::records::Records;
use crate::error::Error;
use crate::pages::{ListParams, Page};
use crate::resources::NoFilter;
use crate::resources::bookings::{Booking, BookingCreate, BookingId, BookingUpdate};
use crate::values::Timestamp;

/// The bookings of an account: appointments with contacts.
#[derive(Clone, Copy)]
pub struct Bookings<'e> {
    records: Records<'e, Booking>,
}

impl<'e> Bookings<'e> {
    pub(super) fn new(account: Account<'e>) -> Self {
        Self { records: Records::new(account.runner, account.id) }
    }

    /// Creates a booking, and fires its event.
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
    /// let start = "2026-03-16T09:00:00Z".parse()?;
    /// let booking = BookingCreate::new(contact.id, "New tap".parse()?, start);
    /// let booking = svc.account(tenant).bookings().create(booking).await?;
    /// assert!(booking.end_time > booking.start_time);
    /// # Ok(()) });
    /// ```
    pub async fn create(self, input: BookingCreate) -> Result<Booking, Error> {
        self.records.create(operation!("svc.bookings.create"), input).await
    }

    /// Returns the booking with this id.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the account has no such booking.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// # let account = svc.account(tenant);
    /// # let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
    /// let start = "2026-03-16T09:00:00Z".parse()?;
    /// let booking = BookingCreate::new(contact.id, "New tap".parse()?, start);
    /// let booking = svc.account(tenant).bookings().create(booking).await?;
    /// assert_eq!(svc.account(tenant).bookings().get(booking.id).await?, booking);
    /// # Ok(()) });
    /// ```
    pub async fn get(self, id: BookingId) -> Result<Booking, Error> {
        self.records.get(operation!("svc.bookings.get"), id).await
    }

    /// Returns a page of the bookings, newest first, or in the order of their changes with `updated_since`.
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
    /// let start = "2026-03-16T09:00:00Z".parse()?;
    /// let booking = BookingCreate::new(contact.id, "New tap".parse()?, start);
    /// let booking = svc.account(tenant).bookings().create(booking).await?;
    /// let page = svc.account(tenant).bookings().list(ListParams::default()).await?;
    /// assert_eq!((page.data, page.next_cursor), (vec![booking], None));
    /// # Ok(()) });
    /// ```
    pub async fn list(self, params: ListParams) -> Result<Page<Booking>, Error> {
        self.records.list(operation!("svc.bookings.list"), NoFilter {}, params).await
    }

    /// Streams the bookings, newest first. Pages of 200 are read as they are needed, each in a transaction of its own, so memory
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
    /// let start = "2026-03-16T09:00:00Z".parse()?;
    /// let booking = BookingCreate::new(contact.id, "New tap".parse()?, start);
    /// let booking = svc.account(tenant).bookings().create(booking).await?;
    /// let mut all = svc.account(tenant).bookings().stream();
    /// while let Some(booking) = all.try_next().await? {
    ///     println!("{}", booking.id);
    /// }
    /// # Ok(()) });
    /// ```
    pub fn stream(self) -> BoxStream<'e, Result<Booking, Error>> {
        self.records.stream(operation!("svc.bookings.list"), NoFilter {}, None)
    }

    /// Streams the bookings that changed at or after `since`, the oldest change first, as [`stream`](Self::stream) does. A
    /// booking that changes while the stream runs comes again.
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
    /// let start = "2026-03-16T09:00:00Z".parse()?;
    /// let booking = BookingCreate::new(contact.id, "New tap".parse()?, start);
    /// let booking = svc.account(tenant).bookings().create(booking).await?;
    /// let since = booking.updated_at;
    /// let changed: Vec<_> = svc.account(tenant).bookings().changed_since(since).try_collect().await?;
    /// assert_eq!(changed, [booking]);
    /// # Ok(()) });
    /// ```
    pub fn changed_since(self, since: Timestamp) -> BoxStream<'e, Result<Booking, Error>> {
        self.records.stream(operation!("svc.bookings.list"), NoFilter {}, Some(since))
    }

    /// Changes the booking, and fires its events. A change without effect fires none.
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
    /// let start = "2026-03-16T09:00:00Z".parse()?;
    /// let booking = BookingCreate::new(contact.id, "New tap".parse()?, start);
    /// let booking = svc.account(tenant).bookings().create(booking).await?;
    /// let change = BookingUpdate { status: Patch::Set(BookingStatus::Cancelled), ..BookingUpdate::default() };
    /// let booking = svc.account(tenant).bookings().update(booking.id, change).await?;
    /// assert_eq!(booking.status, BookingStatus::Cancelled);
    /// # Ok(()) });
    /// ```
    pub async fn update(self, id: BookingId, change: BookingUpdate) -> Result<Booking, Error> {
        self.records.update(operation!("svc.bookings.update"), id, change).await
    }
}
