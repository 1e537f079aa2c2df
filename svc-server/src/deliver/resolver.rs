//! Names to addresses, for the check of webhook targets.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Shared, WeakShared};
use svc_core::sync::lock;
use tokio::sync::Semaphore;

/// How long a look-up may take before the name counts as one that does not resolve.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Threads for names that resolved the last time, and as many again for all others.
const THREADS: usize = 64;
/// Names that are remembered at most.
const REMEMBERED: usize = 10_000;

/// Looks host names up.
pub trait Resolver: Send + Sync {
    /// All addresses of a name; none when it does not resolve.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Vec<IpAddr>>;
}

/// The resolver of the operating system.
///
/// It blocks a thread for as long as a name server keeps silent, far beyond the time that a caller waits. So names
/// that resolved the last time have threads of their own, which the dead names of others cannot use up, and those
/// who ask for the same name at the same time share one look-up.
#[derive(Clone)]
pub struct SystemResolver(Arc<Inner>);

struct Inner {
    look_up: Box<LookUp>,
    proven_threads: Arc<Semaphore>,
    other_threads: Arc<Semaphore>,
    proven: Mutex<HashSet<String>>,
    running: Mutex<HashMap<String, WeakShared<Running>>>,
}

type LookUp = dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync;
type Running = BoxFuture<'static, Vec<IpAddr>>;

impl Default for SystemResolver {
    fn default() -> Self {
        // The port is of no consequence.
        Self::new(|host| Ok((host, 443).to_socket_addrs()?.map(|address| address.ip()).collect()))
    }
}

impl SystemResolver {
    fn new(look_up: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Inner {
            look_up: Box::new(look_up),
            proven_threads: Arc::new(Semaphore::new(THREADS)),
            other_threads: Arc::new(Semaphore::new(THREADS)),
            proven: Mutex::default(),
            running: Mutex::default(),
        }))
    }

    /// The look-up of a name that runs already, or a new one.
    fn join(&self, host: &str) -> Shared<Running> {
        let mut running = lock(&self.0.running);
        if let Some(shared) = running.get(host).and_then(WeakShared::upgrade) {
            return shared;
        }
        let (inner, name) = (Arc::clone(&self.0), host.to_owned());
        let shared = async move {
            let addresses = inner.look_up(&name).await;
            lock(&inner.running).remove(&name);
            addresses
        };
        let shared = shared.boxed().shared();
        if running.len() >= REMEMBERED {
            running.retain(|_, look_up| look_up.upgrade().is_some());
        }
        if let Some(weak) = shared.downgrade() {
            running.insert(host.to_owned(), weak);
        }
        shared
    }
}

impl Inner {
    async fn look_up(self: &Arc<Self>, host: &str) -> Vec<IpAddr> {
        let proven = lock(&self.proven).contains(host);
        let threads = if proven { &self.proven_threads } else { &self.other_threads };
        let Ok(thread) = Arc::clone(threads).acquire_owned().await else { return Vec::new() };
        let (inner, name) = (Arc::clone(self), host.to_owned());
        let look_up = tokio::task::spawn_blocking(move || {
            let addresses = (inner.look_up)(&name).unwrap_or_default();
            drop(thread);
            addresses
        });
        look_up.await.unwrap_or_default()
    }

    fn note(&self, host: &str, resolves: bool) {
        let mut proven = lock(&self.proven);
        if !resolves {
            proven.remove(host);
        } else if !proven.contains(host) {
            if proven.len() >= REMEMBERED {
                proven.clear();
            }
            proven.insert(host.to_owned());
        }
    }
}

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
        Box::pin(async move {
            let addresses = tokio::time::timeout(TIMEOUT, self.join(host)).await.unwrap_or_default();
            self.0.note(host, !addresses.is_empty());
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

    /// A resolver for which names that begin with `dead` hang until the sender is dropped.
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
    async fn dead_names_delay_no_name_that_resolved_before() {
        let (resolver, release, _) = resolver();
        assert_eq!(resolver.resolve("alive.example").await, [ADDRESS]);
        let dead: Vec<String> = (0..4 * THREADS).map(|n| format!("dead{n}.example")).collect();
        let mut waiting: Vec<_> = dead.iter().map(|name| resolver.resolve(name)).collect();
        let mut all = Box::pin(futures_util::future::join_all(waiting.iter_mut()));
        // All have asked before the name that is alive does.
        assert!((&mut all).now_or_never().is_none());
        assert_eq!(resolver.0.other_threads.available_permits(), 0);
        assert_eq!(resolver.resolve("alive.example").await, [ADDRESS]);
        drop(release);
        assert!(all.await.iter().all(Vec::is_empty));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_same_name_at_the_same_time_is_one_look_up() {
        let (resolver, release, asked) = resolver();
        let mut all = Box::pin(futures_util::future::join_all((0..100).map(|_| resolver.resolve("dead.example"))));
        assert!((&mut all).now_or_never().is_none());
        drop(release);
        assert!(all.await.iter().all(Vec::is_empty));
        assert_eq!(asked.swap(0, Ordering::SeqCst), 1);
        // But one after the other are two.
        for _ in 0..2 {
            assert_eq!(resolver.resolve("alive.example").await, [ADDRESS]);
        }
        assert_eq!(asked.load(Ordering::SeqCst), 2);
    }
}
