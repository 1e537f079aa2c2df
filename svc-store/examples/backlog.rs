//! Prints how long the writes of a tenant take while the long backlog of another tenant is held, and how long that takes.
//!
//! ```text
//! cargo run --profile dist -p svc-store --example backlog -- 1000000                     # a temporary SQLite file
//! cargo run --profile dist -p svc-store --example backlog -- 1000000 postgres://…        # an empty database; SVC_SECRET_KEY
//! ```

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::input::Input as _;
use svc_core::resources::contacts::{Contact, ContactCreate};
use svc_core::resources::crud::{self, advance_clock};
use svc_core::store::Store;
use svc_core::values::{EventKind, EventSet, TenantId, WebhookUrl};
use svc_core::webhooks::engine::{self, InFlight, Policy};
use svc_core::webhooks::events;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookCreate, WebhookSubscription, WebhookUpdate};

/// Writes before the backlog is held, with which those meanwhile are compared.
const WRITES_BEFORE: usize = 4_000;
/// Clients that write at the same time.
const CLIENTS: usize = 4;
/// Events in one transaction when the backlog is made.
const EVENTS: u32 = 1_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let backlog: u32 = arguments.next().as_deref().unwrap_or("100000").parse()?;
    let folder = tempfile::tempdir()?;
    let file = format!("sqlite://{}", folder.path().join("svc.db").display());
    let url = arguments.next().unwrap_or(file);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(&url, backlog))
}

async fn run(url: &str, backlog: u32) -> Result<(), Box<dyn std::error::Error>> {
    let store = svc_store::open(url, Env::system()).await?;
    let (busy, subscription) = tenant_with_backlog(&*store, backlog).await?;
    let other = store.write("example", |tx| Box::pin(tenants::create(tx, TenantCreate::named("Other")))).await?.id;

    let stop = Arc::new(AtomicBool::new(false));
    let before = writes(&store, other, &stop, WRITES_BEFORE).await?;
    let clients = tokio::spawn({
        let (store, stop) = (Arc::clone(&store), Arc::clone(&stop));
        async move { writes(&store, other, &stop, usize::MAX).await }
    });
    let started = Instant::now();
    disable(&*store, busy, subscription).await?;
    let disabled = started.elapsed();
    settle(&*store).await?;
    let settled = started.elapsed();
    stop.store(true, Ordering::Release);
    let meanwhile = clients.await??;

    let mut out = std::io::stdout();
    writeln!(out, "{backlog} pending deliveries: the PATCH took {disabled:.1?}, holding all {settled:.1?}")?;
    for (name, times) in [("before", before), ("meanwhile", meanwhile)] {
        let at = |permille: usize| times.get(times.len() * permille / 1_000).copied().unwrap_or_default();
        let (p50, p99, p999) = (at(500), at(990), at(999));
        writeln!(
            out,
            "{name:>9}: {:>6} writes of another tenant, p50 {p50:.1?}, p99 {p99:.1?}, p99.9 {p999:.1?}",
            times.len()
        )?;
    }
    Ok(())
}

/// Creates a tenant with a subscription that has this many pending deliveries.
async fn tenant_with_backlog(store: &dyn Store, backlog: u32) -> Result<(TenantId, SubscriptionId), Error> {
    let create = store.write("example", |tx| {
        Box::pin(async move {
            let tenant = tenants::create(tx, TenantCreate::named("Busy")).await?.id;
            let url = WebhookUrl::parse("https://example.com/").map_err(|error| error.on("url"))?;
            let input = WebhookCreate { url, events: EventSet::All, description: None };
            Ok((tenant, crud::create::<WebhookSubscription>(tx, tenant, input).await?.id))
        })
    });
    let (tenant, subscription) = create.await?;
    let mut left = backlog;
    while left > 0 {
        let count = left.min(EVENTS);
        let emit = store.write("example", move |tx| {
            Box::pin(async move {
                for number in 0..count {
                    let now = advance_clock(tx, tenant).await?;
                    events::emit(tx, tenant, now, &[EventKind::StayCreated], &serde_json::json!({ "id": number }))
                        .await?;
                }
                Ok(())
            })
        });
        emit.await?;
        left -= count;
    }
    Ok((tenant, subscription))
}

async fn disable(store: &dyn Store, tenant: TenantId, subscription: SubscriptionId) -> Result<(), Error> {
    let disable = store.write("example", move |tx| {
        Box::pin(async move {
            let input = WebhookUpdate::from_body(br#"{"enabled": false}"#)?;
            crud::update::<WebhookSubscription>(tx, tenant, subscription, input).await
        })
    });
    disable.await.map(drop)
}

/// Does what the sender does until nothing is due any more.
async fn settle(store: &dyn Store) -> Result<(), Error> {
    let mut in_flight = InFlight::default();
    loop {
        let due = store.read("example", |tx| Box::pin(engine::poll(tx))).await?;
        if due.earliest_due_at.is_none() {
            return Ok(());
        }
        tokio::time::sleep(due.next_due_at().map_or(Duration::ZERO, |next| next.since(due.now))).await;
        for batch in in_flight.plan(&Policy::default(), &due, BTreeMap::new()) {
            let batch = Arc::new(batch);
            let run = Arc::clone(&batch);
            let run = store.write("example", move |tx| {
                let batch = Arc::clone(&run);
                Box::pin(async move { engine::run_batch(tx, &Policy::default(), &batch).await })
            });
            in_flight.batch_finished(&batch, &run.await?.attempts);
        }
    }
}

/// Writes contacts from several clients until `stop` is set or each has done its share of `most`. Returns the sorted times.
async fn writes(
    store: &Arc<dyn Store>,
    tenant: TenantId,
    stop: &Arc<AtomicBool>,
    most: usize,
) -> Result<Vec<Duration>, Error> {
    let clients = (0..CLIENTS).map(|_| {
        let (store, stop) = (Arc::clone(store), Arc::clone(stop));
        tokio::spawn(async move {
            let mut times = Vec::new();
            while times.len() < most / CLIENTS && !stop.load(Ordering::Acquire) {
                let started = Instant::now();
                let write = store.write("example", move |tx| {
                    Box::pin(async move {
                        let email =
                            format!(r#"{{"email": "{}@example.com"}}"#, tx.env().id::<uuid::Uuid>(tx.env().now()));
                        let input = ContactCreate::from_body(email.as_bytes())?;
                        crud::create::<Contact>(tx, tenant, input).await
                    })
                });
                write.await?;
                times.push(started.elapsed());
            }
            Ok::<_, Error>(times)
        })
    });
    let mut times = Vec::new();
    for client in clients.collect::<Vec<_>>() {
        times.extend(client.await.unwrap_or_else(|_| Ok(Vec::new()))?);
    }
    times.sort_unstable();
    Ok(times)
}
