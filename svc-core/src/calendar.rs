//! The calendar of an account: its bookings and planned jobs in a range of times.
//!
//! [`read`] has both kinds in one order, for the pages of a calendar and for the [feed](ical) that programs subscribe to.

pub mod ical;

use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use uuid::Uuid;

use crate::accounts::tenants;
use crate::error::Error;
use crate::resources::bookings::{Booking, BookingStatus};
use crate::resources::contacts::{Contact, ContactId};
use crate::resources::jobs::{Job, JobStatus};
use crate::resources::starts::{self, HasStart, StartOrder, StartPlace};
use crate::resources::{BusinessRecord, Resource, text};
use crate::store::Tx;
use crate::values::{Date, RecordKind, TenantId, TimeZone, Timestamp};

/// The highest number of entries of a calendar.
pub const MAX_ENTRIES: usize = 10_000;
/// How long before a range an entry may begin that reaches into it. One that began earlier is left out.
pub const LOOK_BACK: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// How many days before today the feed begins.
pub const FEED_DAYS_BEFORE: i64 = 92;
/// How many days after today the feed ends.
pub const FEED_DAYS_AFTER: i64 = 366;

/// The highest number of entries that [`overlapping`] returns.
pub const MAX_OVERLAPPING: usize = 10;

/// The number of records that are read at a time.
const BATCH: u32 = 500;

/// The entries of a calendar.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Calendar {
    /// The entries in the order of their starts.
    pub entries: Vec<Entry>,
    /// Whether there are more than [`MAX_ENTRIES`]. The latest are left out then.
    pub is_cut: bool,
}

/// A booking or a planned job.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// The kind of the record.
    pub kind: RecordKind,
    /// The id of the record.
    pub id: Uuid,
    /// The service that is booked, or the title and the number of the job.
    pub title: String,
    /// The contact that it is for.
    pub contact_id: Option<ContactId>,
    /// The site of a job, as one line.
    pub site: Option<String>,
    /// The status of the record, such as `no_show`.
    pub status: &'static str,
    /// Whether it takes place.
    pub certainty: Certainty,
    /// When it starts.
    pub start: Timestamp,
    /// When it ends. `None` if a job has no planned end.
    pub end: Option<Timestamp>,
    /// When the record was created.
    pub created_at: Timestamp,
    /// When the record last changed.
    pub updated_at: Timestamp,
}

/// Returns whether nobody has to come any more for a booking or a job with this status: it is done or was called off.
///
/// ```
/// use svc_core::calendar::is_done;
/// assert!(is_done("no_show") && !is_done("in_progress"));
/// ```
pub fn is_done(status: &str) -> bool {
    matches!(status, "cancelled" | "completed" | "invoiced" | "no_show")
}

/// Whether an entry takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It is agreed or planned, or has taken place.
    Confirmed,
    /// It is not agreed yet, or interrupted.
    Tentative,
    /// It was called off.
    Cancelled,
}

impl Entry {
    fn of_booking(booking: Booking) -> Self {
        Self {
            kind: RecordKind::Booking,
            id: booking.id.uuid(),
            title: booking.title(),
            contact_id: booking.contact_id,
            site: None,
            status: booking.status.as_str(),
            certainty: match booking.status {
                BookingStatus::Cancelled => Certainty::Cancelled,
                BookingStatus::Confirmed | BookingStatus::Completed | BookingStatus::NoShow => Certainty::Confirmed,
            },
            start: booking.start_time,
            end: Some(booking.end_time),
            created_at: booking.created_at,
            updated_at: booking.updated_at,
        }
    }

    fn of_job(job: Job) -> Option<Self> {
        let site = [text(&job.site_address), text(&job.site_suburb), text(&job.site_state), text(&job.site_postcode)];
        let site: Vec<&str> = site.into_iter().flatten().collect();
        Some(Self {
            kind: RecordKind::Job,
            id: job.id.uuid(),
            title: format!("{} ({})", job.title, job.job_number),
            contact_id: job.contact_id,
            site: (!site.is_empty()).then(|| site.join(", ")),
            status: job.status.as_str(),
            certainty: match job.status {
                JobStatus::Cancelled => Certainty::Cancelled,
                JobStatus::Quoted | JobStatus::OnHold => Certainty::Tentative,
                JobStatus::Scheduled | JobStatus::InProgress | JobStatus::Completed | JobStatus::Invoiced => {
                    Certainty::Confirmed
                }
            },
            start: job.scheduled_start?,
            end: job.scheduled_end,
            created_at: job.created_at,
            updated_at: job.updated_at,
        })
    }

    /// Returns the dates on which it takes place in a time zone. One that ends at midnight does not reach into the next date.
    pub fn dates(&self, zone: &TimeZone) -> RangeInclusive<Date> {
        let last = self.end.filter(|end| *end > self.start);
        let last = last.map_or(self.start, |end| Timestamp::from_micros(end.as_micros() - 1));
        zone.date_at(self.start)..=zone.date_at(last)
    }

    /// Returns whether it [is done](is_done), or its last date has passed: work that takes longer than planned is not over.
    pub fn is_over(&self, zone: &TimeZone, now: Timestamp) -> bool {
        is_done(self.status) || zone.date_at(now) > *self.dates(zone).end()
    }

    /// Returns the first and the last date of an entry that takes whole days: from the beginning of a date to that of a later one,
    /// or without an end. `None` for all others.
    pub fn whole_days(&self, zone: &TimeZone) -> Option<RangeInclusive<Date>> {
        let begins_date = |at: Timestamp| zone.date_begins(zone.date_at(at)) == at;
        let ends_date = self.end.is_none_or(|end| end > self.start && begins_date(end));
        (begins_date(self.start) && ends_date).then(|| self.dates(zone))
    }
}

/// Returns the bookings and planned jobs that take place in a range of times, the soonest first and at most [`MAX_ENTRIES`]. Of
/// those that began before the range, it has what began within [`LOOK_BACK`].
///
/// # Errors
/// [`Error::Store`].
pub async fn read(tx: &mut dyn Tx, tenant: TenantId, range: Range<Timestamp>) -> Result<Calendar, Error> {
    read_at_most(tx, tenant, range, MAX_ENTRIES).await
}

/// Returns the bookings and planned jobs that take place at the same time as a record with these times, without itself and those that
/// were called off: the soonest first, and at most [`MAX_OVERLAPPING`]. Of those that began before, it looks at the latest 500 of
/// each kind.
///
/// # Errors
/// [`Error::Store`].
pub async fn overlapping(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: Uuid,
    times: Range<Timestamp>,
) -> Result<Vec<Entry>, Error> {
    if times.is_empty() {
        return Ok(Vec::new());
    }
    let mut entries = read_at_most(tx, tenant, times, BATCH as usize).await?.entries;
    entries.retain(|entry| entry.id != id && entry.certainty != Certainty::Cancelled);
    entries.truncate(MAX_OVERLAPPING);
    Ok(entries)
}

async fn read_at_most(
    tx: &mut dyn Tx,
    tenant: TenantId,
    range: Range<Timestamp>,
    max: usize,
) -> Result<Calendar, Error> {
    let mut entries = entries::<Booking>(tx, tenant, &range, max, |booking| Some(Entry::of_booking(booking))).await?;
    entries.extend(self::entries::<Job>(tx, tenant, &range, max, Entry::of_job).await?);
    entries.sort_by_key(|entry| (entry.start, entry.created_at));
    // What one of the kinds lacks starts after its last entry, and so after all that stay.
    let is_cut = entries.len() > max;
    entries.truncate(max);
    Ok(Calendar { entries, is_cut })
}

/// Returns the entries of one kind: if there are more than `max`, at least one more.
async fn entries<R: HasStart>(
    tx: &mut dyn Tx,
    tenant: TenantId,
    range: &Range<Timestamp>,
    max: usize,
    entry: fn(R) -> Option<Entry>,
) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    let begin = StartPlace { start: range.start, created_from: Timestamp::from_micros(i64::MIN) };

    let (mut place, mut read) = (Some(begin), 0);
    while let Some(before) = place.filter(|_| read < max) {
        let rows = R::by_start(tx).records_before(tenant, before, range.start.minus(LOOK_BACK), BATCH).await?;
        read += rows.len();
        place = next(&rows, StartOrder::LatestFirst);
        let is_there = |entry: &Entry| entry.end.is_some_and(|end| end > range.start);
        entries.extend(rows.into_iter().filter_map(entry).filter(is_there));
    }

    let last = Timestamp::from_micros(range.end.as_micros() - 1);
    let mut place = Some(begin);
    while let Some(from) = place.filter(|_| entries.len() <= max) {
        let rows = R::by_start(tx).records_by_start(tenant, from, last, BATCH).await?;
        place = next(&rows, StartOrder::SoonestFirst);
        entries.extend(rows.into_iter().filter_map(entry));
    }
    Ok(entries)
}

/// Returns the place after a whole batch. `None` after the last one.
fn next<R: HasStart>(rows: &[R], order: StartOrder) -> Option<StartPlace> {
    rows.last().filter(|_| rows.len() == BATCH as usize).and_then(|row| starts::after(row, order))
}

/// Returns the calendar of an account as iCalendar: what takes place from [`FEED_DAYS_BEFORE`] days ago to [`FEED_DAYS_AFTER`]
/// days ahead, at most [`MAX_ENTRIES`] entries.
///
/// # Errors
/// [`Error::NotFound`] if there is no such account.
pub async fn feed(tx: &mut dyn Tx, tenant: TenantId) -> Result<String, Error> {
    let account = tenants::get(tx, tenant).await?;
    let zone = &account.time_zone;
    let today = zone.date_at(tx.env().now());
    let [first, end] = [-FEED_DAYS_BEFORE, FEED_DAYS_AFTER + 1].map(|days| zone.date_begins(today.plus_days(days)));
    let calendar = read(tx, tenant, first..end).await?;
    let contacts = contact_names(tx, tenant, &calendar.entries).await?;
    Ok(ical::write(&calendar, ical::Heading { name: &account.name, zone, contacts: &contacts }))
}

/// Returns what the contacts of entries are called.
async fn contact_names(
    tx: &mut dyn Tx,
    tenant: TenantId,
    entries: &[Entry],
) -> Result<BTreeMap<ContactId, String>, Error> {
    let mut ids: Vec<ContactId> = entries.iter().filter_map(|entry| entry.contact_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let mut names = BTreeMap::new();
    // Whole contacts of all entries would take much memory.
    for ids in ids.chunks(BATCH as usize) {
        let contacts = Contact::repository(tx).get_many(tenant, ids).await?;
        names.extend(contacts.iter().map(|contact| (contact.id, contact.display_name())));
    }
    Ok(names)
}
