//! Block `scale`: what single operations cost at the limits of scale, each on a database of its own and printed as a line.

mod backlog;
mod due_endpoints;
mod fan_out;
mod lists;
mod many_tenants;
mod reads;
mod retention;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use svc_core::env::Env;
use svc_core::prelude::*;
use svc_store::SqliteStore;
use tokio::task::JoinHandle;

use crate::error::Result;
use crate::options::Options;

/// The most subscriptions that a tenant can have.
const MAX_SUBSCRIPTIONS: u32 = 1_000;
/// Clients that read or write at the same time.
const CLIENTS: usize = 4;

/// Measures all figures.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = crate::child::runtime()?;
    runtime.block_on(fan_out::run())?;
    runtime.block_on(retention::run())?;
    due_endpoints::run()?;
    runtime.block_on(many_tenants::run())?;
    lists::run(&runtime, options.pending)?;
    reads::run(&runtime)?;
    runtime.block_on(backlog::run(options.pending))
}

/// Opens a database whose tenants may have many subscriptions.
fn open(file: &Path) -> Result<Svc> {
    let mut env = Env::system();
    env.max_webhooks = MAX_SUBSCRIPTIONS;
    Ok(Svc::new(SqliteStore::open(file, env)?))
}

/// Creates a tenant with this many subscriptions to all events.
async fn tenant_with_subscriptions(svc: &Svc, subscriptions: u32) -> Result<TenantId> {
    let tenant = svc.accounts().create(TenantCreate::named("Example")).await?.id;
    let create =
        svc.transaction("bench.subscriptions", (tenant, subscriptions), async |tx, (tenant, subscriptions)| {
            for number in 0..*subscriptions {
                let url =
                    WebhookUrl::parse(&format!("https://example.com/{number}")).map_err(|issue| issue.on("url"))?;
                tx.account(*tenant).webhooks().create(WebhookCreate::new(url, EventSet::All)).await?;
            }
            Ok(())
        });
    create.await?;
    Ok(tenant)
}

/// Writes this many events of a tenant in one commit.
async fn emit(svc: &Svc, tenant: TenantId, events: u32) -> Result<()> {
    let emit = svc.transaction("bench.events", (tenant, events), async |tx, (tenant, events)| {
        for number in 0..*events {
            tx.account(*tenant).events().emit(EventKind::StayCreated, serde_json::json!({ "id": number })).await?;
        }
        Ok(())
    });
    Ok(emit.await?)
}

/// Runs an operation this many times and returns its median time.
async fn median<T>(times: usize, mut operation: impl AsyncFnMut() -> Result<T>) -> Result<Duration> {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let started = Instant::now();
        operation().await?;
        taken.push(started.elapsed());
    }
    Ok(middle(taken))
}

fn middle(mut taken: Vec<Duration>) -> Duration {
    taken.sort_unstable();
    taken.get(taken.len() / 2).copied().unwrap_or_default()
}

/// Clients that repeat an operation, each without a pause, while something else is measured.
struct Clients {
    stop: Arc<AtomicBool>,
    running: Vec<JoinHandle<std::result::Result<Vec<Duration>, Error>>>,
}

impl Clients {
    /// Starts clients that end when each has done its share of `most`, or when they are told to [`stop`](Self::stop).
    fn start<F>(svc: &Svc, most: usize, operation: impl Fn(Svc, usize) -> F + Clone + Send + 'static) -> Self
    where
        F: Future<Output = std::result::Result<(), Error>> + Send,
    {
        let stop = Arc::new(AtomicBool::new(false));
        let client = |number| {
            let (svc, stop, operation) = (svc.clone(), Arc::clone(&stop), operation.clone());
            tokio::spawn(async move {
                let mut times = Vec::new();
                while times.len() < most / CLIENTS && !stop.load(Ordering::Acquire) {
                    let started = Instant::now();
                    operation(svc.clone(), CLIENTS * times.len() + number).await?;
                    times.push(started.elapsed());
                }
                Ok(times)
            })
        };
        let running = (0..CLIENTS).map(client).collect();
        Self { stop, running }
    }

    /// Tells the clients to end, and returns the times of all.
    async fn stop(self) -> Result<Times> {
        self.stop.store(true, Ordering::Release);
        self.finish().await
    }

    /// Waits until each has done its share, and returns the times of all.
    async fn finish(self) -> Result<Times> {
        let mut times = Vec::new();
        for client in self.running {
            times.extend(client.await??);
        }
        times.sort_unstable();
        Ok(Times(times))
    }
}

/// The times that operations took, in ascending order.
struct Times(Vec<Duration>);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |permille: usize| self.0.get(self.0.len() * permille / 1_000).copied().unwrap_or_default();
        let (count, p50, p99, p999) = (self.0.len(), at(500), at(990), at(999));
        write!(f, "{count} of them: p50 {p50:.1?}, p99 {p99:.1?}, p99.9 {p999:.1?}")
    }
}
