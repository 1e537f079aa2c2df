//! Tables of the resources: each names its columns and says its filters in SQL.

mod bookings;
mod contacts;
mod invoices;
mod jobs;
mod quotes;
