//! Scenario `stopped`: one node is stopped past its leases and another is killed. A third node sends what they had
//! started. When the stopped node continues, it has lost its leases, so the outcomes of its attempts are no longer
//! stored.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use svc_core::webhooks::deliveries::{AttemptLog, Delivery, DeliveryId, DeliveryStatus};
use svc_test_support::Result;
use svc_test_support::node::Node;
use tokio::time::Instant;

use crate::cluster::{Tenant, TestCluster, ensure, until};
use crate::receiver::{Arrival, Behavior, Receiver};

const SUBSCRIPTIONS: usize = 5;
const FLAGS: [&str; 5] = ["--no-rate-limit", "--webhook-timeout", "1s", "--webhook-retry", "100ms,1s,10s,10s,10s"];
/// Twice the timeout of an attempt plus ten seconds.
const LEASE: Duration = Duration::from_secs(12);
const PATIENCE: Duration = Duration::from_secs(30);

/// Stops one node and kills another during their attempts; no delivery may be lost, and no outcome may change when
/// the stopped node continues.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// Number of events of each of the two tenants.
    #[arg(long, default_value_t = 200)]
    events: usize,
}

type Logged = Vec<(Delivery, Vec<AttemptLog>)>;

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let receiver = Receiver::listen(Behavior::Hold).await?;
    let (stopped, first, in_progress_at_stop) = start_and_interrupt(cluster, size, &receiver, "STOP").await?;
    let (killed, second, in_progress_at_kill) = start_and_interrupt(cluster, size, &receiver, "KILL").await?;
    drop(killed);
    receiver.set(Behavior::Accept);
    let started = Instant::now();
    let other = cluster.start_node(&FLAGS).await?;
    for tenant in [&first, &second] {
        let what = format!("all deliveries of {} have succeeded", tenant.id.0);
        until(&what, PATIENCE + LEASE, || async { Ok(all_succeeded(&cluster.logs(tenant.id).await?)) }).await?;
    }
    let took = started.elapsed();
    let before = cluster.logs(first.id).await?;

    // The node continues with outcomes of attempts whose leases it has lost. It tries to store them before it ends.
    stopped.signal("CONT").await?;
    until("the stopped node responds again", PATIENCE, || async {
        let request = svc_test_support::http::TestRequest::get("/ping", &first.key.text);
        Ok(cluster.http.send(stopped.address, &request).await.is_ok_and(|response| response.status == 200))
    })
    .await?;
    cluster.emit(first.id, 1).await?;
    until("later events are delivered", PATIENCE, || async {
        let logs = cluster.logs(first.id).await?;
        Ok(logs.len() == before.len() + SUBSCRIPTIONS && all_succeeded(&logs))
    })
    .await?;
    stopped.stop().await?;
    other.stop().await?;
    let after = cluster.logs(first.id).await?;
    let changed = before.iter().filter(|was| !after.contains(was)).count();
    ensure(changed == 0, || format!("{changed} deliveries changed after the stopped node continued"))?;

    let arrivals = receiver.arrivals();
    let again = check(&before, &in_progress_at_stop, &arrivals)?;
    let repeated_after_kill = check(&cluster.logs(second.id).await?, &in_progress_at_kill, &arrivals)?;
    ensure(again > 0 && repeated_after_kill > 0, || "no attempt was in progress, so nothing was tested".to_owned())?;
    Ok(format!(
        "stopped: {} deliveries; {again} attempts of a stopped node and {repeated_after_kill} of a killed node were \
         repeated by a third node after {took:.1?} (lease {LEASE:?}); 0 lost, 0 outcomes changed when the stopped node continued",
        before.len() * 2
    ))
}

/// Starts a node, waits until it has attempts in progress, which the receiver holds, and sends it a signal.
async fn start_and_interrupt(
    cluster: &TestCluster,
    size: &Size,
    receiver: &Receiver,
    signal: &str,
) -> Result<(Node, Tenant, BTreeMap<DeliveryId, u32>)> {
    let tenant = cluster.tenant().await?;
    for subscription in 0..SUBSCRIPTIONS {
        cluster.subscribe(tenant.id, &receiver.url(&format!("{signal}/{subscription}"))).await?;
    }
    let node = cluster.start_node(&FLAGS).await?;
    cluster.emit(tenant.id, size.events).await?;
    let ours = || receiver.arrivals().into_iter().filter(|arrival| arrival.path.starts_with(signal));
    until("attempts are in progress", PATIENCE, || async { Ok(ours().count() >= 2 * SUBSCRIPTIONS) }).await?;
    node.signal(signal).await?;
    // Deliveries with a lease are the attempts that were in progress.
    let leased = cluster.logs(tenant.id).await?.into_iter().filter(|(delivery, _)| delivery.lease.is_some());
    let started = leased.map(|(delivery, _)| (delivery.id, delivery.attempts)).collect();
    Ok((node, tenant, started))
}

fn all_succeeded(logs: &Logged) -> bool {
    logs.iter().all(|(delivery, _)| delivery.status == DeliveryStatus::Succeeded)
}

/// Checks that each interrupted delivery was repeated with a later attempt, which is the one that is stored, and that
/// every attempt arrived once. Returns how many deliveries were repeated.
fn check(logs: &Logged, started: &BTreeMap<DeliveryId, u32>, arrivals: &[Arrival]) -> Result<usize> {
    let mut again = 0;
    for (delivery, log) in logs {
        let id = delivery.id;
        let came: Vec<u32> =
            arrivals.iter().filter(|arrival| arrival.delivery == id).map(|arrival| arrival.attempt).collect();
        let stored: Vec<u32> = log.iter().map(|log| log.attempt).collect();
        let last_succeeded = log.last().is_some_and(|log| {
            log.succeeded() && log.response_body.as_deref() == Some(&format!("attempt {}", log.attempt))
        });
        let fits = last_succeeded && stored.last() == Some(&delivery.attempts) && came.contains(&delivery.attempts);
        ensure(fits, || {
            format!("{id} arrived as {came:?}, is logged as {stored:?} of {} attempts", delivery.attempts)
        })?;
        if let Some(attempt) = started.get(&id) {
            ensure(delivery.attempts > *attempt && !stored.contains(attempt), || {
                format!("{id} was in progress with attempt {attempt}, but is logged as {stored:?}")
            })?;
            again += 1;
        }
        let mut different = came.clone();
        different.dedup();
        ensure(different.len() == came.len(), || format!("{id} arrived as {came:?}"))?;
    }
    Ok(again)
}
