//! The tables of the resources.

mod bookings;
pub(crate) mod contacts;
mod invoices;
mod jobs;
mod payments;
mod quotes;
