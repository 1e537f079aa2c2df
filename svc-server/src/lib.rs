//! The svc API over HTTP.
//!
//! [`Api`] is a service: hand it requests, mount it in an axum application, or let [`serve`] listen for it.
//! A request goes through [`service`] (the order of the checks) by way of the table in [`routes`], which names
//! the handler in [`api`]; errors become answers in [`problem`], and only there.
//!
//! ```
//! use svc_core::{env::Env, store::memory::MemoryStore};
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
pub mod auth;
pub mod config;
pub mod cors;
pub mod deliver;
pub mod demo;
pub mod idempotency;
pub mod limits;
pub mod metrics;
pub mod openapi;
pub mod problem;
pub mod proxy;
pub mod reply;
pub mod resolve;
pub mod routes;
pub mod run;
pub mod serve;
pub mod service;
pub mod telemetry;
mod upkeep;

pub use self::service::{Api, Settings};
