//! Records that an export wrote, put back as they were.

use std::borrow::Cow;

use async_trait::async_trait;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::batch::ImportRecord;
use super::identity::{self, Identity};
use super::import::{Import, ImportOptions, Imported};
use super::{contacts, invoices};
use crate::accounts::clocks::advance_clock;
use crate::accounts::tenants::{self, NumberKind, Tenant};
use crate::error::{Error, FieldCode, Issue};
use crate::find::{self, Findable};
use crate::input::{FieldNames, Fields, Input};
use crate::pages::{ListQuery, Order};
use crate::resources::Filter as _;
use crate::resources::bookings::{Booking, BookingFilter};
use crate::resources::contacts::{Contact, ContactFilter, ContactId};
use crate::resources::invoices::{Invoice, InvoiceFilter};
use crate::resources::jobs::{Job, JobFilter};
use crate::resources::quotes::{Quote, QuoteFilter};
use crate::store::{Repository, Tx};
use crate::values::{Amount, EventKind, JOB_SCALE, TenantId, TextEnum, Timestamp};

/// A resource whose records can be put back. A record has all its fields, as [`Input`] reads them from an export.
#[async_trait]
pub trait Restore: Findable + Input {
    /// Returns the filter that every record passes, deleted ones included.
    fn unfiltered() -> Self::Filter;

    /// Gives amounts the decimals of their currency, and checks the rules that need no other record.
    ///
    /// # Errors
    /// The rules that the record breaks.
    fn check(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Checks the rules that need other records of the same type.
    ///
    /// # Errors
    /// The rules that the record breaks.
    async fn check_others(&self, _tx: &mut dyn Tx, _tenant: &Tenant) -> Result<(), Error> {
        Ok(())
    }

    /// Returns the contact that the record refers to.
    fn contact_id(&self) -> Option<ContactId> {
        None
    }

    /// Returns the series of the record's number, the name of the field, and the number.
    fn number(&self) -> Option<(NumberKind, &'static str, &str)> {
        None
    }
}

/// Puts a record back as an export wrote it: with its id, number and times, and with its contact even if that is deleted.
/// Fires no event, since the events of the record were fired where it was made.
///
/// The records of a type must come in the order of their `updated_at`, and after the contacts that they refer to. A
/// record that exists and is the same is [`Imported::Unchanged`], and one that has changed since is
/// [`Imported::Updated`].
///
/// # Errors
/// What the rules refuse, and [`Error::NotAllowed`] if another record of the type has changed later than this one: clients
/// that keep a copy by `updated_since` would never see it. After [`Error::Store`] the transaction must fail.
pub async fn restore<R: Restore>(tx: &mut dyn Tx, tenant: &Tenant, mut record: R) -> Result<Imported, Error> {
    let now = advance_clock(tx, tenant.id).await?;
    record.check()?;
    let key = (record.id(), Some(record.created_at()));
    let existing = match identity::by_id::<R>(tx, tenant.id, key, R::unfiltered(), now).await? {
        Identity::Existing(existing) if existing == record => return Ok(Imported::Unchanged),
        Identity::Existing(_) => true,
        Identity::New(..) => false,
    };
    if record.updated_at() < record.created_at() || record.updated_at() >= now {
        let reason = "must lie between created_at and now";
        return Err(Issue::new(FieldCode::OutOfRange, reason).on("updated_at"));
    }
    check_order(tx, tenant.id, &record).await?;
    record.check_others(tx, tenant).await?;
    if let Some(contact) = record.contact_id()
        && Repository::<Contact>::get(tx, tenant.id, contact).await?.is_none()
    {
        return Err(Error::ReferenceNotFound("contact_id"));
    }
    if let Some((kind, field, number)) = record.number() {
        tenants::take_number(tx, tenant.id, kind, field, number).await?;
    }
    if existing {
        R::repository(tx).update(tenant.id, &record).await?;
    } else {
        R::repository(tx).insert(tenant.id, &record).await?;
    }
    // The index of searches has all changes until a later time, so it would never look for one with this time.
    find::index_record(tx, tenant.id, &record).await?;
    Ok(if existing { Imported::Updated } else { Imported::Added })
}

/// Checks that no record of the type has changed at the time of this one or later.
async fn check_order<R: Restore>(tx: &mut dyn Tx, tenant: TenantId, record: &R) -> Result<(), Error> {
    let order = Order::OldestChangeFirst { from: record.updated_at() };
    let later = R::repository(tx).list(tenant, &ListQuery { limit: 1, order, filter: R::unfiltered() }).await?;
    let Some(later) = later.first() else { return Ok(()) };
    let (id, at, collection) = (later.id(), later.updated_at(), R::COLLECTION);
    Err(Error::NotAllowed(format!(
        "This record changed at {}, but {id} changed at {at}, and clients that sync {collection} to that time would miss it. \
         Import into an account without {collection}.",
        record.updated_at(),
    )))
}

/// Gives the amount of a field the decimals of its currency.
fn set_scale(field: &str, amount: &mut Amount, scale: u8) -> Result<(), Error> {
    *amount = amount.with_scale(scale).map_err(|error| Issue::from(error).on(field))?;
    Ok(())
}

#[async_trait]
impl Restore for Contact {
    fn unfiltered() -> ContactFilter {
        ContactFilter { email: None, include_deleted: Some(true) }
    }

    async fn check_others(&self, tx: &mut dyn Tx, tenant: &Tenant) -> Result<(), Error> {
        let must_differ = tenant.unique_contact_email && self.deleted_at.is_none();
        let Some(email) = self.email.as_ref().filter(|_| must_differ) else { return Ok(()) };
        match contacts::live_with(tx, tenant.id, email).await?.filter(|other| other.id != self.id) {
            Some(other) => Err(Error::EmailTaken { existing_id: other.id.uuid() }),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl Restore for Invoice {
    fn unfiltered() -> InvoiceFilter {
        InvoiceFilter::none()
    }

    fn check(&mut self) -> Result<(), Error> {
        set_scale("total", &mut self.total, self.currency.scale())?;
        set_scale("amount_paid", &mut self.amount_paid, self.currency.scale())?;
        invoices::check_payment(self, true)
    }

    fn contact_id(&self) -> Option<ContactId> {
        self.contact_id
    }

    fn number(&self) -> Option<(NumberKind, &'static str, &str)> {
        Some((NumberKind::Invoice, "invoice_number", &self.invoice_number))
    }
}

#[async_trait]
impl Restore for Quote {
    fn unfiltered() -> QuoteFilter {
        QuoteFilter::none()
    }

    fn check(&mut self) -> Result<(), Error> {
        set_scale("total", &mut self.total, self.currency.scale())
    }

    fn contact_id(&self) -> Option<ContactId> {
        self.contact_id
    }

    fn number(&self) -> Option<(NumberKind, &'static str, &str)> {
        Some((NumberKind::Quote, "quote_number", &self.quote_number))
    }
}

#[async_trait]
impl Restore for Booking {
    fn unfiltered() -> BookingFilter {
        BookingFilter::none()
    }

    fn check(&mut self) -> Result<(), Error> {
        self.check_times()
    }

    fn contact_id(&self) -> Option<ContactId> {
        self.contact_id
    }
}

#[async_trait]
impl Restore for Job {
    fn unfiltered() -> JobFilter {
        JobFilter::none()
    }

    fn check(&mut self) -> Result<(), Error> {
        for (field, total) in [("estimated_total", &mut self.estimated_total), ("actual_total", &mut self.actual_total)]
        {
            total.as_mut().map_or(Ok(()), |total| set_scale(field, total, JOB_SCALE))?;
        }
        self.check_schedule()
    }

    fn contact_id(&self) -> Option<ContactId> {
        self.contact_id
    }

    fn number(&self) -> Option<(NumberKind, &'static str, &str)> {
        Some((NumberKind::Job, "job_number", &self.job_number))
    }
}

/// The type of a record of an account: its collection in the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TextEnum)]
pub enum RecordKind {
    /// A contact.
    Contacts,
    /// An invoice.
    Invoices,
    /// A quote.
    Quotes,
    /// A booking.
    Bookings,
    /// A job.
    Jobs,
}

/// A record of an account, of any type: an object with the fields of the record, and its type in `kind`.
#[derive(Clone, Debug, PartialEq)]
pub enum AccountRecord {
    /// A contact, which may be deleted.
    Contact(Box<Contact>),
    /// An invoice, with what was paid.
    Invoice(Box<Invoice>),
    /// A quote.
    Quote(Box<Quote>),
    /// A booking.
    Booking(Box<Booking>),
    /// A job.
    Job(Box<Job>),
}

impl AccountRecord {
    /// Returns the type of the record.
    pub fn kind(&self) -> RecordKind {
        match self {
            Self::Contact(_) => RecordKind::Contacts,
            Self::Invoice(_) => RecordKind::Invoices,
            Self::Quote(_) => RecordKind::Quotes,
            Self::Booking(_) => RecordKind::Bookings,
            Self::Job(_) => RecordKind::Jobs,
        }
    }

    /// Returns when the record last changed.
    pub fn updated_at(&self) -> Timestamp {
        match self {
            Self::Contact(contact) => contact.updated_at,
            Self::Invoice(invoice) => invoice.updated_at,
            Self::Quote(quote) => quote.updated_at,
            Self::Booking(booking) => booking.updated_at,
            Self::Job(job) => job.updated_at,
        }
    }
}

impl From<Contact> for AccountRecord {
    fn from(contact: Contact) -> Self {
        Self::Contact(Box::new(contact))
    }
}

impl From<Invoice> for AccountRecord {
    fn from(invoice: Invoice) -> Self {
        Self::Invoice(Box::new(invoice))
    }
}

impl From<Quote> for AccountRecord {
    fn from(quote: Quote) -> Self {
        Self::Quote(Box::new(quote))
    }
}

impl From<Booking> for AccountRecord {
    fn from(booking: Booking) -> Self {
        Self::Booking(Box::new(booking))
    }
}

impl From<Job> for AccountRecord {
    fn from(job: Job) -> Self {
        Self::Job(Box::new(job))
    }
}

/// A record with its type.
#[derive(Serialize)]
struct WithKind<R> {
    kind: RecordKind,
    #[serde(flatten)]
    record: R,
}

/// An invoice with what was paid, which it has in no response of the public API.
#[derive(Serialize)]
struct WithPayment<'i> {
    #[serde(flatten)]
    invoice: &'i Invoice,
    amount_paid: Amount,
}

impl Serialize for AccountRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let kind = self.kind();
        match self {
            Self::Contact(record) => WithKind { kind, record }.serialize(serializer),
            Self::Invoice(invoice) => {
                let record = WithPayment { invoice, amount_paid: invoice.amount_paid };
                WithKind { kind, record }.serialize(serializer)
            }
            Self::Quote(record) => WithKind { kind, record }.serialize(serializer),
            Self::Booking(record) => WithKind { kind, record }.serialize(serializer),
            Self::Job(record) => WithKind { kind, record }.serialize(serializer),
        }
    }
}

/// Reads a record of a response. Fields that are not known yet are skipped.
impl<'de> Deserialize<'de> for AccountRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Kind {
            kind: RecordKind,
        }
        fn read<R: serde::de::DeserializeOwned + Into<AccountRecord>, E: serde::de::Error>(
            json: &RawValue,
        ) -> Result<AccountRecord, E> {
            serde_json::from_str::<R>(json.get()).map(Into::into).map_err(E::custom)
        }
        let json = Box::<RawValue>::deserialize(deserializer)?;
        let Kind { kind } = serde_json::from_str(json.get()).map_err(serde::de::Error::custom)?;
        match kind {
            RecordKind::Contacts => read::<Contact, _>(&json),
            RecordKind::Invoices => read::<Invoice, _>(&json),
            RecordKind::Quotes => read::<Quote, _>(&json),
            RecordKind::Bookings => read::<Booking, _>(&json),
            RecordKind::Jobs => read::<Job, _>(&json),
        }
    }
}

impl Input for AccountRecord {
    fn take(fields: &mut Fields) -> Option<Self> {
        let Some(kind) = fields.take("kind") else {
            // Which fields are known depends on the kind.
            fields.ignore_untaken();
            return None;
        };
        match kind {
            RecordKind::Contacts => Contact::take(fields).map(Box::new).map(Self::Contact),
            RecordKind::Invoices => Invoice::take(fields).map(Box::new).map(Self::Invoice),
            RecordKind::Quotes => Quote::take(fields).map(Box::new).map(Self::Quote),
            RecordKind::Bookings => Booking::take(fields).map(Box::new).map(Self::Booking),
            RecordKind::Jobs => Job::take(fields).map(Box::new).map(Self::Job),
        }
    }
}

/// A record has too many forms for the columns of a table.
impl FieldNames for AccountRecord {
    const FIELD_NAMES: &'static [&'static str] = &[];
}

impl JsonSchema for AccountRecord {
    fn schema_name() -> Cow<'static, str> {
        "AccountRecord".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let kind = RecordKind::json_schema(generator);
        json_schema!({
            "type": "object",
            "description": "A record of an account, with its type in `kind` and the fields that a GET of it returns. An invoice \
                has `amount_paid` besides, and a contact that is deleted `deleted_at`.",
            "properties": { "kind": kind },
            "required": ["kind"],
        })
    }
}

/// Rows are put back with [`restore`], whatever the options say.
#[async_trait]
impl Import for AccountRecord {
    const KIND: &'static str = "all";
    const EVENT: Option<EventKind> = None;
    type Row = Self;
    const NUMBERS: &'static [&'static str] = &[];
    const REQUIRED: &'static [&'static str] = &[];

    fn content(_row: &Self, _unique_email: bool) -> Option<[u8; 32]> {
        None
    }

    fn to_record(row: &Self) -> ImportRecord {
        ImportRecord::written(row)
    }

    async fn put(
        tx: &mut dyn Tx,
        tenant: &Tenant,
        row: Self,
        _before: u32,
        _options: ImportOptions,
    ) -> Result<Imported, Error> {
        match row {
            Self::Contact(contact) => restore(tx, tenant, *contact).await,
            Self::Invoice(invoice) => restore(tx, tenant, *invoice).await,
            Self::Quote(quote) => restore(tx, tenant, *quote).await,
            Self::Booking(booking) => restore(tx, tenant, *booking).await,
            Self::Job(job) => restore(tx, tenant, *job).await,
        }
    }
}
