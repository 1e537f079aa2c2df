//! A client of the svc API.
//!
//! It speaks the public API of a service with the records of [`svc_core`]: a [`Contact`](prelude::Contact) that you
//! read is the type that the service wrote, with exact amounts and parsed times. Failures on the way are handled
//! where they can be: a request to a busy service is repeated when it says so, and a create whose response was lost is repeated
//! without a second record.
//!
//! # Examples
//!
//! ```no_run
//! use svc_client::prelude::*;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Client::builder("https://svc.example.com", &std::env::var("SVC_KEY")?).build()?;
//!
//! let ada = match client.contacts().create(&ContactCreate::new("ada@example.com".parse()?)).await {
//!     Ok(contact) => contact.id,
//!     Err(Error::Api(error)) if error.code == "email_taken" => error.existing_id.ok_or("no id")?.into(),
//!     Err(error) => return Err(error.into()),
//! };
//! let job = JobCreate { contact_id: Some(ada), ..JobCreate::new("Replace hot water system".parse()?) };
//! println!("{}", client.jobs().create(&job).await?.job_number);
//! # Ok(())
//! # }
//! ```
//!
//! The examples of the repository are programs to start from: `nightly_sync` keeps a copy in CSV files,
//! `webhook_receiver` verifies deliveries and reads the records that they are about, and `bulk_create` creates thousands
//! of records as fast as the rate limit lets it.
//!
//! # Collections
//!
//! [`Client::contacts`] and its like return a [`Collection`], with the operations that the API has for it:
//!
//! | Operation | Method |
//! |---|---|
//! | Create | [`create`](Collection::create), [`create_with_key`](Collection::create_with_key) |
//! | Read | [`get`](Collection::get), [`get_if_changed`](Collection::get_if_changed) |
//! | Change | [`update`](Collection::update), [`update_if`](Collection::update_if) |
//! | Delete | [`delete`](Collection::delete), [`delete_if`](Collection::delete_if) |
//! | List | [`list`](Collection::list), with [`page`](List::page), [`pages`](List::pages) and [`all`](List::all) |
//! | Keep a copy | [`sync_since`](Collection::sync_since) |
//!
//! A record comes with its version, an [`ETag`]. `update_if` changes the record only if it still has that version, so that
//! two programs do not undo each other's changes.
//!
//! # Apps
//!
//! An app that owners let work on their accounts (OAuth 2.0) has a [`TokenSource`] in place of a key:
//! [`Client::builder_with_tokens`]. The client refreshes its tokens.
//!
//! # The platform API
//!
//! [`ClientBuilder::build_platform`] returns a [`Platform`], with which programs of the operator work on all
//! accounts. Its collections have the same methods and more: [`AccountClient`] has them all.
//!
//! # Retries
//!
//! A call is repeated when the service is busy or no response arrives; [`RetryPolicy`] says how often and when. Every
//! request can be repeated: each POST carries an `Idempotency-Key`, the same for all its attempts, and each attempt of a
//! key that signs is [signed](ClientBuilder::signing_secret) anew.
//!
//! # Errors
//!
//! [`Error::Api`] is what the service refused, with its code and its failing fields. [`Error::Transport`] says that no
//! response arrived, and [`Error::UnexpectedResponse`] that one did which is not of the API, such as the error page of a
//! proxy. Nothing panics, whatever a server sends: at most 32 MiB of a response are read.
//!
//! # Newer services
//!
//! Fields that this version does not know are ignored. A status that it does not know is an
//! [`Error::UnexpectedResponse`], as the enums of `svc_core` have no other value: update the crate.
//!
//! # Logs
//!
//! Each call is a span `svc_request` of [`tracing`] with the method, the path, the number of attempts, the status and the
//! id of the request. Keys, secrets, bodies and queries are never part of it.
//!
//! # Features
//!
//! - `chrono` adds conversions of [`Timestamp`](prelude::Timestamp) and [`Date`](prelude::Date) from and to the types of
//!   chrono. Those of jiff are always there.

mod builder;
mod client;
mod collection;
mod error;
mod etag;
mod extensions;
mod list;
mod mcp;
pub mod platform;
pub mod prelude;
pub mod records;
mod retry;
mod signer;
mod sync;
mod tokens;
mod transport;

pub use svc_core;
pub use svc_core::pages::Page;

pub use self::builder::ClientBuilder;
pub use self::client::{Client, Ping};
pub use self::collection::Collection;
pub use self::error::{
    ApiError, Error, FieldError, Result, StoreError, TransportError, TransportErrorKind, UnexpectedResponse,
};
pub use self::etag::{ETag, Versioned};
pub use self::list::List;
pub use self::mcp::Mcp;
pub use self::platform::{AccountClient, Platform};
pub use self::retry::RetryPolicy;
pub use self::sync::{SyncPage, SyncPosition};
pub use self::tokens::{TokenSource, Tokens};

/// Compiles the code of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
