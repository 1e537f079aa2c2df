//! Hints at what a person could change so that a refused cell is read.

use std::fmt;

use svc_core::resources::invoices::InvoiceStatus;

use crate::date_format::DateFormat;

/// Why the cell of a field was not read, or what would read it. Texts are at most 100 characters of the cell.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Hint<'h> {
    /// The cell is empty.
    Empty,
    /// The amount is one of two, depending on the decimal character.
    Either {
        /// The text of the cell.
        text: &'h str,
        /// The amount with a decimal point.
        point: String,
        /// The amount with a decimal comma.
        comma: String,
    },
    /// A decimal comma would read the amount.
    WithComma {
        /// The text of the cell.
        text: &'h str,
        /// The amount with a decimal comma.
        comma: String,
    },
    /// The decimal comma that was chosen does not read the amount, which a decimal point would.
    NotWithComma {
        /// The text of the cell.
        text: &'h str,
    },
    /// The text is no amount.
    NoAmount {
        /// The text of the cell.
        text: &'h str,
    },
    /// The date has another form than the chosen one.
    OtherDateForm {
        /// The text of the cell.
        text: &'h str,
        /// The form that was chosen.
        format: &'h DateFormat,
    },
    /// A form of dates would read the date.
    DateForm {
        /// The text of the cell.
        text: &'h str,
        /// The forms that it may have, such as `DD/MM/YYYY` and `MM/DD/YYYY`.
        examples: Vec<String>,
    },
    /// The text is no status.
    Status {
        /// The text of the cell.
        text: &'h str,
    },
    /// The text is no currency.
    Currency {
        /// The text of the cell.
        text: &'h str,
    },
    /// The id is one of another program.
    OtherId,
}

impl fmt::Display for Hint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("its cell is empty"),
            Self::Either { text, point, comma } => {
                write!(f, "{text} is {point} with a decimal point and {comma} with a decimal comma")
            }
            Self::WithComma { text, comma } => write!(f, "a decimal comma reads {text} as {comma}"),
            Self::NotWithComma { text } => write!(f, "{text} has no decimal comma"),
            Self::NoAmount { text } => write!(f, "it is {text:?}"),
            Self::OtherDateForm { text, format } => write!(f, "{text} is no date of the form {format}"),
            Self::DateForm { text, examples } => {
                write!(f, "{text} needs a form of dates, such as {}", examples.join(" or "))
            }
            Self::Status { text } => write!(f, "{text:?} is none of {}", statuses()),
            Self::Currency { text } => write!(f, "{text:?} is no code such as AUD"),
            Self::OtherId => f.write_str("leave out a column with the ids of another program"),
        }
    }
}

/// Returns the names of the statuses of invoices, as a list.
pub fn statuses() -> String {
    InvoiceStatus::ALL.iter().map(|status| status.as_str()).collect::<Vec<_>>().join(", ")
}
