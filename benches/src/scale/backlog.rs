//! The long backlog of one endpoint, which is held because its subscription was disabled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use svc_core::env::Env;
use svc_core::input::Input as _;
use svc_core::prelude::*;
use svc_core::store::Store;
use svc_core::webhooks::engine::{self, InFlight, Policy};
use svc_store::{Options, SecretKey};

use super::{emit, open, tenant_with_subscriptions};
use crate::error::Result;
use crate::table;

/// Writes before the backlog is held, with which those meanwhile are compared.
const WRITES_BEFORE: usize = 4_000;
/// Clients that write at the same time.
const CLIENTS: usize = 4;
/// Events in one commit when the backlog is made.
const EVENTS: u32 = 1_000;

/// Measures the writes of another tenant before and meanwhile, on SQLite, and on PostgreSQL where it is installed.
pub(super) async fn run(backlog: u32) -> Result<()> {
    let folder = tempfile::tempdir()?;
    measure("SQLite", open(&folder.path().join("svc.db"))?, backlog).await?;
    let Some(server) = svc_postgres_server::server() else { return Ok(()) };
    let options = Options { secret_key: Some(SecretKey::new([7; 32])), ..Options::default() };
    measure("PostgreSQL", Svc::new(svc_store::open_with(&server.database(), Env::system(), options).await?), backlog)
        .await
}

async fn measure(database: &str, svc: Svc, backlog: u32) -> Result<()> {
    let busy = tenant_with_subscriptions(&svc, 1).await?;
    let mut left = backlog;
    while left > 0 {
        let commit = left.min(EVENTS);
        emit(&svc, busy, commit).await?;
        left -= commit;
    }
    let other = svc.tenants().create(TenantCreate::named("Other")).await?.id;

    let stop = Arc::new(AtomicBool::new(false));
    let before = writes(&svc, other, &stop, WRITES_BEFORE).await?;
    let clients = tokio::spawn({
        let (svc, stop) = (svc.clone(), Arc::clone(&stop));
        async move { writes(&svc, other, &stop, usize::MAX).await }
    });
    let started = Instant::now();
    let subscription = svc.tenant(busy).webhooks().list(ListParams::default()).await?.data.pop();
    let subscription = subscription.ok_or("the tenant has no subscription")?.id;
    let disable = WebhookUpdate::from_body(br#"{"enabled": false}"#)?;
    svc.tenant(busy).webhooks().update(subscription, disable).await?;
    let disabled = started.elapsed();
    hold(&**svc.store()).await?;
    let held = started.elapsed();
    stop.store(true, Ordering::Release);
    let meanwhile = clients.await??;

    table::print_line(&format!(
        "backlog: {database}, {backlog} pending deliveries: the PATCH took {disabled:.1?}, holding all {held:.1?}"
    ))?;
    for (name, times) in [("before", before), ("meanwhile", meanwhile)] {
        let at = |permille: usize| times.get(times.len() * permille / 1_000).copied().unwrap_or_default();
        let (count, p50, p99, p999) = (times.len(), at(500), at(990), at(999));
        table::print_line(&format!(
            "{name:>18}: {count:>7} writes of another tenant, p50 {p50:.1?}, p99 {p99:.1?}, p99.9 {p999:.1?}"
        ))?;
    }
    Ok(())
}

/// Does what the sender does until nothing is due any more.
async fn hold(store: &dyn Store) -> Result<()> {
    let mut in_flight = InFlight::default();
    loop {
        let due = store.read("bench.poll", |tx| Box::pin(engine::poll(tx))).await?;
        if due.earliest_due_at.is_none() {
            return Ok(());
        }
        tokio::time::sleep(due.next_due_at().map_or(Duration::ZERO, |next| next.since(due.now))).await;
        for batch in in_flight.plan(&Policy::default(), &due, BTreeMap::new()) {
            let batch = Arc::new(batch);
            let run = Arc::clone(&batch);
            let run = store.write("bench.batch", move |tx| {
                let batch = Arc::clone(&run);
                Box::pin(async move { engine::run_batch(tx, &Policy::default(), &batch).await })
            });
            in_flight.batch_finished(&batch, &run.await?.attempts);
        }
    }
}

/// Creates contacts from several clients until `stop` is set or each has done its share of `most`. Returns the sorted times.
async fn writes(
    svc: &Svc,
    tenant: TenantId,
    stop: &Arc<AtomicBool>,
    most: usize,
) -> std::result::Result<Vec<Duration>, Error> {
    let clients = (0..CLIENTS).map(|_| {
        let (svc, stop) = (svc.clone(), Arc::clone(stop));
        tokio::spawn(async move {
            let (mut times, env) = (Vec::new(), svc.store().env());
            while times.len() < most / CLIENTS && !stop.load(Ordering::Acquire) {
                let email = format!("{}@example.com", env.id::<uuid::Uuid>(env.now()));
                let contact =
                    ContactCreate::new(email.parse().map_err(|issue: svc_core::error::Issue| issue.on("email"))?);
                let started = Instant::now();
                svc.tenant(tenant).contacts().create(contact).await?;
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
