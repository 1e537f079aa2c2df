//! The tables of the resources.

mod bookings;
mod contacts;
mod invoices;
mod jobs;
mod payments;
mod quotes;
