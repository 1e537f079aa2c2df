//! The HTTP API of [`svc_core`] as a service, and the program that serves it.
//!
//! [`Api`] responds to requests. Call it directly, as below, mount it in an axum or tower application
//! (`examples/axum.rs`, `actix.rs`, `hyper.rs`), or let [`program::serve`] listen for it. The other modules are:
//!
//! - [`api`]: routes, the order of checks, rate limits, failures and the OpenAPI document
//! - `mcp` (a feature, see [`Builder`]): tools for assistants
//! - `dashboard` (a feature): pages for people, in the browser
//! - [`deliver`]: the client that sends webhooks, and the resolver of their hosts
//! - [`streams`]: sends events to NATS, RabbitMQ or Kafka, each with a feature
//! - [`metrics`] and [`telemetry`]: what operators see
//! - [`program`]: flags, listeners and the life of the process
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
//! With the feature `otlp` the program sends spans to an OpenTelemetry collector; see [`telemetry::init`].

pub mod api;
mod background;
mod builder;
#[cfg(feature = "dashboard")]
pub mod dashboard;
pub mod deliver;
#[cfg(any(feature = "docs", feature = "mcp"))]
mod manual;
#[cfg(feature = "mcp")]
mod mcp;
pub mod metrics;
#[cfg(feature = "dashboard")]
mod oauth;
#[cfg(feature = "standalone")]
pub mod program;
pub mod streams;
pub mod telemetry;

#[cfg(feature = "dashboard")]
pub use self::api::OauthClients;
pub use self::api::{Api, OverTls, Peer, ResponseBody, Settings};
pub use self::background::Background;
pub use self::builder::Builder;
