//! Scenario `cut`: connections to the database break at a commit, before or after the commit is sent. Clients repeat
//! their requests unchanged, and in the end each request must have been done once.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use svc_test_support::Result;
use svc_test_support::http::{TestRequest, TestResponse};
use svc_test_support::node::Node;
use tokio::time::Instant;

use crate::cluster::{Key, TestCluster, ensure};
use crate::proxy::{Cut, Proxy};

/// How long a client repeats a request.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between repeats. It is shorter than `Retry-After`, to save time.
const PAUSE: Duration = Duration::from_millis(20);

/// Cuts connections to the database at a commit; no write may be lost or done twice.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// Number of connections to cut, half of them before the commit and half after.
    #[arg(long, default_value_t = 200)]
    cuts: usize,
}

#[derive(Default)]
struct Counts {
    unavailable: usize,
    in_progress: usize,
    replayed: usize,
    slowest: Duration,
}

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let url = cluster.url();
    let proxy = Proxy::start(url).await?;
    let flags = ["--no-rate-limit"];
    let through = proxy.url(url)?;
    let cut = cluster.set_up.program.start_at(&through, &cluster.database, &flags);
    let (cut, whole) = tokio::join!(cut, cluster.start_node(&flags));
    // The first node connects through the proxy, the second directly. Clients repeat their requests at both.
    let nodes = [cut?, whole?];
    let tenant = cluster.tenant().await?;
    let (mut counts, mut made) = (Counts::default(), BTreeMap::new());
    let mut number = 0;
    while proxy.cuts() < size.cuts {
        let (cut, before) = (if number % 2 == 0 { Cut::Before } else { Cut::After }, proxy.cuts());
        proxy.cut_next(cut);
        let unavailable = counts.unavailable;
        let (name, id, replayed) = request(cluster, &nodes, &tenant.key, number, &mut counts).await?;
        // A write that was cut after its commit was done, and one that was cut before was not. This holds unless the
        // cut hit another transaction.
        if proxy.cuts() == before + 1 && counts.unavailable > unavailable {
            ensure(replayed == (cut == Cut::After), || {
                format!("{name} was cut {cut:?} the commit, and its response was replayed: {replayed}")
            })?;
        }
        made.insert(name, id);
        number += 1;
        ensure(number < size.cuts * 3, || format!("{number} requests caused only {} cuts", proxy.cuts()))?;
    }
    proxy.cut_next(Cut::Nowhere);

    let rows = cluster.list(&nodes[1], &tenant, "contacts").await?;
    let mut events: BTreeMap<String, usize> = BTreeMap::new();
    for event in cluster.events(tenant.id).await? {
        let data: Value = serde_json::from_str(event.data.get())?;
        *events.entry(text(&data, "id").to_owned()).or_default() += 1;
    }
    for (name, id) in &made {
        let count = rows.iter().filter(|row| text(row, "email") == name && text(row, "id") == id).count();
        let event_count = events.get(id).copied().unwrap_or_default();
        ensure(count == 1 && event_count == 1, || format!("{name} has {count} rows and {event_count} events"))?;
    }
    ensure(rows.len() == made.len() && events.len() == made.len(), || {
        format!("{} requests made {} rows and {} events", made.len(), rows.len(), events.len())
    })?;
    ensure(counts.unavailable > 0 && counts.replayed > 0, || {
        "no cut affected a request, so nothing was tested".to_owned()
    })?;
    let Counts { unavailable, in_progress, replayed, slowest } = counts;
    for node in nodes {
        node.stop().await?;
    }
    Ok(format!(
        "cut: {} connections at a commit, {number} requests: {unavailable} × 503 with Retry-After, {in_progress} × in \
         progress, {replayed} replayed; one row and one event each; slowest response {slowest:.1?}",
        proxy.cuts()
    ))
}

/// Repeats a request until it succeeds. Returns the email, the id, and whether the last response was a stored one.
async fn request(
    cluster: &TestCluster,
    nodes: &[Node; 2],
    key: &Key,
    number: usize,
    counts: &mut Counts,
) -> Result<(String, String, bool)> {
    let name = format!("r{number}@example.com");
    let body = json!({ "email": name });
    let request = TestRequest { idempotency_key: Some(&name), ..TestRequest::post("/contacts", &key.text, &body) };
    let deadline = Instant::now() + PATIENCE;
    for attempt in 0.. {
        // First at the node behind the proxy. For half of the requests the first repeat, and every third one after
        // it, goes to the other node.
        let node = &nodes[usize::from(attempt % 3 == 1 && number % 4 > 1)];
        let asked = Instant::now();
        let TestResponse { status, headers, replayed, body } = cluster.http.send(node.address, &request).await?;
        counts.slowest = counts.slowest.max(asked.elapsed());
        match status.as_u16() {
            201 => {
                counts.replayed += usize::from(replayed);
                return Ok((name, text(&body["data"], "id").to_owned(), replayed));
            }
            503 => {
                ensure(headers.contains_key("retry-after"), || "503 without Retry-After".to_owned())?;
                counts.unavailable += 1;
            }
            409 if body["code"] == "idempotency_in_progress" => counts.in_progress += 1,
            _ => return Err(format!("{name} got {status}: {body}").into()),
        }
        ensure(Instant::now() < deadline, || format!("{name} has not succeeded after {attempt} requests"))?;
        tokio::time::sleep(PAUSE).await;
    }
    Err("unreachable".into())
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}
