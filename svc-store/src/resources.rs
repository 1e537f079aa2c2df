//! The tables of the resources.

mod bookings;
pub(crate) mod contacts;
mod invoices;
mod jobs;
pub(crate) mod payments;
mod quotes;
