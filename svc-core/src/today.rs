//! The morning of a business: the debts of customers, the payments of this month, the bookings of today, and the work that
//! waits in the office.
//!
//! [`read`] returns the records themselves, so that a figure and the list that it leads to cannot differ.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::accounts::tenants;
use crate::error::Error;
use crate::pages::{Limit, ListParams, MAX_LIMIT, SentCursor, Since};
use crate::resources::bookings::{Booking, BookingFilter, BookingStatus};
use crate::resources::invoices::{self, BookedPayment, Invoice, InvoiceFilter, InvoiceStatus};
use crate::resources::jobs::{Job, JobFilter, JobStatus};
use crate::resources::quotes::{Quote, QuoteFilter, QuoteStatus};
use crate::resources::starts::{self, HasStart, StartListParams, StartOrder};
use crate::resources::{Resource, crud};
use crate::store::Tx;
use crate::values::{Amount, Currency, Date, TenantId, TimeZone, Timestamp};

/// The most records of one status, payments and bookings that are read.
pub const MAX_READ: usize = 2_000;
/// The days within which a quote has to expire to be listed.
pub const EXPIRES_WITHIN_DAYS: i64 = 7;

/// Days by which a list of what starts is filtered, seen from one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Days {
    /// This day.
    Today,
    /// The next day.
    Tomorrow,
    /// The week of the day, from Monday to Sunday.
    Week,
    /// This day and all later ones.
    Upcoming,
    /// All days before.
    Past,
}

impl Days {
    /// Returns the parameters of the list of what starts on these days, seen from `date` in this time zone.
    ///
    /// ```
    /// use svc_core::prelude::*;
    /// use svc_core::today::Days;
    ///
    /// let zone = TimeZone::parse("Australia/Sydney")?;
    /// let params = Days::Today.params::<Booking>(Date::parse("2026-03-15")?, &zone);
    /// assert_eq!(params.starts_from.unwrap().0, Timestamp::parse("2026-03-15T00:00:00+11:00")?);
    /// assert_eq!(params.starts_before.unwrap().0, Timestamp::parse("2026-03-16T00:00:00+11:00")?);
    /// # Ok::<(), svc_core::error::Issue>(())
    /// ```
    pub fn params<R: HasStart>(self, date: Date, zone: &TimeZone) -> StartListParams {
        let (first, end) = match self {
            Self::Today => (Some(date), Some(date.plus_days(1))),
            Self::Tomorrow => (Some(date.plus_days(1)), Some(date.plus_days(2))),
            Self::Week => (Some(date.monday()), Some(date.monday().plus_days(7))),
            Self::Upcoming => (Some(date), None),
            Self::Past => (None, Some(date)),
        };
        let begins = |date: Date| if R::STARTS_ON_DATE { date.begins_in_utc() } else { zone.date_begins(date) };
        let [starts_from, starts_before] = [first, end].map(|date| date.map(|date| Since(begins(date))));
        StartListParams { starts_from, starts_before, ..StartListParams::default() }
    }

    /// Returns the order in which people read what starts on these days: what is over from its end, and overdue invoices, which
    /// are not over, from the oldest.
    pub fn order<R: HasStart>(self) -> StartOrder {
        let is_over = self == Self::Past && !R::STARTS_ON_DATE;
        if is_over { StartOrder::LatestFirst } else { StartOrder::SoonestFirst }
    }
}

/// The records that want attention in an account.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Today {
    /// The calendar date in the time zone of the account.
    pub date: Date,
    /// When the next date begins there.
    pub tomorrow: Timestamp,
    /// The invoices that customers have not paid in full, the newest of each status first.
    pub unpaid: Vec<Invoice>,
    /// The payments and refunds since the first of the month, newest first.
    pub payments: Vec<BookedPayment>,
    /// The confirmed bookings that start today and tomorrow, the soonest first.
    pub bookings: Vec<Booking>,
    /// The quotes that await the customer's decision and expire within [`EXPIRES_WITHIN_DAYS`] days.
    pub expiring: Vec<Quote>,
    /// The quotes that customers have accepted and that have no job yet.
    pub accepted: Vec<Quote>,
    /// The jobs that are completed and have no invoice.
    pub uninvoiced: Vec<Job>,
    /// Whether there are more than [`MAX_READ`] of something, which are left out.
    pub is_cut: bool,
}

/// The debts of customers in one currency, by how long they are overdue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receivable {
    /// The currency of the amounts.
    pub currency: Currency,
    /// The amount that is not due yet, or has no due date.
    pub not_due: Amount,
    /// The amount that is overdue by 1 to 30 days.
    pub overdue_to_30: Amount,
    /// The amount that is overdue by 31 to 60 days.
    pub overdue_to_60: Amount,
    /// The amount that is overdue by more than 60 days.
    pub overdue_longer: Amount,
}

impl Receivable {
    fn none(currency: Currency) -> Self {
        let zero = Amount::from_minor(0, currency.scale());
        Self { currency, not_due: zero, overdue_to_30: zero, overdue_to_60: zero, overdue_longer: zero }
    }

    /// Returns all of it.
    pub fn total(&self) -> Amount {
        sum([self.not_due, self.overdue()])
    }

    /// Returns what is overdue.
    pub fn overdue(&self) -> Amount {
        sum([self.overdue_to_30, self.overdue_to_60, self.overdue_longer])
    }
}

fn sum<const N: usize>(amounts: [Amount; N]) -> Amount {
    let minor = amounts.iter().fold(0_i64, |sum, amount| sum.saturating_add(amount.minor()));
    Amount::from_minor(minor, amounts[0].scale())
}

impl Today {
    /// Returns what customers owe, by currency.
    pub fn receivables(&self) -> Vec<Receivable> {
        let mut by_currency: BTreeMap<String, Receivable> = BTreeMap::new();
        for invoice in &self.unpaid {
            let code = invoice.currency.to_string();
            let owed = by_currency.entry(code).or_insert_with(|| Receivable::none(invoice.currency));
            let place = match self.days_overdue(invoice) {
                ..=0 => &mut owed.not_due,
                1..=30 => &mut owed.overdue_to_30,
                31..=60 => &mut owed.overdue_to_60,
                _ => &mut owed.overdue_longer,
            };
            *place = sum([*place, invoice.outstanding()]);
        }
        by_currency.into_values().collect()
    }

    /// Returns the unpaid invoices whose due date has passed.
    pub fn overdue(&self) -> impl Iterator<Item = &Invoice> {
        self.unpaid.iter().filter(|invoice| self.days_overdue(invoice) > 0)
    }

    /// Returns the confirmed bookings that start today.
    pub fn bookings_today(&self) -> impl Iterator<Item = &Booking> {
        self.bookings.iter().filter(|booking| booking.start_time < self.tomorrow)
    }

    /// Returns the confirmed bookings that start tomorrow.
    pub fn bookings_tomorrow(&self) -> impl Iterator<Item = &Booking> {
        self.bookings.iter().filter(|booking| booking.start_time >= self.tomorrow)
    }

    /// Returns for how many days an invoice has been overdue: 0 or less if it is not.
    pub fn days_overdue(&self, invoice: &Invoice) -> i64 {
        invoice.due_date.map_or(0, |due| self.date.days() - due.days())
    }

    /// Returns what was paid this month less what was refunded, by currency.
    pub fn paid(&self) -> Vec<(Currency, Amount)> {
        let mut by_currency: BTreeMap<String, (Currency, Amount)> = BTreeMap::new();
        for payment in &self.payments {
            let zero = (payment.currency, Amount::from_minor(0, payment.currency.scale()));
            let (_, paid) = by_currency.entry(payment.currency.to_string()).or_insert(zero);
            let by = if payment.is_refund { -payment.amount.minor() } else { payment.amount.minor() };
            *paid = Amount::from_minor(paid.minor().saturating_add(by), paid.scale());
        }
        by_currency.into_values().collect()
    }
}

/// Returns the records that want attention in an account now.
///
/// # Errors
/// [`Error::Store`].
pub async fn read(tx: &mut dyn Tx, tenant: TenantId) -> Result<Today, Error> {
    let zone = tenants::get(tx, tenant).await?.time_zone;
    let date = zone.date_at(tx.env().now());
    let mut is_cut = false;
    let mut unpaid = Vec::new();
    for status in [InvoiceStatus::Overdue, InvoiceStatus::Sent, InvoiceStatus::Viewed, InvoiceStatus::Partial] {
        let filter = InvoiceFilter { status: Some(status), number: None };
        unpaid.extend(all::<Invoice>(tx, tenant, filter, &mut is_cut).await?);
    }
    let mut expiring = Vec::new();
    for status in [QuoteStatus::Sent, QuoteStatus::Viewed] {
        expiring.extend(all::<Quote>(tx, tenant, QuoteFilter { status: Some(status) }, &mut is_cut).await?);
    }
    let last = date.plus_days(EXPIRES_WITHIN_DAYS);
    expiring.retain(|quote| quote.valid_until.is_some_and(|day| date <= day && day <= last));
    let accepted = QuoteFilter { status: Some(QuoteStatus::Accepted) };
    let accepted = all::<Quote>(tx, tenant, accepted, &mut is_cut).await?;
    let completed = JobFilter { status: Some(JobStatus::Completed), job_number: None };
    let mut uninvoiced = all::<Job>(tx, tenant, completed, &mut is_cut).await?;
    uninvoiced.retain(|job| job.invoice_id.is_none());

    let month = zone.date_begins(date.first_of_month())..Timestamp::MAX;
    let (payments, more) = invoices::payments(tx, tenant, None, month, MAX_READ as u32).await?;
    is_cut |= more.is_some();

    let days = zone.date_begins(date)..zone.date_begins(date.plus_days(2));
    let bookings = confirmed_in(tx, tenant, days, &mut is_cut).await?;
    let tomorrow = zone.date_begins(date.plus_days(1));
    Ok(Today { date, tomorrow, unpaid, payments, bookings, expiring, accepted, uninvoiced, is_cut })
}

/// Returns the confirmed bookings that start in a range of times, the soonest first and at most [`MAX_READ`].
async fn confirmed_in(
    tx: &mut dyn Tx,
    tenant: TenantId,
    starts: Range<Timestamp>,
    is_cut: &mut bool,
) -> Result<Vec<Booking>, Error> {
    let filter = BookingFilter { status: Some(BookingStatus::Confirmed) };
    let mut params = StartListParams {
        limit: Limit::new(MAX_LIMIT),
        starts_from: Some(Since(starts.start)),
        starts_before: Some(Since(starts.end)),
        ..StartListParams::default()
    };
    let mut bookings = Vec::new();
    loop {
        let page = starts::list::<Booking>(tx, tenant, &params, &filter).await?;
        bookings.extend(page.data);
        params.cursor = page.next_cursor;
        if params.cursor.is_none() {
            return Ok(bookings);
        }
        if bookings.len() >= MAX_READ {
            *is_cut = true;
            return Ok(bookings);
        }
    }
}

/// Returns the newest records that a filter selects, at most [`MAX_READ`].
async fn all<R: Resource>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    filter: R::Filter,
    is_cut: &mut bool,
) -> Result<Vec<R>, Error> {
    let (mut records, mut cursor) = (Vec::new(), None);
    loop {
        let params = ListParams { limit: Limit::new(MAX_LIMIT), cursor, ..ListParams::default() };
        let page = crud::list::<R>(tx, tenant, &params, &filter).await?;
        records.extend(page.data);
        cursor = page.next_cursor.map(SentCursor::from);
        if cursor.is_none() {
            return Ok(records);
        }
        if records.len() >= MAX_READ {
            *is_cut = true;
            return Ok(records);
        }
    }
}
