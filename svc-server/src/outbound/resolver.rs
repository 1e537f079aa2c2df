//! Resolving the host names of webhook endpoints.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use svc_core::sync::lock;
use tokio::sync::Semaphore;

pub use svc_core::webhooks::addresses::Resolver;

/// The timeout of a lookup, after which the name counts as one that does not resolve.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The number of threads for names that resolved the last time, and of those for all other names.
const THREADS: usize = 64;
/// The highest number of names that are remembered.
const MAX_REMEMBERED: usize = 10_000;

/// The resolver of the operating system.
///
/// A lookup takes at most 2 seconds for its caller. Its thread is blocked for as long as the name server does not respond,
/// which can be much longer. So names that resolved the last time have a pool of 64 threads of their own, which lookups of
/// failing names cannot exhaust. Concurrent lookups of one name share one thread.
#[derive(Clone)]
pub struct SystemResolver(Arc<Inner>);

struct Inner {
    lookup: Box<Lookup>,
    known_threads: Arc<Semaphore>,
    other_threads: Arc<Semaphore>,
    known: Mutex<HashSet<String>>,
    running: Mutex<HashMap<String, WeakShared<Running>>>,
}

type Lookup = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;
type Running = BoxFuture<'static, Vec<IpAddr>>;

impl Default for SystemResolver {
    fn default() -> Self {
        // The port is not used.
        Self::new(|host| Ok((host, 443).to_socket_addrs()?.map(|address| address.ip()).collect()))
    }
}

impl SystemResolver {
    fn new(lookup: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            lookup: Box::new(lookup),
            known_threads: Arc::new(Semaphore::new(THREADS)),
            other_threads: Arc::new(Semaphore::new(THREADS)),
            known: Mutex::default(),
            running: Mutex::default(),
        }))
    }

    /// Joins the running lookup of a name, or starts one.
    fn join(&self, host: &str) -> Shared<Running> {
        let mut running = lock(&self.0.running);
        if let Some(shared) = running.get(host).and_then(WeakShared::upgrade) {
            return shared;
        }
        let (inner, name) = (Arc::clone(&self.0), host.to_owned());
        let shared = async move {
            let addresses = inner.lookup(&name).await;
            lock(&inner.running).remove(&name);
            addresses
        };
        let shared = shared.boxed().shared();
        if running.len() >= MAX_REMEMBERED {
            running.retain(|_, lookup| lookup.upgrade().is_some());
        }
        if let Some(weak) = shared.downgrade() {
            running.insert(host.to_owned(), weak);
        }
        shared
    }
}

impl Inner {
    async fn lookup(self: &Arc<Self>, host: &str) -> Vec<IpAddr> {
        let known = lock(&self.known).contains(host);
        let threads = if known { &self.known_threads } else { &self.other_threads };
        let Ok(thread) = Arc::clone(threads).acquire_owned().await else { return Vec::new() };
        let (inner, name) = (Arc::clone(self), host.to_owned());
        let lookup = tokio::task::spawn_blocking(move || {
            let addresses = (inner.lookup)(&name).unwrap_or_default();
            drop(thread);
            addresses
        });
        lookup.await.unwrap_or_default()
    }

    /// Remembers whether a name resolves.
    fn remember(&self, host: &str, resolves: bool) {
        let mut known = lock(&self.known);
        if !resolves {
            known.remove(host);
        } else if !known.contains(host) {
            if known.len() >= MAX_REMEMBERED {
                known.clear();
            }
            known.insert(host.to_owned());
        }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
        Box::pin(async move {
            let addresses = tokio::time::timeout(TIMEOUT, self.join(host)).await.unwrap_or_default();
            self.0.remember(host, !addresses.is_empty());
            addresses
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    /// Returns a resolver for which names that start with `dead` hang until the returned sender is dropped, and the number of
    /// its lookups.
    fn resolver() -> (SystemResolver, mpsc::Sender<()>, Arc<AtomicUsize>) {
        let (release, hang) = mpsc::channel();
        let (hang, asked) = (Mutex::new(hang), Arc::new(AtomicUsize::new(0)));
        let count = Arc::clone(&asked);
        let resolver = SystemResolver::new(move |host| {
            count.fetch_add(1, Ordering::SeqCst);
            if host.starts_with("dead") {
                let _ = lock(&hang).recv();
                return Err(io::ErrorKind::TimedOut.into());
            }
            Ok(vec![ADDRESS])
        });
        (resolver, release, asked)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn names_that_do_not_resolve_do_not_delay_a_name_that_resolved_before() {
        let (resolver, release, _) = resolver();
        assert_eq!(resolver.resolve("alive.example").await, [ADDRESS]);
        let dead: Vec<String> = (0..4 * THREADS).map(|n| format!("dead{n}.example")).collect();
        let mut waiting: Vec<_> = dead.iter().map(|name| resolver.resolve(name)).collect();
        let mut all = Box::pin(futures_util::future::join_all(waiting.iter_mut()));
        // All lookups have started before that of the name that resolves.
        assert!((&mut all).now_or_never().is_none());
        assert_eq!(resolver.0.other_threads.available_permits(), 0);
        assert_eq!(resolver.resolve("alive.example").await, [ADDRESS]);
        drop(release);
        assert!(all.await.iter().all(Vec::is_empty));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn concurrent_lookups_of_one_name_are_one_lookup() {
        let (resolver, release, asked) = resolver();
        let mut all = Box::pin(futures_util::future::join_all((0..100).map(|_| resolver.resolve("dead.example"))));
        assert!((&mut all).now_or_never().is_none());
        drop(release);
        assert!(all.await.iter().all(Vec::is_empty));
        assert_eq!(asked.swap(0, Ordering::SeqCst), 1);
        // Consecutive lookups are not shared.
        for _ in 0..2 {
            assert_eq!(resolver.resolve("alive.example").await, [ADDRESS]);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}
