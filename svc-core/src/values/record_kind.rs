//! The kinds of records that a business keeps.

use super::TextEnum;

/// The kind of a record, in the order in which exports have them: a record comes after those that it refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum RecordKind {
    /// Contacts that are not deleted.
    Contact,
    /// Invoices.
    Invoice,
    /// Quotes.
    Quote,
    /// Bookings.
    Booking,
    /// Jobs.
    Job,
}
