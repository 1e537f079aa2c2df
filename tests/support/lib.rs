//! What the test programs `crash`, `hostile`, `load` and `nodes` share: databases, failing disks, server processes,
//! and an HTTP client.

pub mod database;
pub mod disk;
pub mod endpoint;
pub mod frames;
pub mod http;
pub mod node;
pub mod tenant;

/// The result of a step; any error ends the run.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Compiles and runs the code of `docs/embedding.md`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
pub struct EmbeddingPage;

/// Compiles and runs the code of `docs/stores.md`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/stores.md")]
pub struct StoresPage;

/// Compiles the code of `docs/dashboard.md`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/dashboard.md")]
pub struct DashboardPage;

/// Compiles the code of `docs/platform.md`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/platform.md")]
pub struct PlatformPage;

/// Compiles the code of `docs/webhooks.md`.
#[cfg(doctest)]
#[doc = include_str!("../../docs/webhooks.md")]
pub struct WebhooksPage;
