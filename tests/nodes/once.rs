//! Scenario `once`: all nodes send many deliveries, each of them once.

use std::collections::HashSet;
use std::time::Duration;

use clap::Args;
use svc_core::store::DeliveryFilter;
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_test_support::Result;
use tokio::time::Instant;

use crate::cluster::{TestCluster, ensure, until};
use crate::receiver::{Behavior, Receiver};

const TENANTS: usize = 5;
const SUBSCRIPTIONS: usize = 10;
/// Events in one transaction.
const BATCH: usize = 20;
/// The longest time without a new arrival.
const SILENCE: Duration = Duration::from_secs(30);

/// Sends many deliveries from all nodes; each must arrive once.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// Number of deliveries, rounded up to whole thousands.
    #[arg(long, default_value_t = 100_000)]
    deliveries: usize,
}

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let nodes = cluster.start_nodes(&["--no-rate-limit"]).await?;
    let receiver = Receiver::listen(Behavior::Accept).await?;
    let mut tenants = Vec::new();
    for number in 0..TENANTS {
        let tenant = cluster.tenant().await?;
        for subscription in 0..SUBSCRIPTIONS {
            cluster.subscribe(tenant.id, &receiver.url(&format!("{number}/{subscription}"))).await?;
        }
        tenants.push(tenant);
    }
    let started = Instant::now();
    let rounds = size.deliveries.div_ceil(TENANTS * SUBSCRIPTIONS * BATCH);
    let wanted = rounds * TENANTS * SUBSCRIPTIONS * BATCH;
    for _ in 0..rounds {
        for tenant in &tenants {
            cluster.emit(tenant.id, BATCH).await?;
        }
    }
    let mut before = 0;
    while receiver.until(wanted, SILENCE).await.is_err() {
        let now = receiver.arrivals().len();
        ensure(now > before, || format!("{now} of {wanted} arrived, and no more for {SILENCE:?}"))?;
        before = now;
    }
    let took = started.elapsed();
    // While an outcome is not stored, its attempt could still be repeated.
    for tenant in &tenants {
        until("nothing is pending", SILENCE, || async {
            let filter =
                DeliveryFilter { status: Some(DeliveryStatus::Pending), limit: 1, ..DeliveryFilter::default() };
            Ok(cluster.deliveries(tenant.id, filter).await?.is_empty())
        })
        .await?;
    }
    for node in nodes {
        node.stop().await?;
    }
    let arrivals = receiver.arrivals();
    let different: HashSet<_> = arrivals.iter().map(|arrival| arrival.delivery).collect();
    let repeats = arrivals.len() - different.len();
    let retries = arrivals.iter().filter(|arrival| arrival.attempt > 1).count();
    let endpoints: HashSet<_> = arrivals.iter().map(|arrival| &arrival.path).collect();
    let (came, endpoints) = (different.len(), endpoints.len());
    ensure(came == wanted && repeats == 0 && retries == 0, || {
        format!("of {wanted} deliveries {came} arrived; {repeats} arrived again, {retries} at a later attempt")
    })?;
    Ok(format!(
        "once: {wanted} deliveries to {endpoints} endpoints from {} nodes, 0 lost, 0 repeats, 0 later attempts \
         ({took:.1?}, {:.0} a second)",
        cluster.set_up.nodes,
        wanted as f64 / took.as_secs_f64()
    ))
}
