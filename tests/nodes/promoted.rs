//! Scenario `promoted`: the database crashes under load, and its standby takes its place. With synchronous replication no
//! acknowledged write is lost; without it, the scenario says how many are.

use std::time::Duration;

use clap::Args;
use svc_test_support::Result;
use svc_test_support::database::Database;

use crate::cluster::{TestCluster, connect, ensure, until};
use crate::load::Load;

/// How long requests are sent before and after.
const UP: Duration = Duration::from_secs(2);
/// How soon requests must succeed again on every node.
const BACK_WITHIN: Duration = Duration::from_secs(10);

/// Crashes the database under load and promotes its standby; no acknowledged write may be lost.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// How often, each time with a new standby of the server that was promoted before.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Commits do not wait for the standby, which is this far behind when the database crashes. Then writes are lost.
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    behind: Option<Duration>,
}

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    ensure(cluster.pooler.is_none(), || "PgBouncer knows one server, so this cannot run with --pooler".to_owned())?;
    let mut primary = None;
    let (mut acknowledged, mut lost, mut unavailable) = (0, 0, 0);
    let (mut slowest, mut slowest_return) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..size.rounds {
        let server = primary.as_ref().map_or_else(|| cluster.own_server(), Ok)?;
        let standby = server.standby().ok_or("PostgreSQL is not installed")?;
        let [old, new] = [server, &standby].map(|server| server.url_of(&cluster.database.url));
        if size.behind.is_none() {
            wait_for_copies(&old).await?;
        }
        // Both servers, of which the nodes take the one that can be written to.
        let hosts = format!("127.0.0.1:{},127.0.0.1:{}", server.port(), standby.port());
        let both = old.replace(&format!("127.0.0.1:{}", server.port()), &hosts);
        let database = Database::new(Some(&format!("{both}&target_session_attrs=read-write")))?;
        let cluster = cluster.on(database).await?;
        let nodes = cluster.start_nodes(&["--no-rate-limit"]).await?;
        let load = Load::start(&cluster.http, &cluster.tenant().await?, &nodes);
        load.served_again(BACK_WITHIN).await?;
        tokio::time::sleep(UP).await;
        if let Some(behind) = size.behind {
            let client = connect(&new).await?;
            client.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").await?;
            client.batch_execute("SELECT pg_reload_conf()").await?;
            tokio::time::sleep(behind).await;
        }
        tokio::task::block_in_place(|| {
            server.crash();
            standby.promote();
        });
        slowest_return = slowest_return.max(load.served_again(BACK_WITHIN).await?);
        tokio::time::sleep(UP).await;
        let outcome = load.end(&cluster, &nodes[0]).await?;
        if size.behind.is_none() {
            outcome.ensure_none_lost()?;
        }
        acknowledged += outcome.acknowledged();
        lost += outcome.lost;
        unavailable += outcome.unavailable;
        slowest = slowest.max(outcome.slowest);
        for node in nodes {
            node.stop().await?;
        }
        primary = Some(standby);
    }
    Ok(format!(
        "promoted, {} times: {acknowledged} writes acknowledged, {lost} lost; {unavailable} × 503, slowest response \
         {slowest:.1?}; all nodes served requests again within {slowest_return:.1?} of the promotion",
        size.rounds
    ))
}

/// Makes every commit wait for the standby from now on.
async fn wait_for_copies(url: &str) -> Result<()> {
    let client = connect(url).await?;
    client.batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await?;
    client.batch_execute("SELECT pg_reload_conf()").await?;
    let state = "SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
    until("the standby is synchronous", BACK_WITHIN, || async { Ok(client.query_one(state, &[]).await?.get(0)) }).await
}
