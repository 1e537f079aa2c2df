//! Reads of one contact beside work that goes through many rows: writes with their checkpoints, a bulk replay, and a sweep
//! of the retention.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;
use svc_core::env::Env;
use svc_core::prelude::*;
use svc_core::resources::contacts::ContactId;
use svc_core::webhooks::replays;
use svc_core::webhooks::retention::{self, Positions};
use svc_core::webhooks::subscriptions::SETTLE_PAUSE;
use svc_store::SqliteStore;
use tokio::runtime::Runtime;

use super::{CLIENTS, Clients, emit};
use crate::error::Result;
use crate::{pending, seed, table};

const CONTACTS: u32 = 100_000;
/// Deliveries that are replayed, and then deleted.
const DELIVERIES: u32 = 100_000;
/// Reads before anything else runs, with which those beside the work are compared.
const READS_BEFORE: usize = 100_000;
/// Events in one commit of the writes, and commits. The write-ahead log is checkpointed many times.
const WRITES: (u32, u32) = (500, 200);
/// What the server waits after a step of the retention.
const RETENTION_PAUSE: Duration = Duration::from_millis(10);

/// Measures the reads of one tenant while another one's rows are worked on.
pub(super) fn run(runtime: &Runtime) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("svc.db");
    seed::seed(&file, 1, CONTACTS)?;
    pending::add_backlog(&file, DELIVERIES)?;
    let tenants = seed::tenants(&file)?;
    let contacts = tenants.iter().flat_map(|tenant| &tenant.contacts).map(|id| ContactId::from(*id)).collect();
    set_status(&file, "failed")?;
    let svc = Svc::new(SqliteStore::open(&file, Env::system())?);
    runtime.block_on(measure(&svc, &file, contacts))
}

/// Ends all deliveries with this status.
fn set_status(file: &Path, status: &str) -> Result<()> {
    Connection::open(file)?.execute("UPDATE deliveries SET status = ?1, next_attempt_at = NULL", [status])?;
    Ok(())
}

async fn measure(svc: &Svc, file: &Path, contacts: Arc<[ContactId]>) -> Result<()> {
    let tenant = svc.accounts().list(None, 1).await?.pop().ok_or("no tenant")?.id;
    let get = move |svc: Svc, number: usize| {
        // A step that shares no factor with the number of contacts goes through all of them.
        let id = contacts[number * 7_919 % contacts.len()];
        async move { svc.account(tenant).contacts().get(id).await.map(drop) }
    };
    let quiet = Clients::start(svc, READS_BEFORE, get.clone()).finish().await?;
    table::print_line(&format!("reads: {CLIENTS} clients that get a contact; {quiet}"))?;

    let beside = Clients::start(svc, usize::MAX, get.clone());
    let (events, commits) = WRITES;
    let other = svc.accounts().create(TenantCreate::named("Other")).await?.id;
    for _ in 0..commits {
        emit(svc, other, events).await?;
    }
    print("writes and checkpoints", beside).await?;

    let beside = Clients::start(svc, usize::MAX, get.clone());
    let webhook = svc
        .account(tenant)
        .webhooks()
        .list(NoFilter {}, ListParams::default())
        .await?
        .data
        .pop()
        .ok_or("no webhook")?;
    svc.account(tenant).replays().create(ReplayCreate::new(webhook.id, Timestamp::from_micros(0))).await?;
    while svc.store().write("bench.replay", tenant, async |tx, &tenant| replays::step(tx, tenant).await).await? {
        tokio::time::sleep(SETTLE_PAUSE).await;
    }
    print("a bulk replay", beside).await?;

    set_status(file, "succeeded")?;
    let beside = Clients::start(svc, usize::MAX, get);
    let (mut positions, now) = (Positions::new(), svc.store().env().now());
    let pause = || tokio::time::sleep(RETENTION_PAUSE);
    let deleted = retention::sweep(&**svc.store(), &mut positions, now, false, pause).await?;
    if deleted.deliveries != u64::from(DELIVERIES) {
        return Err(format!("the sweep deleted {deleted:?}").into());
    }
    print("a sweep of the retention", beside).await
}

async fn print(work: &str, clients: Clients) -> Result<()> {
    let times = clients.stop().await?;
    table::print_line(&format!("{work:>30}: {times}"))
}
