//! The records of an account, as the API returns them, and their history. Nothing here changes them: `record_forms` and
//! `record_actions` do.

mod list;
mod show;
mod values;

use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Value};
use svc_core::error::{Error, StoreError};
use svc_core::prelude::*;
use uuid::Uuid;

pub(crate) use self::list::list;
pub(crate) use self::show::show;
pub(super) use self::values::{ContactNames, FieldValues, is_amount, label, money, name, names_of, short};

/// The memory in which a list of records is made, or a piece of its CSV file, in records: with the fields of each as they are
/// read, and the page.
pub(crate) const LISTED: u32 = 50;

/// A kind of record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordKind {
    Contact,
    Invoice,
    Quote,
    Booking,
    Job,
}

impl RecordKind {
    const ALL: [Self; 5] = [Self::Contact, Self::Invoice, Self::Quote, Self::Booking, Self::Job];

    /// Returns what its pages show.
    pub(super) fn kind(self) -> &'static Kind {
        match self {
            Self::Contact => &CONTACTS,
            Self::Invoice => &INVOICES,
            Self::Quote => &QUOTES,
            Self::Booking => &BOOKINGS,
            Self::Job => &JOBS,
        }
    }

    /// Returns the path of its list, which is its collection in the API.
    pub(super) fn collection(self) -> &'static str {
        self.kind().collection
    }

    /// Returns the name of one record, for sentences.
    pub(super) fn one(self) -> &'static str {
        self.kind().one
    }

    /// Returns the kind of the records in a collection.
    pub(super) fn of_collection(collection: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.collection() == collection)
    }
}

/// What the pages of a kind of record show.
pub(crate) struct Kind {
    records: RecordKind,
    /// The path of its list, which is its collection in the API.
    collection: &'static str,
    title: &'static str,
    /// One record, for sentences.
    one: &'static str,
    icon: &'static str,
    /// What the search takes besides an id.
    search: &'static str,
    /// The statuses by which its list is filtered. None for a list without this filter.
    statuses: fn() -> Vec<&'static str>,
    /// The headings and the fields of the list, after the name.
    columns: &'static [(&'static str, &'static str)],
    /// The columns of its CSV file.
    fields: &'static [&'static str],
}

pub(crate) const CONTACTS: Kind = Kind {
    records: RecordKind::Contact,
    collection: "contacts",
    title: "Contacts",
    one: "contact",
    icon: "contact",
    search: "Email address or id",
    statuses: Vec::new,
    columns: &[("Email", "email"), ("Company", "company_name"), ("Phone", "phone"), ("Created", "created_at")],
    fields: &[
        "id",
        "first_name",
        "last_name",
        "email",
        "phone",
        "company_name",
        "city",
        "state",
        "postcode",
        "created_at",
        "updated_at",
    ],
};
pub(crate) const INVOICES: Kind = Kind {
    records: RecordKind::Invoice,
    collection: "invoices",
    title: "Invoices",
    one: "invoice",
    icon: "invoice",
    search: "Number or id",
    statuses: || InvoiceStatus::ALL.iter().map(|status| status.as_str()).collect(),
    columns: &[
        ("Contact", "contact_id"),
        ("Status", "status"),
        ("Total", "total"),
        ("Outstanding", "outstanding"),
        ("Due", "due_date"),
        ("Created", "created_at"),
    ],
    fields: &[
        "id",
        "invoice_number",
        "contact_id",
        CONTACT,
        "status",
        "issue_date",
        "due_date",
        "currency",
        "total",
        "amount_paid",
        "outstanding",
        "paid_at",
        "created_at",
        "updated_at",
    ],
};
pub(crate) const QUOTES: Kind = Kind {
    records: RecordKind::Quote,
    collection: "quotes",
    title: "Quotes",
    one: "quote",
    icon: "quote",
    search: "Id",
    statuses: || QuoteStatus::ALL.iter().map(|status| status.as_str()).collect(),
    columns: &[
        ("Contact", "contact_id"),
        ("Status", "status"),
        ("Total", "total"),
        ("Valid until", "valid_until"),
        ("Created", "created_at"),
    ],
    fields: &[
        "id",
        "quote_number",
        "contact_id",
        CONTACT,
        "status",
        "issue_date",
        "valid_until",
        "currency",
        "total",
        "created_at",
        "updated_at",
    ],
};
pub(crate) const BOOKINGS: Kind = Kind {
    records: RecordKind::Booking,
    collection: "bookings",
    title: "Bookings",
    one: "booking",
    icon: "booking",
    search: "Id",
    statuses: || BookingStatus::ALL.iter().map(|status| status.as_str()).collect(),
    columns: &[
        ("Contact", "contact_id"),
        ("Status", "status"),
        ("Starts", "start_time"),
        ("Ends", "end_time"),
        ("Created", "created_at"),
    ],
    fields: &[
        "id",
        "service_name",
        "contact_id",
        CONTACT,
        "status",
        "start_time",
        "end_time",
        "notes",
        "created_at",
        "updated_at",
    ],
};
pub(crate) const JOBS: Kind = Kind {
    records: RecordKind::Job,
    collection: "jobs",
    title: "Jobs",
    one: "job",
    icon: "job",
    search: "Number or id",
    statuses: || JobStatus::ALL.iter().map(|status| status.as_str()).collect(),
    columns: &[
        ("Title", "title"),
        ("Contact", "contact_id"),
        ("Status", "status"),
        ("Scheduled", "scheduled_start"),
        ("Created", "created_at"),
    ],
    fields: &[
        "id",
        "job_number",
        "title",
        "contact_id",
        CONTACT,
        "customer_name",
        "customer_email",
        "customer_phone",
        "status",
        "job_type",
        "priority",
        "site_address",
        "site_suburb",
        "site_state",
        "site_postcode",
        "scheduled_start",
        "scheduled_end",
        "actual_start",
        "actual_end",
        "estimated_total",
        "actual_total",
        "quote_id",
        "invoice_id",
        "created_at",
        "updated_at",
    ],
};

/// The column of a CSV file with the name of the contact.
const CONTACT: &str = "contact";

/// Returns the kind of records that the audit log calls `one`, if they have pages.
pub(super) fn kind_of(one: &str) -> Option<&'static Kind> {
    [&CONTACTS, &INVOICES, &QUOTES, &BOOKINGS, &JOBS].into_iter().find(|kind| kind.one == one)
}

impl Kind {
    /// Returns the path of a record.
    pub(super) fn path(&self, id: impl std::fmt::Display) -> String {
        format!("/{}/{id}", self.collection)
    }
}

/// Which records of a kind are wanted.
struct Selection<'a> {
    /// When they were created.
    created: Range<Timestamp>,
    /// The contact that they belong to. Search and status do not count then.
    contact: Option<ContactId>,
    /// As it was sent.
    search: &'a str,
    /// As it was sent.
    status: &'a str,
}

impl Selection<'_> {
    /// Returns all records of a contact.
    fn of(contact: ContactId) -> Self {
        Self { created: Timestamp::from_micros(0)..Timestamp::MAX, contact: Some(contact), search: "", status: "" }
    }
}

/// A page of records as JSON objects, and where the next page begins.
type Found = (Vec<Map<String, Value>>, Option<Uuid>);

fn objects<R: Serialize>(page: Page<R>) -> Result<Found, Error> {
    let records = page.data.iter().map(object).collect::<Result<_, _>>()?;
    Ok((records, page.next_cursor))
}

fn invoices(page: Page<Invoice>) -> Result<Found, Error> {
    let records = page.data.iter().map(invoice_object).collect::<Result<_, _>>()?;
    Ok((records, page.next_cursor))
}

/// Returns an invoice with what was paid and what is left, which the public API does not tell.
fn invoice_object(invoice: &Invoice) -> Result<Map<String, Value>, Error> {
    let mut object = object(invoice)?;
    for (field, amount) in [("amount_paid", invoice.amount_paid), ("outstanding", invoice.outstanding())] {
        let amount = serde_json::to_value(amount).map_err(|error| StoreError::Internal(error.to_string()))?;
        object.insert(field.to_owned(), amount);
    }
    Ok(object)
}

fn object(record: &impl Serialize) -> Result<Map<String, Value>, Error> {
    match serde_json::to_value(record) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(StoreError::Internal(format!("a record is not an object: {other}")).into()),
        Err(error) => Err(StoreError::Internal(error.to_string()).into()),
    }
}

/// Returns a page of records.
async fn find(
    account: Account<'_>,
    kind: &Kind,
    selection: &Selection<'_>,
    params: ListParams,
) -> Result<Found, Error> {
    fn parsed<T, I: std::fmt::Display>(
        field: &'static str,
        text: &str,
        parse: impl FnOnce(&str) -> Result<T, I>,
    ) -> Result<Option<T>, Error> {
        let parse = |text| parse(text).map_err(|issue| Error::NotAllowed(format!("The {field} {issue}.")));
        (!text.is_empty()).then_some(text).map(parse).transpose()
    }
    let known = "is not one of those that there are";
    let Selection { created, contact, search, status } = selection;
    let created = created.clone();
    match (kind.records, *contact) {
        (RecordKind::Contact, _) => {
            let email = parsed("email address", search, Email::parse)?;
            let filter = ContactFilter { email, ..ContactFilter::default() };
            objects(account.contacts().created_in(created, filter, params).await?)
        }
        (RecordKind::Invoice, Some(contact)) => {
            invoices(account.invoices().of_contact(contact, created, params).await?)
        }
        (RecordKind::Quote, Some(contact)) => objects(account.quotes().of_contact(contact, created, params).await?),
        (RecordKind::Booking, Some(contact)) => objects(account.bookings().of_contact(contact, created, params).await?),
        (RecordKind::Job, Some(contact)) => objects(account.jobs().of_contact(contact, created, params).await?),
        (RecordKind::Invoice, None) => {
            let status = parsed("status", status, |text| InvoiceStatus::from_text(text).ok_or(known))?;
            let number = parsed("number", search, Text::parse)?;
            let filter = InvoiceFilter { status, number };
            invoices(account.invoices().created_in(created, filter, params).await?)
        }
        (RecordKind::Quote, None) => {
            let status = parsed("status", status, |text| QuoteStatus::from_text(text).ok_or(known))?;
            objects(account.quotes().created_in(created, QuoteFilter { status }, params).await?)
        }
        (RecordKind::Booking, None) => {
            let status = parsed("status", status, |text| BookingStatus::from_text(text).ok_or(known))?;
            objects(account.bookings().created_in(created, BookingFilter { status }, params).await?)
        }
        (RecordKind::Job, None) => {
            let status = parsed("status", status, |text| JobStatus::from_text(text).ok_or(known))?;
            let job_number = parsed("number", search, Text::parse)?;
            objects(account.jobs().created_in(created, JobFilter { status, job_number }, params).await?)
        }
    }
}

async fn get(account: Account<'_>, kind: &Kind, id: Uuid) -> Result<Map<String, Value>, Error> {
    match kind.records {
        RecordKind::Contact => object(&account.contacts().get(id.into()).await?),
        RecordKind::Invoice => invoice_object(&account.invoices().get(id.into()).await?),
        RecordKind::Quote => object(&account.quotes().get(id.into()).await?),
        RecordKind::Booking => object(&account.bookings().get(id.into()).await?),
        RecordKind::Job => object(&account.jobs().get(id.into()).await?),
    }
}
