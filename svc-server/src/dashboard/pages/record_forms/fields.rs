//! What the forms of records ask for: a table for each kind of record. The names are those of the API, whose rules apply.

use svc_core::prelude::*;

use crate::dashboard::pages::records::RecordKind;

impl RecordKind {
    /// Returns the fields of the form of a new record, or of one that is edited.
    pub(super) fn fields(self, form: FormOf) -> impl Iterator<Item = &'static Field> {
        let fields: &[Field] = match self {
            Self::Contact => CONTACT,
            Self::Invoice => INVOICE,
            Self::Quote => QUOTE,
            Self::Booking => BOOKING,
            Self::Job => JOB,
        };
        fields.iter().filter(move |field| field.only.is_none_or(|only| only == form))
    }
}

/// Which form has a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormOf {
    New,
    Edited,
}

/// A field of a form.
pub(super) struct Field {
    /// The name in the API.
    pub(super) name: &'static str,
    /// The name of the choice between two times, where clocks show the time that was typed twice. Empty if the field is no time.
    pub(super) offset: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    pub(super) control: Control,
    /// The only form that has it. `None` if both have it.
    only: Option<FormOf>,
}

/// How a value is typed.
#[derive(Clone, Copy)]
pub(super) enum Control {
    /// A line of text.
    Line,
    /// Text of several lines.
    Lines,
    /// A number of money.
    Amount,
    /// One of a few values.
    Choice(fn() -> Vec<&'static str>),
    /// A calendar date.
    Day,
    /// A date and a time of day in the time zone of the account.
    Time,
    /// A contact: its id, its email address or its name.
    Contact,
}

const fn field(name: &'static str, label: &'static str, control: Control, hint: &'static str) -> Field {
    Field { name, offset: "", label, hint, control, only: None }
}

/// Returns a field for a time, with the name of the choice between two times.
const fn time(name: &'static str, offset: &'static str, label: &'static str, hint: &'static str) -> Field {
    Field { offset, ..field(name, label, Control::Time, hint) }
}

impl Field {
    const fn only(self, form: FormOf) -> Self {
        Self { only: Some(form), ..self }
    }
}

use Control::{Amount, Choice, Day, Line, Lines};
use FormOf::{Edited, New};

const CONTACT: &[Field] = &[
    field("first_name", "First name", Line, ""),
    field("last_name", "Last name", Line, ""),
    field("email", "Email", Line, "A new contact needs one.").only(New),
    field("email", "Email", Line, "").only(Edited),
    field("phone", "Phone", Line, ""),
    field("company_name", "Company", Line, ""),
    field("city", "Suburb or city", Line, ""),
    field("state", "State", Line, ""),
    field("postcode", "Postcode", Line, ""),
];

const CONTACT_HINT: &str = "The email address, the exact name or the id of a contact.";
const OPTIONAL_CONTACT_HINT: &str = "The email address, the exact name or the id of a contact. It can be empty.";

const INVOICE: &[Field] = &[
    field("contact_id", "Contact", Control::Contact, OPTIONAL_CONTACT_HINT),
    field("total", "Total", Amount, "Such as 149.50."),
    field("currency", "Currency", Line, "A code such as AUD."),
    field("issue_date", "Issued", Day, "Today, if it is empty.").only(New),
    field("issue_date", "Issued", Day, "").only(Edited),
    field("due_date", "Due", Day, "The last day before it is overdue. It can be empty."),
];

const QUOTE: &[Field] = &[
    field("contact_id", "Contact", Control::Contact, CONTACT_HINT).only(New),
    field("status", "Status", Choice(quote_statuses), "").only(Edited),
    field("total", "Total", Amount, "Such as 149.50."),
    field("currency", "Currency", Line, "A code such as AUD.").only(New),
    field("valid_until", "Valid until", Day, "30 days from today, if it is empty.").only(New),
    field("valid_until", "Valid until", Day, "").only(Edited),
];

const BOOKING: &[Field] = &[
    field("contact_id", "Contact", Control::Contact, CONTACT_HINT).only(New),
    field("service_name", "Service", Line, "What is booked.").only(New),
    field("status", "Status", Choice(booking_statuses), "").only(Edited),
    time("start_time", "start_time_offset", "Starts", ""),
    time("end_time", "end_time_offset", "Ends", "An hour after it starts, if it is empty.").only(New),
    time("end_time", "end_time_offset", "Ends", "").only(Edited),
    field("notes", "Notes", Lines, ""),
];

const JOB: &[Field] = &[
    field("title", "Title", Line, "What is to be done."),
    field("status", "Status", Choice(job_statuses), ""),
    field("contact_id", "Contact", Control::Contact, OPTIONAL_CONTACT_HINT).only(New),
    field("job_type", "Type", Line, "In your own words."),
    field("priority", "Priority", Line, "In your own words."),
    field("site_address", "Address of the site", Line, "").only(New),
    field("site_suburb", "Suburb", Line, "").only(New),
    field("site_state", "State", Line, "").only(New),
    field("site_postcode", "Postcode", Line, "").only(New),
    time("scheduled_start", "scheduled_start_offset", "Planned start", ""),
    time("scheduled_end", "scheduled_end_offset", "Planned end", ""),
    field("estimated_total", "Estimate", Amount, "Such as 149.50."),
    field("actual_total", "Final price", Amount, "Such as 149.50.").only(Edited),
];

fn quote_statuses() -> Vec<&'static str> {
    QuoteStatus::ALL.iter().map(|status| status.as_str()).collect()
}

fn booking_statuses() -> Vec<&'static str> {
    BookingStatus::ALL.iter().map(|status| status.as_str()).collect()
}

fn job_statuses() -> Vec<&'static str> {
    JobStatus::ALL.iter().map(|status| status.as_str()).collect()
}
