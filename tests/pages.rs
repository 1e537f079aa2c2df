//! The code of the pages in `docs/` and of svc-derive, which is compiled and run as the documentation of this crate.

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

/// Compiles and runs the example of svc-derive.
#[cfg(doctest)]
#[doc = include_str!("../svc-derive/examples/derives.md")]
pub struct Derives;

/// Compiles and runs the example of svc-derive.
#[cfg(doctest)]
#[doc = include_str!("../svc-derive/examples/record.md")]
pub struct DeriveRecord;

/// Compiles and runs the example of svc-derive.
#[cfg(doctest)]
#[doc = include_str!("../svc-derive/examples/input.md")]
pub struct DeriveInput;

/// Compiles and runs the example of svc-derive.
#[cfg(doctest)]
#[doc = include_str!("../svc-derive/examples/apply.md")]
pub struct DeriveApply;

/// Compiles and runs the example of svc-derive.
#[cfg(doctest)]
#[doc = include_str!("../svc-derive/examples/text_enum.md")]
pub struct DeriveTextEnum;
