//! Scenario `restart`: the database stops under load and starts again. Meanwhile requests are refused within a
//! bounded time, acknowledged writes are kept, and soon afterwards requests succeed again.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use svc_tests::Result;
use svc_tests::http::{HttpClient, TestRequest};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::{TestCluster, ensure, until};

const CLIENTS: usize = 8;
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

#[derive(Clone, Default)]
struct SharedStats(Arc<Mutex<Stats>>);

#[derive(Default)]
struct Stats {
    acknowledged: BTreeSet<String>,
    unavailable: usize,
    slowest: Duration,
    /// For each node, when a request sent after the restart was first acknowledged.
    back: [Option<Instant>; 2],
    returned: Option<Instant>,
}

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let server = cluster.database.server().ok_or("this needs --database-url postgres: a server of its own")?;
    let nodes = cluster.start_two(&["--no-rate-limit"]).await?;
    let tenant = cluster.tenant().await?;
    let (stats, stop) = (SharedStats::default(), watch::Sender::new(false));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (http, key, address) = (cluster.http.clone(), tenant.key.text.clone(), nodes[number % 2].address);
        clients.spawn(load(http, key, (address, number), stats.clone(), stop.subscribe()));
    }
    let mut slowest_return = Duration::ZERO;
    for round in 0..size.rounds {
        tokio::time::sleep(UP).await;
        stats.with(|stats| (stats.returned, stats.back) = (None, [None; 2]));
        // The call returns when the database is down.
        tokio::task::block_in_place(|| if round % 2 == 0 { server.stop() } else { server.crash() });
        tokio::time::sleep(size.down).await;
        tokio::task::block_in_place(|| server.start());
        let returned = Instant::now();
        stats.with(|stats| stats.returned = Some(returned));
        let what = "requests succeed again on both nodes";
        until(what, BACK_WITHIN, || async { Ok(stats.with(|stats| stats.back.iter().all(Option::is_some))) }).await?;
        let last = stats.with(|stats| stats.back.into_iter().flatten().max()).unwrap_or(returned);
        slowest_return = slowest_return.max(last - returned);
    }
    tokio::time::sleep(UP).await;
    stop.send_replace(true);
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    let rows = cluster.list(&nodes[0], &tenant, "contacts").await?;
    let there: BTreeSet<&str> = rows.iter().filter_map(|row| row["email"].as_str()).collect();
    let Stats { acknowledged, unavailable, slowest, .. } = stats.with(std::mem::take);
    let lost = acknowledged.iter().filter(|name| !there.contains(name.as_str())).count();
    ensure(lost == 0, || format!("{lost} of {} acknowledged writes are lost", acknowledged.len()))?;
    let events = cluster.events(tenant.id).await?.len();
    ensure(events == rows.len() && there.len() == rows.len(), || {
        format!("{} rows of {} requests have {events} events", rows.len(), there.len())
    })?;
    // A request that waits for less than the limit is served after the restart.
    let must_refuse = size.down > REFUSES_AFTER;
    ensure(unavailable > 0 || !must_refuse, || "no request was refused, so nothing was tested".to_owned())?;
    ensure(slowest < LONGEST, || format!("a response took {slowest:?}"))?;
    for node in nodes {
        node.stop().await?;
    }
    Ok(format!(
        "restart: {} times down for {:?}; {} writes acknowledged, 0 lost; {unavailable} × 503, slowest response {slowest:.1?}; \
         both nodes served requests again within {slowest_return:.1?}",
        size.rounds,
        size.down,
        acknowledged.len()
    ))
}

impl SharedStats {
    fn with<T>(&self, f: impl FnOnce(&mut Stats) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Creates contacts one after the other; a refused request is repeated with its Idempotency-Key.
async fn load(
    http: HttpClient,
    key: String,
    (address, number): (SocketAddr, usize),
    stats: SharedStats,
    stop: watch::Receiver<bool>,
) -> Result<()> {
    for sequence in 0_usize.. {
        let name = format!("c{number}-{sequence}@example.com");
        let body = json!({ "email": name });
        let request = TestRequest { idempotency_key: Some(&name), ..TestRequest::post("/contacts", &key, &body) };
        loop {
            if *stop.borrow() {
                return Ok(());
            }
            let asked = Instant::now();
            let response = http.send(address, &request).await?;
            stats.with(|stats| stats.slowest = stats.slowest.max(asked.elapsed()));
            match response.status.as_u16() {
                201 => break,
                503 => {
                    ensure(response.headers.contains_key("retry-after"), || "503 without Retry-After".to_owned())?;
                    stats.with(|stats| stats.unavailable += 1);
                }
                409 if response.body["code"] == "idempotency_in_progress" => {}
                status => return Err(format!("{name} got {status}: {}", response.body).into()),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        stats.with(|stats| {
            stats.acknowledged.insert(name);
            if stats.returned.is_some() {
                stats.back[number % 2].get_or_insert_with(Instant::now);
            }
        });
    }
    Ok(())
}
