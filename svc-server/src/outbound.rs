//! Connections that this server opens: to endpoints, collectors, identity providers, and through a proxy.

pub(crate) mod dial;
mod happy_eyeballs;
mod proxy;
pub mod resolver;
pub(crate) mod tls_errors;

pub use self::proxy::EgressProxy;

/// The name by which the server introduces itself.
pub(crate) const USER_AGENT_VALUE: &str = concat!("svc-webhooks/", env!("CARGO_PKG_VERSION"));
