//! The svc API over HTTP.
//!
//! [`Api`] is a service: hand it requests, mount it in an axum application, or let [`serve`] listen for it.
//! A request goes through [`service`] (the order of the checks) by way of the table in [`routes`], which names
//! the handler in [`api`]; errors become answers in [`problem`], and only there.
//!
//! ```
//! use svc_core::env::Env;
//! use svc_core::store::memory::MemoryStore;
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = std::sync::Arc::new(MemoryStore::new(Env::system()));
//! let api = svc_server::Api::new(store, svc_server::Settings::default());
//! let request = http::Request::get("/healthz").header("host", "localhost");
//! let request = request.body(http_body_util::Empty::<bytes::Bytes>::new()).unwrap();
//! assert_eq!(api.call(request, [127, 0, 0, 1].into()).await.status(), 200);
//! # });
//! ```
//!
//! With the feature `otlp` the binary sends spans to a collector; see [`telemetry::init`].

pub mod api;
pub mod deliver;
pub mod metrics;
pub mod program;
pub mod telemetry;

pub use self::api::{Api, Settings};
