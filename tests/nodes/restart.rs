//! Scenario `restart`: the database stops under load and starts again. Meanwhile requests are refused within a
//! bounded time, acknowledged writes are kept, and soon afterwards requests succeed again.

use std::time::Duration;

use clap::Args;
use svc_test_support::Result;

use crate::cluster::{TestCluster, ensure};
use crate::load::Load;

/// How long the database runs between two restarts.
const UP: Duration = Duration::from_secs(1);
/// How soon requests must succeed again on every node.
const BACK_WITHIN: Duration = Duration::from_secs(5);
/// How long the server waits for a database connection before it refuses a request.
const REFUSES_AFTER: Duration = Duration::from_secs(10);
/// The longest response time: the wait, plus time for the request on a busy machine.
const LONGEST: Duration = Duration::from_secs(12);

/// Stops and starts the database under load; no acknowledged write may be lost.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// How often the database stops, alternating between a shutdown and a crash.
    #[arg(long, default_value_t = 6)]
    rounds: usize,
    /// How long it stays down.
    #[arg(long, value_name = "DURATION", default_value = "13s", value_parser = humantime::parse_duration)]
    down: Duration,
}

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let server = cluster.own_server()?;
    let nodes = cluster.start_nodes(&["--no-rate-limit"]).await?;
    let load = Load::start(&cluster.http, &cluster.tenant().await?, &nodes);
    let mut slowest_return = Duration::ZERO;
    for round in 0..size.rounds {
        tokio::time::sleep(UP).await;
        // The call returns when the database is down.
        tokio::task::block_in_place(|| if round % 2 == 0 { server.stop() } else { server.crash() });
        tokio::time::sleep(size.down).await;
        tokio::task::block_in_place(|| server.start());
        slowest_return = slowest_return.max(load.served_again(BACK_WITHIN).await?);
    }
    tokio::time::sleep(UP).await;
    let outcome = load.end(cluster, &nodes[0]).await?;
    let (acknowledged, unavailable, slowest) = (outcome.acknowledged(), outcome.unavailable, outcome.slowest);
    outcome.ensure_none_lost()?;
    // A request that waits for less than the limit is served after the restart.
    let must_refuse = size.down > REFUSES_AFTER;
    ensure(unavailable > 0 || !must_refuse, || "no request was refused, so nothing was tested".to_owned())?;
    ensure(slowest < LONGEST, || format!("a response took {slowest:?}"))?;
    for node in nodes {
        node.stop().await?;
    }
    Ok(format!(
        "restart: {} times down for {:?}; {acknowledged} writes acknowledged, 0 lost; {unavailable} × 503, slowest response \
         {slowest:.1?}; all nodes served requests again within {slowest_return:.1?}",
        size.rounds, size.down
    ))
}
