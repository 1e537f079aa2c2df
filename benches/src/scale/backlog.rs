//! The long backlog of one endpoint, which is held because its subscription was disabled.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use svc_core::env::Env;
use svc_core::input::Input as _;
use svc_core::prelude::*;
use svc_core::store::Store;
use svc_core::webhooks::engine::{self, InFlight, Policy};
use svc_store::{Options, SecretKey};

use super::{Clients, emit, open, tenant_with_subscriptions};
use crate::error::Result;
use crate::table;

/// Writes before the backlog is held, with which those meanwhile are compared.
const WRITES_BEFORE: usize = 4_000;
/// Events in one commit when the backlog is made.
const EVENTS: u32 = 1_000;

/// Measures the writes of another tenant before and meanwhile, on SQLite, and on PostgreSQL where it is installed.
pub(super) async fn run(backlog: u32) -> Result<()> {
    let folder = tempfile::tempdir()?;
    measure("SQLite", open(&folder.path().join("svc.db"))?, backlog).await?;
    let Some(server) = svc_test_support::postgres::server() else { return Ok(()) };
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
    let other = svc.accounts().create(TenantCreate::named("Other")).await?.id;

    let create = move |svc: Svc, _| async move {
        let email = format!("{}@example.com", svc.store().env().id::<uuid::Uuid>(svc.store().env().now()));
        let contact = ContactCreate::new(email.parse().map_err(|issue: svc_core::error::Issue| issue.on("email"))?);
        svc.account(other).contacts().create(contact).await.map(drop)
    };
    let before = Clients::start(&svc, WRITES_BEFORE, create).finish().await?;
    let clients = Clients::start(&svc, usize::MAX, create);
    let started = Instant::now();
    let subscription = svc.account(busy).webhooks().list(NoFilter {}, ListParams::default()).await?.data.pop();
    let subscription = subscription.ok_or("the tenant has no subscription")?.id;
    let disable = WebhookUpdate::from_body(br#"{"enabled": false}"#)?;
    svc.account(busy).webhooks().update(subscription, disable).await?;
    let disabled = started.elapsed();
    hold(&**svc.store()).await?;
    let held = started.elapsed();
    let meanwhile = clients.stop().await?;

    table::print_line(&format!(
        "backlog: {database}, {backlog} pending deliveries: the PATCH took {disabled:.1?}, holding all {held:.1?}"
    ))?;
    for (name, times) in [("before", before), ("meanwhile", meanwhile)] {
        table::print_line(&format!("{name:>18}: writes of another tenant, {times}"))?;
    }
    Ok(())
}

/// Does what the sender does until nothing is due any more.
async fn hold(store: &dyn Store) -> Result<()> {
    let mut in_flight = InFlight::default();
    loop {
        let due = store.read("bench.poll", (), async |tx, ()| engine::poll(tx).await).await?;
        if due.earliest_due_at.is_none() {
            return Ok(());
        }
        tokio::time::sleep(due.next_due_at().map_or(Duration::ZERO, |next| next.since(due.now))).await;
        for batch in in_flight.plan(&Policy::default(), &due, BTreeMap::new()) {
            let batch = Arc::new(batch);
            let run = Arc::clone(&batch);
            let run = store.write("bench.batch", run, async |tx, run| {
                let batch = Arc::clone(run);
                engine::run_batch(tx, &Policy::default(), &batch).await
            });
            in_flight.batch_finished(&batch, &run.await?.attempts);
        }
    }
}
