//! Scenario `throughput`: what one node, two and four do on one database, and whose processors that takes.
//!
//! Clients send one request after the other, each to a tenant of its own, so that no write waits for another. Clients, nodes and
//! database share the machine: once it is busy, further nodes add nothing, and the processor time of a request says what would
//! be the next limit with a machine for each.

use std::fmt::Write as _;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use svc_test_support::Result;
use svc_test_support::http::{HttpClient, TestRequest};
use svc_test_support::node::Node;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::{Tenant, TestCluster, ensure, percentile};
use crate::receiver::{Behavior, Receiver};

/// The unit of processor time in `/proc`.
const TICKS_PER_SECOND: u64 = 100;
const NODES: [usize; 3] = [1, 2, 4];
/// How long the outstanding deliveries may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures requests and deliveries per second with 1, 2 and 4 nodes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// Number of clients, each of a tenant of its own.
    #[arg(long, default_value_t = 64)]
    clients: usize,
    /// How long each kind of request is sent.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = humantime::parse_duration)]
    each: Duration,
    /// How many connections for writing all nodes have together; by default each has its usual number.
    #[arg(long, value_name = "COUNT")]
    write_connections: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Read,
    Write,
    /// A write with a webhook, until its delivery has arrived.
    Delivered,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Delivered];

    fn name(self) -> &'static str {
        match self {
            Self::Read => "GET",
            Self::Write => "POST",
            Self::Delivered => "POST and delivery",
        }
    }
}

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let lock = std::fs::read_to_string(cluster.own_server()?.folder().join("data/postmaster.pid"))?;
    let postmaster = lock.lines().next().unwrap_or_default();
    let receiver = Receiver::listen(Behavior::Accept).await?;
    let mut table = format!(
        "throughput: {} clients, {:?} each; processor time in ms for each request\n\
         {:<18} {:>5} {:>9} {:>8} {:>8} {:>7} {:>11} {:>8}\n",
        size.clients, size.each, "", "nodes", "a second", "p50 ms", "p99 ms", "nodes", "PostgreSQL", "clients"
    );
    for kind in Kind::ALL {
        for count in NODES {
            let mut tenants = Vec::new();
            for number in 0..size.clients {
                let tenant = cluster.tenant().await?;
                if let Kind::Delivered = kind {
                    cluster.subscribe(tenant.id, &receiver.url(&number.to_string())).await?;
                }
                tenants.push(tenant);
            }
            let mut nodes = Vec::new();
            let connections = size.write_connections.map(|all| (all / count).max(1).to_string());
            let mut flags = vec!["--no-rate-limit"];
            flags.extend(connections.iter().flat_map(|each| ["--database-write-connections", each]));
            for _ in 0..count {
                nodes.push(cluster.start_node(&flags).await?);
            }
            // Caches and connections are there before the measurement.
            measure(cluster, &nodes, &tenants, kind, size.each / 10).await?;
            let arrived = receiver.arrivals().len();
            let before = used(&mut nodes, postmaster)?;
            let started = Instant::now();
            let mut latencies = measure(cluster, &nodes, &tenants, kind, size.each).await?;
            if let Kind::Delivered = kind {
                receiver.until(arrived + latencies.len(), PATIENCE).await?;
            }
            let took = started.elapsed();
            let after = used(&mut nodes, postmaster)?;
            latencies.sort_unstable();
            let requests = latencies.len() as f64;
            let each = [0, 1, 2].map(|who| (after[who] - before[who]).as_secs_f64() * 1000.0 / requests);
            let [half, most] = [50, 99].map(|percent| percentile(&latencies, percent).as_secs_f64() * 1000.0);
            writeln!(
                table,
                "{:<18} {count:>5} {:>9.0} {half:>8.1} {most:>8.1} {:>7.2} {:>11.2} {:>8.2}",
                kind.name(),
                requests / took.as_secs_f64(),
                each[0],
                each[1],
                each[2]
            )?;
            for node in nodes {
                node.stop().await?;
            }
        }
    }
    Ok(table.trim_end().to_owned())
}

/// Sends requests for some time, and returns how long each took.
async fn measure(
    cluster: &TestCluster,
    nodes: &[Node],
    tenants: &[Tenant],
    kind: Kind,
    length: Duration,
) -> Result<Vec<Duration>> {
    let mut clients = JoinSet::new();
    let end = Instant::now() + length;
    for (number, tenant) in tenants.iter().enumerate() {
        let address = nodes[number % nodes.len()].address;
        clients.spawn(send(cluster.http.clone(), address, tenant.key.text.clone(), kind, end));
    }
    let mut all = Vec::new();
    while let Some(ended) = clients.join_next().await {
        all.extend(ended??);
    }
    Ok(all)
}

async fn send(
    http: HttpClient,
    address: std::net::SocketAddr,
    key: String,
    kind: Kind,
    end: Instant,
) -> Result<Vec<Duration>> {
    let body = json!({ "email": "ada@example.com", "first_name": "Ada" });
    let created = http.send(address, &TestRequest::post("/contacts", &key, &body)).await?;
    let path = format!("/contacts/{}", created.body["data"]["id"].as_str().unwrap_or_default());
    let request = match kind {
        Kind::Read => TestRequest::get(&path, &key),
        Kind::Write | Kind::Delivered => TestRequest::post("/contacts", &key, &body),
    };
    let mut took = Vec::new();
    while Instant::now() < end {
        let asked = Instant::now();
        let response = http.send(address, &request).await?;
        ensure(response.status.is_success(), || format!("{path}: {} {}", response.status, response.body))?;
        took.push(asked.elapsed());
    }
    Ok(took)
}

/// Returns the processor time that the nodes, PostgreSQL and this process have used so far.
fn used(nodes: &mut [Node], postmaster: &str) -> Result<[Duration; 3]> {
    let mut of_nodes = Duration::ZERO;
    for node in nodes {
        let id = node.id().ok_or("a node has ended by itself")?;
        of_nodes += Process::read(&id.to_string())?.used;
    }
    // Its own contains that of connections that have ended.
    let mut of_database = Process::read(postmaster)?.used;
    for folder in std::fs::read_dir("/proc")? {
        let name = folder?.file_name();
        // A process may end meanwhile.
        let process = name.to_str().and_then(|id| Process::read(id).ok());
        of_database +=
            process.filter(|process| process.parent == postmaster).map_or(Duration::ZERO, |child| child.used);
    }
    Ok([of_nodes, of_database, Process::read("self")?.used])
}

/// A line of `/proc/PID/stat`.
struct Process {
    parent: String,
    /// The processor time of the process and of its children that have ended.
    used: Duration,
}

impl Process {
    fn read(id: &str) -> Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        // The name in front may contain spaces.
        let (_, fields) = stat.rsplit_once(')').ok_or("unexpected format of /proc/PID/stat")?;
        let mut fields = fields.split_whitespace().skip(1);
        let parent = fields.next().unwrap_or_default().to_owned();
        let ticks: u64 = fields.skip(9).take(4).map(|ticks| ticks.parse().unwrap_or(0)).sum();
        Ok(Self { parent, used: Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND) })
    }
}
