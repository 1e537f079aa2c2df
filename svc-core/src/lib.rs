//! A business API as a library: contacts, invoices, quotes, bookings, jobs and webhooks of many tenants.
//!
//! This crate defines the records, the rules by which they change, and the events and webhook deliveries that follow. It
//! has no HTTP, no SQL and no async runtime. [svc-server](https://docs.rs/svc-server) serves it over HTTP,
//! [svc-store](https://docs.rs/svc-store) keeps it in SQLite or PostgreSQL, and an application can also call it
//! directly.
//!
//! # Getting started
//!
//! A [`Store`](store::Store) runs a transaction, which is an async closure over a [`Tx`](store::Tx). All operations are
//! functions over a `Tx`, so one transaction can contain any number of them. This one creates a tenant, which is a
//! business account, and its first contact:
//!
//! ```
//! use svc_core::accounts::tenants::{self, TenantCreate};
//! use svc_core::env::Env;
//! use svc_core::input::Input;
//! use svc_core::resources::{contacts::Contact, crud};
//! use svc_core::store::{Store, memory::MemoryStore};
//!
//! # futures_util::FutureExt::now_or_never(async {
//! let store = MemoryStore::new(Env::system());
//! let contact = (&store as &dyn Store)
//!     .write("sign up", |tx| {
//!         Box::pin(async move {
//!             let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?;
//!             let input = Input::from_body(br#"{"email": "ada@example.com", "first_name": "Ada"}"#)?;
//!             crud::create::<Contact>(tx, tenant.id, input).await
//!         })
//!     })
//!     .await?;
//! assert_eq!(contact.email.unwrap().as_str(), "ada@example.com");
//! # Ok::<(), svc_core::error::Error>(())
//! # }).unwrap().unwrap();
//! ```
//!
//! If the closure returns `Ok`, its changes are committed, with the event `contact.created` and one delivery for each
//! subscription that matches. If it returns `Err`, nothing is changed. The name, here `sign up`, appears in metrics.
//!
//! The example `embed` is a longer program: `cargo run -p svc-core --example embed`.
//!
//! # A transaction may run again
//!
//! A store runs the closure again after a conflict with another transaction. So the closure must not have effects other
//! than through its `Tx`, and must not wait for anything else. That is also why it borrows its input and clones what it
//! needs.
//!
//! # Map of the modules
//!
//! | Module | Contents |
//! |---|---|
//! | [`resources`] | The records, their rules and their events. [`crud`](resources::crud) has the operations that all of them share, [`pages`](resources::pages) the lists. |
//! | [`webhooks`] | Subscriptions, events, deliveries with their retries, replays, signatures. |
//! | [`accounts`] | Tenants, API keys, request signatures, rate limits, idempotency keys, the audit log. |
//! | [`imports`] | Records that were created elsewhere. |
//! | [`store`] | The interface to a database, a store in memory, and the conformance suite for stores. |
//! | [`input`] | Strict JSON and query strings to typed input. |
//! | [`values`] | Email addresses, amounts, timestamps and the other values that records consist of. |
//! | [`mod@env`], [`crypto`], [`error`] | The clock and randomness; digests and secrets; everything that can fail. |
//!
//! `error`, `crypto`, `env`, `values` and `input` import none of the modules above them in this table. The promises of
//! the API itself are in `docs/contract.md` of the repository.
//!
//! # Features
//!
//! - `conformance` adds [`store`]'s suite of cases that every store must pass. Enable it to implement one.

// The code that the derives generate names this crate as an application would.
extern crate self as svc_core;

pub mod accounts;
pub mod crypto;
pub mod env;
pub mod error;
pub mod imports;
pub mod input;
pub mod resources;
pub mod store;
pub mod sync;
pub mod values;
pub mod webhooks;
