//! The calendar of an account, and the address at which calendar programs subscribe to it.

use std::ops::Range;

use uuid::Uuid;

use super::Svc;
use super::executor::{Account, Runner};
use crate::accounts::shared_links::{self, SharedLink, SharedLinkPurpose};
use crate::calendar::{self, Calendar, Entry};
use crate::error::Error;
use crate::platform::{SharedAddress, SharedAddressCreate, operations};
use crate::values::Timestamp;

/// The purpose of the address.
const CALENDAR: SharedLinkPurpose = SharedLinkPurpose::Calendar;

impl Account<'_> {
    /// Returns the bookings and planned jobs that take place in a range of times, the soonest first and at most
    /// [`MAX_ENTRIES`](calendar::MAX_ENTRIES).
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
    /// # let account = svc.account(tenant);
    /// let start = Some("2026-03-15T09:00:00Z".parse()?);
    /// account.jobs().create(JobCreate { scheduled_start: start, ..JobCreate::new("New pump".parse()?) }).await?;
    /// let week = "2026-03-09T00:00:00Z".parse()?.."2026-03-16T00:00:00Z".parse()?;
    /// assert_eq!(account.calendar(week).await?.entries[0].title, "New pump (JOB-0001)");
    /// # Ok(()) });
    /// ```
    pub async fn calendar(self, range: Range<Timestamp>) -> Result<Calendar, Error> {
        let read = self.runner.read("svc.account.calendar", (self.id, range), async |tx, (tenant, range)| {
            calendar::read(tx, *tenant, range.clone()).await
        });
        read.await
    }

    /// Returns the bookings and planned jobs that take place at the same time as the one with this id and these times: the soonest
    /// first, at most [`MAX_OVERLAPPING`](calendar::MAX_OVERLAPPING), and none that was called off.
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
    /// # let account = svc.account(tenant);
    /// let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?.id;
    /// let visit = BookingCreate::new(contact, "Visit".parse()?, "2026-03-15T09:00:00Z".parse()?);
    /// let repair = BookingCreate::new(contact, "Repair".parse()?, "2026-03-15T09:30:00Z".parse()?);
    /// let visit = account.bookings().create(visit).await?;
    /// account.bookings().create(repair).await?;
    /// let others = account.overlapping(visit.id.uuid(), visit.start_time..visit.end_time).await?;
    /// assert_eq!(others[0].title, "Repair");
    /// # Ok(()) });
    /// ```
    pub async fn overlapping(self, id: Uuid, times: Range<Timestamp>) -> Result<Vec<Entry>, Error> {
        let read =
            self.runner.read("svc.calendar.overlapping", (self.id, id, times), async |tx, (tenant, id, times)| {
                calendar::overlapping(tx, *tenant, *id, times.clone()).await
            });
        read.await
    }

    /// Returns the link of the address at which calendar programs subscribe to the calendar, if there is one.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn calendar_link(self) -> Result<Option<SharedLink>, Error> {
        let read = self.runner.read("svc.calendar.link", self.id, async |tx, &tenant| {
            shared_links::get(tx, tenant, CALENDAR, None).await
        });
        read.await
    }

    /// Returns the address at which calendar programs subscribe to the calendar. It is made if there is none; with `renew`, one that
    /// there is ends, and another one is made.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such account.
    ///
    /// # Examples
    ///
    /// ```
    /// use svc_core::prelude::*;
    ///
    /// # svc_core::service::example(async |svc, tenant| {
    /// let address = svc.account(tenant).share_calendar(SharedAddressCreate::default()).await?;
    /// let secret = address.path.strip_prefix("/dashboard/calendar.ics?secret=").unwrap();
    /// let feed = svc.calendar_feed(secret).await?;
    /// assert!(feed.contains("X-WR-CALNAME:Harbour Plumbing"));
    /// svc.account(tenant).unshare_calendar().await?;
    /// assert_eq!(svc.calendar_feed(secret).await, Err(Error::NotFound));
    /// # Ok(()) });
    /// ```
    pub async fn share_calendar(self, input: SharedAddressCreate) -> Result<SharedAddress, Error> {
        self.call(&operations::SHARE_CALENDAR, input).await
    }

    /// Ends the address at which calendar programs subscribe to the calendar, if there is one.
    ///
    /// # Errors
    /// [`Error::Store`].
    pub async fn unshare_calendar(self) -> Result<(), Error> {
        self.call(&operations::UNSHARE_CALENDAR, ()).await
    }
}

impl Svc {
    /// Returns the calendar of the account whose link has this secret, as iCalendar: what takes place from
    /// [`FEED_DAYS_BEFORE`](calendar::FEED_DAYS_BEFORE) days ago to [`FEED_DAYS_AFTER`](calendar::FEED_DAYS_AFTER) days ahead.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such link, or its account is suspended.
    pub async fn calendar_feed(&self, secret: &str) -> Result<String, Error> {
        let runner = Runner::new(self);
        let find = runner.read("svc.calendar.find", secret.to_owned(), async |tx, secret| {
            let (link, tenant) = shared_links::find(tx, secret, &[CALENDAR]).await?;
            if shared_links::is_available(&tenant) { Ok(link.tenant_id) } else { Err(Error::NotFound) }
        });
        let account = self.account(find.await?);
        let feed =
            account.runner.read("svc.calendar.feed", account.id, async |tx, &tenant| calendar::feed(tx, tenant).await);
        feed.await
    }
}
