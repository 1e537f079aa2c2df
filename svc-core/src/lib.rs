//! The product without HTTP, SQL or a runtime: what a contact, an invoice or a booking is, what may be
//! done with it, and what happens then.
//!
//! - [`accounts`], [`resources`], [`webhooks`] and [`imports`] are its areas.
//! - [`store`] is the seam to a database. Rules are async functions over `&mut dyn Tx`, so an embedding
//!   application can run several of them as one transaction.
//! - [`mod@env`] is time, randomness and identifiers, handed in, so that every run can be repeated exactly.
//!
//! ```
//! use svc_core::accounts::tenants;
//! use svc_core::env::Env;
//! use svc_core::resources::{contacts::Contact, crud};
//! use svc_core::store::{Store, memory::MemoryStore};
//! # use svc_core::input::Input;
//! # futures_util::FutureExt::now_or_never(async {
//! let store: &dyn Store = &MemoryStore::new(Env::system());
//! let contact = store
//!     .write("example", |tx| {
//!         Box::pin(async move {
//!             let tenant = tenants::create(tx, tenants::TenantCreate::named("Harbour Plumbing")).await?;
//!             let input = Input::from_body(br#"{"email": "ada@example.com"}"#)?;
//!             crud::create::<Contact>(tx, tenant.id, input).await
//!         })
//!     })
//!     .await?;
//! assert_eq!(contact.email.unwrap().as_str(), "ada@example.com");
//! # Ok::<(), svc_core::error::Error>(())
//! # }).unwrap().unwrap();
//! ```

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
