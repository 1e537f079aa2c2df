//! The product without HTTP, SQL or a runtime: what a contact, an invoice or a booking is, what may be
//! done with it, and what happens then.
//!
//! - One room per resource: [`contacts`], [`invoices`], [`quotes`], [`bookings`], [`jobs`], [`webhooks`];
//!   beside them [`tenants`], [`keys`], [`events`], [`imports`].
//! - [`resource`] holds the form that serves them all: get, list, create, update, delete.
//! - [`store`] is the seam to a database. Rules are async functions over `&mut dyn Tx`, so an embedding
//!   application can run several of them as one transaction.
//! - [`mod@env`] is time, randomness and identifiers, handed in, so that every run can be repeated exactly.
//!
//! ```
//! use svc_core::{contacts::Contact, env::Env, resource, store::memory::MemoryStore, store::Store, tenants};
//! # use svc_core::input::Input;
//! # futures_util::FutureExt::now_or_never(async {
//! let store: &dyn Store = &MemoryStore::new(Env::system());
//! let contact = store
//!     .write("example", |tx| {
//!         Box::pin(async move {
//!             let tenant = tenants::create(tx, tenants::TenantCreate::named("Harbour Plumbing")).await?;
//!             let input = Input::from_body(br#"{"email": "ada@example.com"}"#)?;
//!             resource::create::<Contact>(tx, tenant.id, input).await
//!         })
//!     })
//!     .await?;
//! assert_eq!(contact.email.unwrap().as_str(), "ada@example.com");
//! # Ok::<(), svc_core::error::Error>(())
//! # }).unwrap().unwrap();
//! ```

pub mod address;
pub mod audit;
pub mod bookings;
pub mod contacts;
pub mod deliveries;
pub mod env;
pub mod error;
pub mod events;
pub mod idempotency;
pub mod imports;
pub mod input;
pub mod invoices;
pub mod jobs;
pub mod json;
pub mod keys;
pub mod limits;
pub mod page;
pub mod quotes;
pub mod replays;
pub mod resource;
pub mod retention;
pub mod sender;
pub mod signing;
pub mod stats;
pub mod store;
pub mod tenants;
pub mod types;
pub mod webhooks;
