//! Block `scale`: what single operations cost at the limits of scale, each on a database of its own and printed as a line.

mod backlog;
mod due_endpoints;
mod fan_out;
mod lists;
mod many_tenants;
mod retention;

use std::path::Path;
use std::time::{Duration, Instant};

use svc_core::env::Env;
use svc_core::prelude::*;
use svc_store::SqliteStore;

use crate::error::Result;
use crate::options::Options;

/// The most subscriptions that a tenant can have.
const MAX_SUBSCRIPTIONS: u32 = 1_000;

/// Measures all figures.
pub(crate) fn run(options: &Options) -> Result<()> {
    let runtime = crate::child::runtime()?;
    runtime.block_on(fan_out::run())?;
    runtime.block_on(retention::run())?;
    due_endpoints::run()?;
    runtime.block_on(many_tenants::run())?;
    lists::run(&runtime, options.pending)?;
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
    let tenant = svc.tenants().create(TenantCreate::named("Example")).await?.id;
    let create =
        svc.transaction("bench.subscriptions", (tenant, subscriptions), async |tx, (tenant, subscriptions)| {
            for number in 0..*subscriptions {
                let url =
                    WebhookUrl::parse(&format!("https://example.com/{number}")).map_err(|issue| issue.on("url"))?;
                tx.tenant(*tenant)
                    .webhooks()
                    .create(WebhookCreate { url, events: EventSet::All, description: None })
                    .await?;
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
            tx.tenant(*tenant).events().emit(EventKind::StayCreated, serde_json::json!({ "id": number })).await?;
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
