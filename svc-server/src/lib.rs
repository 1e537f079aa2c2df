//! The HTTP API of [`svc_core`] as a service, and the program that serves it.
//!
//! [`Builder`] makes an [`Api`], which responds to requests, and its [`Background`], which sends webhooks. Mount the first and run
//! the second, as below and in `examples/axum.rs`, `actix.rs` and `hyper.rs`, or let [`program::serve`] listen. The modules are:
//!
//! - [`api`]: the operations, the order of checks, and the OpenAPI document
//! - [`kernel`]: the parts that all surfaces share, such as rate limits and errors
//! - `mcp` (a feature, see [`Builder`]): tools for assistants
//! - `dashboard` (a feature): pages for people, in the browser
//! - [`deliver`]: the client that sends webhooks
//! - [`outbound`]: connections to other servers, and the resolver of their hosts
//! - [`streams`]: sends events to NATS, RabbitMQ or Kafka, each with a feature
//! - [`metrics`] and [`telemetry`]: what operators see
//! - [`program`]: flags, listeners and the life of the process
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use svc_core::prelude::*;
//! use svc_server::Builder;
//!
//! let svc = Svc::in_memory();
//! let (api, background) = Builder::new(&svc).mount("/business").build();
//! let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
//! let background = tokio::spawn(background.run(async { drop(stopped.await) }));
//! // Here the application serves `api` below /business, until it is stopped.
//! # drop(api);
//! drop(stop);
//! background.await.unwrap();
//! # });
//! ```
//!
//! With the feature `otlp` the program exports traces, metrics and the log to an OpenTelemetry collector; see [`telemetry::init`].

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
