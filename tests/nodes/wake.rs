//! Scenario `wake`: how soon a node sends an event that another process wrote, from the commit to the arrival at the
//! receiver.

use std::collections::HashMap;
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use svc_core::values::EventKind;
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::DeliveryId;
use svc_core::webhooks::events;
use svc_test_support::Result;
use tokio::process::Command;
use tokio::time::Instant;

use crate::cluster::{TestCluster, ensure, percentile, until};
use crate::receiver::{Behavior, Receiver};

const PATIENCE: Duration = Duration::from_secs(10);
/// The average delay without a notification.
const POLL_AVERAGE: Duration = Duration::from_millis(500);

/// Measures how soon a node sends events that other processes write.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// Number of events written by a store in this process.
    #[arg(long, default_value_t = 300)]
    events: usize,
    /// Number of events written by the command line, if --svc is given.
    #[arg(long, default_value_t = 50)]
    commands: usize,
    /// The greatest allowed median, in milliseconds.
    #[arg(long, default_value_t = 50)]
    most: u64,
}

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let node = cluster.start_node(&["--no-rate-limit"]).await?;
    let receiver = Receiver::listen(Behavior::Accept).await?;
    let tenant = cluster.tenant().await?.id;
    cluster.subscribe(tenant, &receiver.url("subscription")).await?;
    // The first events open the connections.
    for _ in 0..5 {
        by_store(cluster, tenant, &receiver).await?;
    }
    let mut summaries = Vec::new();
    let mut sorted = Vec::new();
    for _ in 0..size.events {
        sorted.push(by_store(cluster, tenant, &receiver).await?);
        // The sender must be idle again.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    summaries.push(evaluate("a store", &mut sorted, size)?);
    if cluster.set_up.svc.is_some() {
        let mut sorted = Vec::new();
        for _ in 0..size.commands {
            sorted.push(by_command(cluster, tenant, &receiver).await?);
        }
        summaries.push(evaluate("`svc event emit`", &mut sorted, size)?);
    }
    node.stop().await?;
    Ok(format!("wake: {}", summaries.join("; ")))
}

fn evaluate(who: &str, sorted: &mut [Duration], size: &Size) -> Result<String> {
    sorted.sort_unstable();
    let [half, nine_in_ten, most, all] = [50, 90, 99, 100].map(|percent| percentile(sorted, percent));
    let summary =
        format!("commit by {who} to arrival, {} times: p50 {half:.1?}, p99 {most:.1?}, max {all:.1?}", sorted.len());
    // Without a notification the sender polls once a second.
    ensure(half <= Duration::from_millis(size.most) && nine_in_ten < POLL_AVERAGE, || summary.clone())?;
    Ok(summary)
}

/// Measures from the acknowledgement of the commit.
async fn by_store(cluster: &TestCluster, tenant: TenantId, receiver: &Receiver) -> Result<Duration> {
    let emit = cluster.store.write("nodes.emit", tenant, async |tx, &tenant| {
        events::record_external(tx, tenant, EventKind::StayCreated, &json!({ "id": 1 })).await
    });
    let (_, deliveries) = emit.await?;
    let committed = Instant::now();
    let delivery = deliveries.first().ok_or("the event has no delivery")?.id;
    Ok(arrival(receiver, delivery).await?.saturating_duration_since(committed))
}

/// Measures from the event's timestamp, which is slightly before the commit.
async fn by_command(cluster: &TestCluster, tenant: TenantId, receiver: &Receiver) -> Result<Duration> {
    let svc = cluster.set_up.svc.as_ref().ok_or("no command forwarder")?;
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data.json");
    std::fs::write(&data, r#"{"id": "stay-1"}"#)?;
    let mut command = Command::new(svc);
    command.args(["event", "emit", "--kind", "stay.created", "--json", "--tenant", &tenant.0.to_string(), "--data"]);
    command.arg(&data).args(["--database-url", &cluster.database.url]).envs(cluster.database.variables());
    let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true).output().await?;
    let made: Value = serde_json::from_slice(&output.stdout)?;
    let delivery: DeliveryId = made["deliveries"][0].as_str().ok_or("the event has no delivery")?.parse()?;
    let created_at = svc_core::values::Timestamp::parse(made["created_at"].as_str().unwrap_or_default())
        .map_err(|error| format!("{error:?}"))?;
    let arrived = arrival(receiver, delivery).await?;
    // Both clocks are read at the same moment.
    let age = cluster.store.env().now().since(created_at);
    Ok(age.saturating_sub(arrived.elapsed()))
}

async fn arrival(receiver: &Receiver, delivery: DeliveryId) -> Result<Instant> {
    let mut found = None;
    until("the event arrives", PATIENCE, || {
        let arrivals = receiver.arrivals();
        let by_id: HashMap<DeliveryId, Instant> = arrivals.iter().rev().map(|one| (one.delivery, one.at)).collect();
        found = by_id.get(&delivery).copied();
        let is_there = found.is_some();
        async move { Ok(is_there) }
    })
    .await?;
    found.ok_or_else(|| "it did not arrive".into())
}
