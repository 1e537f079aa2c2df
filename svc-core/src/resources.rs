//! The records that the API serves: contacts, invoices, quotes, bookings and jobs.
//!
//! [`crud`] holds the operations that are the same for all of them (get, list, create, update, delete) and [`pages`]
//! the order, cursors and limits of lists. The module of a resource holds what differs: its fields, its rules, its
//! events.

pub mod bookings;
pub mod contacts;
pub mod crud;
pub mod invoices;
pub mod jobs;
pub mod pages;
pub mod quotes;
