//! The data of an account about a person, page by page: [`page`].
//!
//! A page is read in one transaction, and has a bounded number of records, size and work, however much there is: it also ends
//! after it has looked at so many records that have no payments or no events. The records come first, each kind from the newest
//! to the oldest one, then the events of the contact and of each record.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::error::Error;
use crate::input::{Input, Record};
use crate::pages::{CursorKey, CursorScope};
use crate::platform;
use crate::resources::bookings::Booking;
use crate::resources::contacts::{Contact, ContactId, OfContact};
use crate::resources::invoices::{Invoice, Payment};
use crate::resources::jobs::Job;
use crate::resources::quotes::Quote;
use crate::store::{self, EventFilter, MAX_EVENT_BYTES, Repository, Tx};
use crate::values::{TenantId, Timestamp, parse_uuid};

/// How many records one statement reads.
const READ: u32 = 50;
/// How many events one statement reads.
const EVENTS_READ: u32 = 200;
/// How many records and payments, or events, a page has before it ends, and the payments or events of how many records it looks
/// for.
const PAGE: usize = 200;
/// How many payments of one invoice are returned at most.
pub const MAX_PAYMENTS: u32 = 1000;

/// Which page is read of what an account knows of a person.
#[derive(Clone, Debug, Default, PartialEq, Input)]
pub struct ContactDataParams {
    /// The `next_cursor` of the previous page. It never expires. Without it, the first page is returned.
    pub cursor: Option<String>,
}

/// The data of an account about a person, or a page of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct ContactData {
    /// The contact, which every page has.
    pub contact: Contact,
    /// Its invoices, newest first.
    pub invoices: Vec<Invoice>,
    /// The payments of these invoices.
    pub payments: Vec<Payment>,
    /// Its quotes, newest first.
    pub quotes: Vec<Quote>,
    /// Its bookings, newest first.
    pub bookings: Vec<Booking>,
    /// Its jobs, newest first.
    pub jobs: Vec<Job>,
    /// The events of the contact and of these records, for as long as events are kept. Those of a record are together, newest
    /// first.
    pub events: Vec<platform::Event>,
    /// Whether that is all. It is false where there is another page, and on the last page where an invoice has 1,000 payments, of
    /// which only the newest are listed.
    pub is_complete: bool,
    /// The `cursor` of the next page. Null if there is none. Absent in what services of earlier versions return.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

impl ContactData {
    fn new(contact: Contact) -> Self {
        Self {
            contact,
            invoices: Vec::new(),
            payments: Vec::new(),
            quotes: Vec::new(),
            bookings: Vec::new(),
            jobs: Vec::new(),
            events: Vec::new(),
            is_complete: true,
            next_cursor: None,
        }
    }

    /// Adds the next page. A record that changed meanwhile is as it was when its page was read.
    #[must_use]
    pub fn and(mut self, next: Self) -> Self {
        self.invoices.extend(next.invoices);
        self.payments.extend(next.payments);
        self.quotes.extend(next.quotes);
        self.bookings.extend(next.bookings);
        self.jobs.extend(next.jobs);
        self.events.extend(next.events);
        Self { contact: next.contact, is_complete: next.is_complete, next_cursor: next.next_cursor, ..self }
    }

    fn is_full(&self) -> bool {
        let Self { invoices, payments, quotes, bookings, jobs, events, .. } = self;
        let records = invoices.len() + payments.len() + quotes.len() + bookings.len() + jobs.len();
        let bytes: usize = events.iter().map(|event| event.data.0.get().len()).sum();
        records >= PAGE || events.len() >= PAGE || bytes >= MAX_EVENT_BYTES
    }
}

/// The parts that are read one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
enum Stage {
    Invoices,
    Payments,
    Quotes,
    Bookings,
    Jobs,
    OfContact,
    OfInvoices,
    OfQuotes,
    OfBookings,
    OfJobs,
}

const STAGES: [Stage; 10] = [
    Stage::Invoices,
    Stage::Payments,
    Stage::Quotes,
    Stage::Bookings,
    Stage::Jobs,
    Stage::OfContact,
    Stage::OfInvoices,
    Stage::OfQuotes,
    Stage::OfBookings,
    Stage::OfJobs,
];

/// Where a page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Position {
    /// The position of the stage among all of them.
    stage: usize,
    /// Records that were created before this time are left.
    before: Timestamp,
    /// Of the next record, events before this time are left.
    until: Timestamp,
    /// Whether an invoice had more payments than are listed, which the last page says.
    is_cut: bool,
}

/// The beginning of a cursor if something was left out before it.
const CUT: char = '-';

impl Position {
    fn start(stage: usize) -> Self {
        Self { stage, before: Timestamp::MAX, until: Timestamp::MAX, is_cut: false }
    }

    /// Returns the position behind a record, or in the next stage without one.
    fn after(self, last: Option<Timestamp>) -> Self {
        match last {
            Some(before) => Self { before, until: Timestamp::MAX, ..self },
            None => Self { is_cut: self.is_cut, ..Self::start(self.stage + 1) },
        }
    }

    fn seal(self, key: &CursorKey, tenant: TenantId, contact: ContactId) -> String {
        let before = key.seal(&before_scope(tenant, contact, self.stage), self.before);
        let until = key.seal(&until_scope(tenant, contact, self.stage, self.before), self.until);
        let cut = if self.is_cut { CUT.to_string() } else { String::new() };
        format!("{cut}{}.{before}.{until}", self.stage)
    }

    fn open(key: &CursorKey, tenant: TenantId, contact: ContactId, cursor: &str) -> Result<Self, Error> {
        let (is_cut, cursor) = cursor.strip_prefix(CUT).map_or((false, cursor), |rest| (true, rest));
        let mut parts = cursor.split('.');
        let (Some(stage), Some(before), Some(until), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Error::InvalidCursor);
        };
        let uuid = |text| parse_uuid(text).map_err(|_| Error::InvalidCursor);
        let stage = stage.parse().map_err(|_| Error::InvalidCursor)?;
        let before = key.open(&before_scope(tenant, contact, stage), uuid(before)?)?;
        let until = key.open(&until_scope(tenant, contact, stage, before), uuid(until)?)?;
        Ok(Self { stage, before, until, is_cut })
    }
}

fn before_scope(tenant: TenantId, contact: ContactId, stage: usize) -> CursorScope {
    CursorScope::new(tenant, "contact-data", None, &(contact, stage))
}

fn until_scope(tenant: TenantId, contact: ContactId, stage: usize, before: Timestamp) -> CursorScope {
    CursorScope::new(tenant, "contact-data", None, &(contact, stage, before))
}

/// Returns a page of what an account knows of a person, also if the contact was deleted.
///
/// # Errors
/// [`Error::NotFound`]; [`Error::InvalidCursor`] if the cursor was not returned for this contact.
pub async fn page(
    tx: &mut dyn Tx,
    tenant: TenantId,
    id: ContactId,
    params: &ContactDataParams,
) -> Result<ContactData, Error> {
    let contact = Repository::<Contact>::get(tx, tenant, id).await?.ok_or(Error::NotFound)?;
    let mut reader = Reader { tenant, id, data: ContactData::new(contact), looked_at: 0 };
    let mut position = match &params.cursor {
        Some(cursor) => Position::open(tx.cursor_key(), tenant, id, cursor)?,
        None => Position::start(0),
    };
    while let Some(stage) = STAGES.get(position.stage) {
        if reader.data.is_full() || reader.looked_at >= PAGE {
            reader.data.next_cursor = Some(position.seal(tx.cursor_key(), tenant, id));
            break;
        }
        position = reader.read(tx, *stage, position).await?;
    }
    reader.data.is_complete = !position.is_cut && reader.data.next_cursor.is_none();
    Ok(reader.data)
}

/// The reader of a page.
struct Reader {
    tenant: TenantId,
    id: ContactId,
    data: ContactData,
    /// Of how many records the payments or the events were read, whether or not there were any.
    looked_at: usize,
}

impl Reader {
    /// Reads what is at a position, and returns the next one.
    async fn read(&mut self, tx: &mut dyn Tx, stage: Stage, at: Position) -> Result<Position, Error> {
        match stage {
            Stage::Invoices => self.records(tx, at, |data: &mut ContactData| &mut data.invoices).await,
            Stage::Payments => self.payments(tx, at).await,
            Stage::Quotes => self.records(tx, at, |data: &mut ContactData| &mut data.quotes).await,
            Stage::Bookings => self.records(tx, at, |data: &mut ContactData| &mut data.bookings).await,
            Stage::Jobs => self.records(tx, at, |data: &mut ContactData| &mut data.jobs).await,
            Stage::OfContact => self.events(tx, at, self.id.uuid(), None).await,
            Stage::OfInvoices => self.events_of::<Invoice>(tx, at).await,
            Stage::OfQuotes => self.events_of::<Quote>(tx, at).await,
            Stage::OfBookings => self.events_of::<Booking>(tx, at).await,
            Stage::OfJobs => self.events_of::<Job>(tx, at).await,
        }
    }

    async fn records<R: OfContact>(
        &mut self,
        tx: &mut dyn Tx,
        at: Position,
        list: impl FnOnce(&mut ContactData) -> &mut Vec<R>,
    ) -> Result<Position, Error> {
        let records = R::of_contact(tx).records_of_contact(self.tenant, self.id, at.before, READ).await?;
        let last = records.last().filter(|_| records.len() == READ as usize).map(R::created_at);
        list(&mut self.data).extend(records);
        Ok(at.after(last))
    }

    async fn payments(&mut self, tx: &mut dyn Tx, at: Position) -> Result<Position, Error> {
        let mut at = at;
        // Of one invoice at a time, which may have many.
        let invoices = Invoice::of_contact(tx).records_of_contact(self.tenant, self.id, at.before, 1).await?;
        for invoice in &invoices {
            self.looked_at += 1;
            let payments = tx.payments(self.tenant, invoice.id, MAX_PAYMENTS).await?;
            at.is_cut |= payments.len() == MAX_PAYMENTS as usize;
            self.data.payments.extend(payments);
        }
        Ok(at.after(invoices.last().map(|invoice| invoice.created_at)))
    }

    /// Reads the next events of the next record of a kind.
    async fn events_of<R: OfContact>(&mut self, tx: &mut dyn Tx, at: Position) -> Result<Position, Error> {
        let records = R::of_contact(tx).records_of_contact(self.tenant, self.id, at.before, 1).await?;
        self.looked_at += records.len();
        match records.last() {
            Some(record) => self.events(tx, at, record.id().uuid(), Some(record.created_at())).await,
            None => Ok(at.after(None)),
        }
    }

    async fn events(
        &mut self,
        tx: &mut dyn Tx,
        at: Position,
        record: Uuid,
        created_at: Option<Timestamp>,
    ) -> Result<Position, Error> {
        let filter = EventFilter::of_record(record, at.until, EVENTS_READ);
        let found = tx.list_events(self.tenant, &filter).await?;
        let last = found.last().map(|last| last.event.created_at);
        let is_cut = store::is_cut(found.iter().map(|found| &found.event), EVENTS_READ);
        self.data.events.extend(found.into_iter().map(|found| platform::Event::from(found.event)));
        Ok(match last.filter(|_| is_cut) {
            Some(until) => Position { until, ..at },
            None => at.after(created_at),
        })
    }
}
