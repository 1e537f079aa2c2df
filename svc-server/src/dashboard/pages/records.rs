//! The records of an account, as the API returns them, and their history. Nothing here changes them: `record_forms` and
//! `record_actions` do.

mod file;
mod list;
pub(crate) mod selected;
mod show;
mod summary;
mod table;
mod values;
mod worklist;

use std::ops::Range;

use serde::Serialize;
use serde_json::{Map, Value};
use svc_core::error::{Error, StoreError};
use svc_core::prelude::*;
use svc_core::values::RecordKind;
use uuid::Uuid;

pub(crate) use self::list::list;
pub(crate) use self::show::show;
pub(super) use self::values::{
    ContactNames, FieldValues, is_amount, is_date, is_numbered, label, money, name, names_of, number_in, short,
    status_tone, text, words,
};
use super::kinds::Kind;

/// The memory in which a list of records is made, or a piece of its CSV file, in records: with the fields of each as they are
/// read, and the page.
pub(crate) const LISTED: u32 = 50;

/// The number of records on a page of a list.
const PAGE: u32 = 50;

/// Which records of a kind are wanted.
#[derive(Clone)]
struct Selection {
    /// When they were created.
    created: Range<Timestamp>,
    /// The contact that they belong to. Search and status do not count then.
    contact: Option<ContactId>,
    /// As it was sent.
    search: String,
    /// As it was sent.
    status: String,
}

impl Selection {
    /// Returns all records of a contact.
    fn of(contact: ContactId) -> Self {
        let created = Timestamp::from_micros(0)..Timestamp::MAX;
        Self { created, contact: Some(contact), search: String::new(), status: String::new() }
    }
}

/// A page of records as JSON objects, and where the next page begins.
type RecordPage<C = Uuid> = (Vec<Map<String, Value>>, Option<C>);

fn objects<R, C>(
    page: Page<R, C>,
    object: fn(&R) -> Result<Map<String, Value>, Error>,
) -> Result<RecordPage<C>, Error> {
    Ok((page.data.iter().map(object).collect::<Result<_, _>>()?, page.next_cursor))
}

/// Returns an invoice with what was paid and what is left, which the public API does not tell.
fn invoice_object(invoice: &Invoice) -> Result<Map<String, Value>, Error> {
    let mut object = object(invoice)?;
    // Nobody owes a draft yet, or a cancelled invoice any more.
    let is_owed = !matches!(invoice.status, InvoiceStatus::Draft | InvoiceStatus::Cancelled);
    let outstanding = is_owed.then(|| invoice.outstanding());
    for (field, amount) in [("amount_paid", Some(invoice.amount_paid)), ("outstanding", outstanding)] {
        let amount = serde_json::to_value(amount).map_err(|error| StoreError::Internal(error.to_string()))?;
        object.insert(field.to_owned(), amount);
    }
    Ok(object)
}

fn object<R: Serialize>(record: &R) -> Result<Map<String, Value>, Error> {
    match serde_json::to_value(record) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(StoreError::Internal(format!("a record is not an object: {other}")).into()),
        Err(error) => Err(StoreError::Internal(error.to_string()).into()),
    }
}

/// Reads a filter that was sent. An empty one is none.
fn parsed<T, I: std::fmt::Display>(
    field: &'static str,
    text: &str,
    parse: impl FnOnce(&str) -> Result<T, I>,
) -> Result<Option<T>, Error> {
    let parse = |text| parse(text).map_err(|issue| Error::NotAllowed(format!("The {field} {issue}.")));
    (!text.is_empty()).then_some(text).map(parse).transpose()
}

/// Reads the status that a list is filtered by.
fn status_of<T>(text: &str, parse: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, Error> {
    parsed("status", text, |text| parse(text).ok_or("is not one of those that there are"))
}

/// Returns a page of records.
async fn find(
    account: Account<'_>,
    kind: &Kind,
    selection: &Selection,
    params: ListParams,
) -> Result<RecordPage, Error> {
    let Selection { created, contact, search, status } = selection;
    let created = created.clone();
    match (kind.records, *contact) {
        (RecordKind::Contact, _) => {
            let email = parsed("email address", search, Email::parse)?;
            let filter = ContactFilter { email, ..ContactFilter::default() };
            objects(account.contacts().created_in(created, filter, params).await?, object)
        }
        (RecordKind::Invoice, Some(contact)) => {
            objects(account.invoices().of_contact(contact, created, params).await?, invoice_object)
        }
        (RecordKind::Quote, Some(contact)) => {
            objects(account.quotes().of_contact(contact, created, params).await?, object)
        }
        (RecordKind::Booking, Some(contact)) => {
            objects(account.bookings().of_contact(contact, created, params).await?, object)
        }
        (RecordKind::Job, Some(contact)) => objects(account.jobs().of_contact(contact, created, params).await?, object),
        (RecordKind::Invoice, None) => {
            let status = status_of(status, InvoiceStatus::from_text)?;
            let number = parsed("number", search, Text::parse)?;
            let filter = InvoiceFilter { status, number };
            objects(account.invoices().created_in(created, filter, params).await?, invoice_object)
        }
        (RecordKind::Quote, None) => {
            let status = status_of(status, QuoteStatus::from_text)?;
            objects(account.quotes().created_in(created, QuoteFilter { status }, params).await?, object)
        }
        (RecordKind::Booking, None) => {
            let status = status_of(status, BookingStatus::from_text)?;
            objects(account.bookings().created_in(created, BookingFilter { status }, params).await?, object)
        }
        (RecordKind::Job, None) => {
            let status = status_of(status, JobStatus::from_text)?;
            let job_number = parsed("number", search, Text::parse)?;
            objects(account.jobs().created_in(created, JobFilter { status, job_number }, params).await?, object)
        }
    }
}

/// Returns a record as the API does, with what only the pages show.
pub(super) async fn get(account: Account<'_>, kind: &Kind, id: Uuid) -> Result<Map<String, Value>, Error> {
    match kind.records {
        RecordKind::Contact => object(&account.contacts().get(id.into()).await?),
        RecordKind::Invoice => invoice_object(&account.invoices().get(id.into()).await?),
        RecordKind::Quote => object(&account.quotes().get(id.into()).await?),
        RecordKind::Booking => object(&account.bookings().get(id.into()).await?),
        RecordKind::Job => object(&account.jobs().get(id.into()).await?),
    }
}
