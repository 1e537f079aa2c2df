//! The columns, fields and operations of each kind of record on its pages: a file for each kind.

mod bookings;
mod contacts;
mod invoices;
mod jobs;
mod quotes;

use std::fmt::Display;

use svc_core::operation::AnyOperation;
use svc_core::values::RecordKind;

use crate::dashboard::page_response::PageError;

pub(crate) use self::bookings::BOOKINGS;
pub(crate) use self::contacts::CONTACTS;
pub(crate) use self::invoices::INVOICES;
pub(crate) use self::jobs::JOBS;
pub(crate) use self::quotes::QUOTES;

/// All kinds, in the order of the navigation.
pub(super) const ALL: [&Kind; 5] = [&CONTACTS, &INVOICES, &QUOTES, &BOOKINGS, &JOBS];

/// A kind of record, as its pages show it.
pub(crate) struct Kind {
    pub(super) records: RecordKind,
    /// The path of its list, which is its collection in the API.
    pub(super) collection: &'static str,
    pub(super) title: &'static str,
    /// One record, for sentences and for the audit log.
    pub(super) one: &'static str,
    pub(super) icon: &'static str,
    /// The statuses by which its list is filtered. None for a list without this filter.
    pub(super) statuses: fn() -> Vec<&'static str>,
    /// The fields that people call a record by.
    pub(super) name: &'static [&'static str],
    /// The headings and the fields of the list, after the name.
    pub(super) columns: &'static [(&'static str, &'static str)],
    /// The columns of its CSV file, which are fields and [`CONTACT`], with spaces in between.
    pub(super) file: &'static str,
    /// The fields of its forms. The names are those of the API, whose rules apply.
    form: &'static [Field],
    pub(super) create: &'static dyn AnyOperation,
    pub(super) update: &'static dyn AnyOperation,
    /// The changes that can be made of several records at once.
    pub(super) bulk: &'static [BulkChange],
}

impl Kind {
    /// Returns the path of its list.
    pub(super) fn list_path(&self) -> String {
        format!("/{}", self.collection)
    }

    /// Returns the path of a record.
    pub(super) fn path(&self, id: impl Display) -> String {
        format!("/{}/{id}", self.collection)
    }

    /// Returns the name of the choice that belongs to a field.
    pub(super) fn choice_of(&self, name: &str) -> Option<&'static str> {
        self.form.iter().find(|field| field.name == name).map(|field| field.choice)
    }

    /// Returns the fields of the form for this purpose.
    pub(super) fn fields(&self, form: FormPurpose) -> impl Iterator<Item = &'static Field> {
        self.form.iter().filter(move |field| field.only.is_none_or(|only| only == form))
    }
}

/// Returns the kind whose pages are at a path.
pub(super) fn of_path(path: &str) -> Result<&'static Kind, PageError> {
    path.split('/').nth(1).and_then(of_collection).ok_or(PageError::NotFound)
}

/// Returns the kind whose list is a collection of the API.
pub(super) fn of_collection(collection: &str) -> Option<&'static Kind> {
    ALL.into_iter().find(|kind| kind.collection == collection)
}

/// Returns the kind of these records.
pub(super) fn of_records(records: RecordKind) -> &'static Kind {
    match records {
        RecordKind::Contact => &CONTACTS,
        RecordKind::Invoice => &INVOICES,
        RecordKind::Quote => &QUOTES,
        RecordKind::Booking => &BOOKINGS,
        RecordKind::Job => &JOBS,
    }
}

/// Returns the kind of which one record has this name, if it has pages.
pub(super) fn kind_of(one: &str) -> Option<&'static Kind> {
    ALL.into_iter().find(|kind| kind.one == one)
}

/// The column of a CSV file with the name of the contact.
pub(super) const CONTACT: &str = "contact";
const CONTACT_HINT: &str = "A part of the name, phone, email or company.";
const OPTIONAL_CONTACT_HINT: &str = "A part of the name, phone, email or company. Optional.";

/// Which form has a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormPurpose {
    New,
    Edited,
}

/// A field of a form.
pub(super) struct Field {
    /// The name in the API.
    pub(super) name: &'static str,
    /// The name of the choice that says what was typed more exactly: which of two times that clocks show alike, or which of the
    /// contacts that have the text. Empty for other fields.
    pub(super) choice: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) control: Control,
    /// The only form that has it. `None` if both have it.
    only: Option<FormPurpose>,
}

/// How a value is typed.
#[derive(Clone, Copy)]
pub(super) enum Control {
    /// A line of text.
    Line,
    /// Text of several lines.
    Lines,
    /// An email address.
    Email,
    /// A phone number.
    Phone,
    /// A number of money.
    Amount,
    /// One of a few values.
    Choice(fn() -> Vec<&'static str>),
    /// A calendar date.
    Day,
    /// A date and a time of day in the time zone of the account.
    Time,
    /// A contact, chosen from those that have the text.
    Contact,
}

/// A change that can be made of several records at once.
pub(crate) struct BulkChange {
    /// The name in the form.
    pub(super) name: &'static str,
    /// The text of the choice, as an order.
    pub(super) label: &'static str,
    pub(super) operation: &'static dyn AnyOperation,
    /// The body of the operation.
    pub(super) body: &'static str,
    /// The statuses of records that can be changed so. Empty where the operation itself says it.
    pub(super) from: &'static [&'static str],
}

/// Returns a change of several records at once: its name, its text, the operation with its body, and the statuses that it is for.
const fn bulk(
    name: &'static str,
    label: &'static str,
    operation: &'static dyn AnyOperation,
    body: &'static str,
    from: &'static [&'static str],
) -> BulkChange {
    BulkChange { name, label, operation, body, from }
}

const fn field(name: &'static str, label: &'static str, control: Control, hint: &'static str) -> Field {
    Field { name, choice: "", label, hint, control, only: None }
}

/// Returns a field for a time, with the name of the choice between two times.
const fn time(name: &'static str, choice: &'static str, label: &'static str, hint: &'static str) -> Field {
    Field { choice, ..field(name, label, Control::Time, hint) }
}

/// Returns the field for the contact of a record.
const fn contact(hint: &'static str) -> Field {
    Field { choice: "contact_choice", ..field("contact_id", "Contact", Control::Contact, hint) }
}

impl Field {
    const fn only(self, form: FormPurpose) -> Self {
        Self { only: Some(form), ..self }
    }
}
