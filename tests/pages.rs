//! The code of the pages in `docs/`, which is compiled and run as the documentation of this crate.

/// Compiles and runs the code of `docs/embedding.md`.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
pub struct EmbeddingPage;

/// Compiles and runs the code of `docs/stores.md`.
#[cfg(doctest)]
#[doc = include_str!("../docs/stores.md")]
pub struct StoresPage;

/// Compiles the code of `docs/dashboard.md`.
#[cfg(doctest)]
#[doc = include_str!("../docs/dashboard.md")]
pub struct DashboardPage;

/// Compiles the code of `docs/platform.md`.
#[cfg(doctest)]
#[doc = include_str!("../docs/platform.md")]
pub struct PlatformPage;

/// Compiles the code of `docs/webhooks.md`.
#[cfg(doctest)]
#[doc = include_str!("../docs/webhooks.md")]
pub struct WebhooksPage;
