//! The HTTP API of [`svc_core`] as a service, and the program that serves it.
//!
//! [`Api`] responds to requests. Call it directly, as below, mount it in an axum or tower application
//! (`examples/axum.rs`, `actix.rs`, `hyper.rs`), or let [`program::serve`] listen for it. The other modules are:
//!
//! - [`api`]: the operations, the order of checks, and the OpenAPI document
//! - [`kernel`]: what all that answers requests shares, such as rate limits and failures
//! - `mcp` (a feature, see [`Builder`]): tools for assistants
//! - `dashboard` (a feature): pages for people, in the browser
//! - [`deliver`]: the client that sends webhooks
//! - [`outbound`]: connections to other servers, and the resolver of their hosts
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
mod compose;
#[cfg(feature = "dashboard")]
pub mod dashboard;
pub mod deliver;
#[cfg(feature = "docs")]
mod docs;
mod home;
mod jobs;
#[cfg_attr(not(feature = "standalone"), expect(dead_code, reason = "what is not built uses the rest"))]
pub mod kernel;
#[cfg(any(feature = "docs", feature = "mcp"))]
mod manual;
#[cfg(feature = "mcp")]
mod mcp;
pub mod metrics;
#[cfg(feature = "dashboard")]
mod oauth;
pub mod outbound;
mod probes;
#[cfg(feature = "standalone")]
pub mod program;
pub mod streams;
pub mod telemetry;

pub use self::background::Background;
pub use self::builder::Builder;
pub use self::compose::{Api, Surfaces};
#[cfg(feature = "dashboard")]
pub use self::dashboard::DashboardSettings;
pub use self::jobs::Jobs;
pub use self::kernel::apps::{OauthClients, OauthSettings};
pub use self::kernel::body::{Incoming, MAX_BODY};
pub use self::kernel::cors::Cors;
pub use self::kernel::head::{MAX_HEADERS, MAX_URI};
pub use self::kernel::origin::Origin;
pub use self::kernel::peer::{OverTls, Peer};
pub use self::kernel::response::ResponseBody;
pub use self::kernel::settings::Settings;
pub use self::outbound::EgressProxy;
