//! Names to addresses, for the check of webhook targets.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::BoxFuture;

/// How long a look-up may take before the name counts as one that does not resolve.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Looks host names up.
pub trait Resolver: Send + Sync {
    /// All addresses of a name; none when it does not resolve.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Vec<IpAddr>>;
}

/// The resolver of the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
        Box::pin(async move {
            match tokio::time::timeout(TIMEOUT, tokio::net::lookup_host((host, 443))).await {
                Ok(Ok(addresses)) => addresses.map(|address| address.ip()).collect(),
                _ => Vec::new(),
            }
        })
    }
}
