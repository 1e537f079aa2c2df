//! The set-up that the tests of all crates share.
//!
//! [`Fixture`] is an account with its records, [`TestServer`] an API over it, and [`postgres`] a PostgreSQL server. The rest is
//! for tests with processes: databases, disks that fail, clients and endpoints.

#![expect(missing_docs, reason = "most names of requests and responses say what they are")]
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "for tests only")]

#[cfg(feature = "server")]
pub mod database;
#[cfg(feature = "server")]
pub mod disk;
#[cfg(feature = "server")]
pub mod endpoint;
pub mod fixture;
#[cfg(feature = "server")]
pub mod frames;
#[cfg(feature = "server")]
pub mod http;
#[cfg(feature = "server")]
pub mod node;
pub mod postgres;
#[cfg(feature = "server")]
pub mod server;
#[cfg(feature = "server")]
pub mod tenant;

pub use self::fixture::Fixture;
#[cfg(feature = "server")]
pub use self::server::{Call, Response, TestServer};

/// The result of a step; any error ends the run.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
