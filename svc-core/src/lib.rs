//! A business API as a library: contacts, invoices, quotes, bookings, jobs and webhooks of many accounts.
//!
//! This crate defines the records, the rules by which they change, and the events and webhook deliveries that follow. It
//! has no HTTP, no SQL and no async runtime. [svc-server](https://docs.rs/svc-server) serves it over HTTP,
//! [svc-store](https://docs.rs/svc-store) keeps it in SQLite or PostgreSQL, and an application can also call it
//! directly.
//!
//! # Getting started
//!
//! [`Svc`] is a handle to a store, with every operation as a method. This creates an account, which is a business,
//! and its first contact and invoice:
//!
//! ```
//! use svc_core::prelude::*;
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let svc = Svc::in_memory();
//! let tenant = svc.accounts().create(TenantCreate::named("Harbour Plumbing")).await?;
//! let account = svc.account(tenant.id);
//!
//! let contact = account.contacts().create(ContactCreate::new("ada@example.com".parse()?)).await?;
//! let invoice = InvoiceCreate { contact_id: Some(contact.id), ..InvoiceCreate::new("149.50".parse()?) };
//! let invoice = account.invoices().create(invoice).await?;
//! account.invoices().send(invoice.id).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! Each call is a transaction. It commits the change with its event, here `contact.created`, and one delivery for each
//! webhook subscription that matches. [`Svc::transaction`] runs several operations in one transaction.
//!
//! `svc_store::open` returns a store in SQLite or PostgreSQL, for [`Svc::new`]. `examples/embed.rs` is a longer
//! program, which `cargo run -p svc-examples --bin embed` runs in the repository.
//!
//! # Below the facade
//!
//! A [`Store`](store::Store) runs a transaction, which is an async closure over a [`Tx`](store::Tx), and all operations
//! are functions over a `Tx`, such as [`crud::create`](resources::crud::create). A server that parses and authenticates a
//! request in the same transaction as it changes the record calls these.
//!
//! # Map of the modules
//!
//! | Module | Contents |
//! |---|---|
//! | [`service`], [`prelude`] | The facade: every operation as a method, over a store or inside a transaction. |
//! | [`resources`] | The records, their rules and their events. [`crud`](resources::crud) has the operations that all of them share |
//! | [`webhooks`] | Subscriptions, events, deliveries with their retries, replays, signatures. |
//! | [`accounts`] | Tenants, API keys, request signatures, rate limits, idempotency keys, the audit log. |
//! | [`imports`], [`exports`] | Records that were created elsewhere; all records of an account, to be created elsewhere. |
//! | [`changes`] | The content of the audit log: the fields that a change set. |
//! | [`sandboxes`] | The place of each account for testing programs. |
//! | [`requests`] | The log of requests to the API, with the events that each wrote. |
//! | [`lookup`] | Finds records by their id alone, or by a part of it. |
//! | [`oauth`] | How third-party apps get access to an account. |
//! | [`platform`] | The inputs and records of the platform API, for the server and its clients. |
//! | [`store`] | The interface to a database, and a store in memory. |
//! | [`input`], [`pages`] | Strict JSON and query strings to typed input; limits, order and cursors of lists. |
//! | [`values`] | Email addresses, amounts, timestamps and the other values that records consist of. |
//! | [`mod@env`], [`crypto`], [`error`] | The clock and randomness; digests and secrets; everything that can fail. |
//!
//! `error`, `crypto`, `env`, `values`, `input` and `pages` import none of the modules above them in this table. The promises of
//! the API itself are in `docs/contract.md` of the repository.
//!
//! # Features
//!
//! - `chrono` adds conversions of [`Timestamp`](values::Timestamp) and [`Date`](values::Date) from and to the types of
//!   chrono. Those of jiff are always there.

// The code that the derives generate names this crate as an application would.
extern crate self as svc_core;

pub mod accounts;
pub mod calendar;
pub mod changes;
pub mod crypto;
pub mod env;
pub mod error;
pub mod exports;
pub mod find;
pub mod imports;
pub mod input;
pub mod lookup;
pub mod oauth;
pub mod operation;
pub mod pages;
pub mod personal;
pub mod platform;
pub mod prelude;
pub mod requests;
pub mod resources;
pub mod sandboxes;
pub mod service;
pub mod shared_documents;
pub mod store;
pub mod sync;
pub mod today;
pub mod values;
pub mod webhooks;

pub use self::error::Error;
pub use self::service::Svc;
