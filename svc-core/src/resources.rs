//! The records of the API: contacts, invoices, quotes, bookings and jobs.
//!
//! The module of a resource has what is particular to it: its fields, its rules and its events. What is the same for all
//! of them is in [`crud`] (get, list, create, update, delete) and [`pages`] (order, cursors and limits of lists).
//! ARCHITECTURE.md describes how to add a field or a resource.

pub mod bookings;
pub mod contacts;
pub mod crud;
pub mod invoices;
pub mod jobs;
pub mod pages;
pub mod quotes;
