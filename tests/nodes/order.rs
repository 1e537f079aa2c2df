//! Scenario `order`: writers on all nodes, transactions that take their timestamp early and commit late, and a
//! client that follows `updated_since` from the last change it has seen, at one node after the other.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use clap::Args;
use http::Method;
use serde_json::{Value, json};
use svc_core::input::Input as _;
use svc_core::resources::contacts::Contact;
use svc_core::resources::{Create, crud};
use svc_test_support::Result;
use svc_test_support::http::TestRequest;
use svc_test_support::node::Node;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::{Tenant, TestCluster, ensure};

const WRITERS: usize = 16;
/// How long a late transaction stays open after it has taken its timestamp.
const HELD: Duration = Duration::from_millis(400);
/// Pause between two late transactions.
const HELD_EVERY: Duration = Duration::from_millis(600);
const PATIENCE: Duration = Duration::from_secs(30);

/// Follows `updated_since` while all nodes write; no change may be missed.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// Number of changes.
    #[arg(long, default_value_t = 20_000)]
    changes: usize,
}

/// The id and `updated_at` of a record in the response to its writer.
type Written = (String, String);

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let nodes = Arc::new(cluster.start_nodes(&["--no-rate-limit"]).await?);
    let tenant = cluster.tenant().await?;
    let started = Instant::now();
    let written = Arc::new(AtomicUsize::new(0));
    // The late transactions end after the writers, and the client only after both.
    let (writers_done, all_done) = (watch::Sender::new(false), watch::Sender::new(false));

    let mut writers = JoinSet::new();
    for number in 0..WRITERS {
        let writer = Writer { http: cluster.http.clone(), nodes: Arc::clone(&nodes), tenant: tenant.clone(), number };
        writers.spawn(writer.run(Arc::clone(&written), size.changes));
    }
    let late = late(cluster, &tenant, writers_done.subscribe());
    let follow = follow(cluster, &nodes, &tenant, all_done.subscribe());
    let wait = async {
        let mut all: Vec<Written> = Vec::new();
        while let Some(ended) = writers.join_next().await {
            all.extend(ended??);
        }
        writers_done.send_replace(true);
        Ok(all)
    };
    let write = async {
        let changes = tokio::try_join!(wait, late)?;
        all_done.send_replace(true);
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(changes)
    };
    let ((acknowledged, late), followed) = tokio::try_join!(write, follow)?;

    let (mut missed, mut stale) = (0, 0);
    for (id, updated_at) in acknowledged.iter().chain(&late) {
        match followed.rows.get(id) {
            None => missed += 1,
            Some(seen) if seen < updated_at => stale += 1,
            Some(_) => {}
        }
    }
    let truth = cluster.list(&nodes[0], &tenant, "contacts").await?;
    let differs = truth
        .iter()
        .filter(|row| followed.rows.get(text(row, "id")).map(String::as_str) != Some(text(row, "updated_at")));
    let differs = differs.count() + followed.rows.len().abs_diff(truth.len());
    let (changes, held) = (acknowledged.len(), late.len());
    ensure(missed + stale + differs == 0, || {
        format!(
            "of {changes} changes {missed} were missed, {stale} were seen in an older version only; {differs} rows differ"
        )
    })?;
    ensure(changes >= size.changes && held > 0, || {
        format!("only {changes} changes and {held} late commits were made")
    })?;
    let (seen, polls) = (followed.seen, followed.polls);
    Ok(format!(
        "order: {changes} changes by {WRITERS} writers on {} nodes and {held} that were committed {HELD:?} after their \
         timestamp; {polls} polls saw {seen} rows in strictly increasing order of updated_at: 0 missed ({:.1?})",
        nodes.len(),
        started.elapsed()
    ))
}

struct Writer {
    http: svc_test_support::http::HttpClient,
    nodes: Arc<Vec<Node>>,
    tenant: Tenant,
    number: usize,
}

impl Writer {
    /// Creates contacts and changes one for every two created, until all writers together have made enough changes.
    async fn run(self, written: Arc<AtomicUsize>, enough: usize) -> Result<Vec<Written>> {
        let mut all = Vec::new();
        let address = self.nodes[self.number % self.nodes.len()].address;
        let key = &self.tenant.key.text;
        for number in 0_usize.. {
            if written.fetch_add(1, Ordering::Relaxed) >= enough {
                break;
            }
            let create = json!({ "email": format!("w{}-{number}@example.com", self.number) });
            let change = json!({ "city": format!("City {number}") });
            let last: Option<&Written> = all.last().filter(|_| number % 3 == 2);
            let path = last.map_or("/contacts".to_owned(), |(id, _)| format!("/contacts/{id}"));
            let request = match last {
                None => TestRequest::post(&path, key, &create),
                Some(_) => TestRequest { method: Method::PATCH, ..TestRequest::post(&path, key, &change) },
            };
            let response = self.http.send(address, &request).await?;
            ensure(response.status.is_success(), || format!("{} {path}: {}", request.method, response.body))?;
            let row = &response.body["data"];
            all.push((text(row, "id").to_owned(), text(row, "updated_at").to_owned()));
        }
        Ok(all)
    }
}

/// Runs transactions that take their timestamp early and commit late, while the writers wait for the tenant's row.
async fn late(cluster: &TestCluster, tenant: &Tenant, done: watch::Receiver<bool>) -> Result<Vec<Written>> {
    let (mut all, id) = (Vec::new(), tenant.id);
    while !*done.borrow() {
        let written = cluster.store.write("nodes.late", id, async |tx, &id| {
            let input = <Contact as Create>::Input::from_body(br#"{"email": "late@example.com"}"#);

            let contact = crud::create::<Contact>(tx, id, input?).await?;
            tokio::time::sleep(HELD).await;
            Ok(contact)
        });
        let contact = written.await?;
        all.push((contact.id.to_string(), contact.updated_at.to_string()));
        tokio::time::sleep(HELD_EVERY).await;
    }
    Ok(all)
}

#[derive(Default)]
struct Followed {
    /// The last `updated_at` that was seen, by id.
    rows: HashMap<String, String>,
    seen: usize,
    polls: usize,
}

/// Polls for changes since the last one it has seen, and once more after the last write.
async fn follow(
    cluster: &TestCluster,
    nodes: &[Node],
    tenant: &Tenant,
    done: watch::Receiver<bool>,
) -> Result<Followed> {
    let mut followed = Followed::default();
    let mut last = String::new();
    let mut deadline = None;
    loop {
        let was_done = *done.borrow();
        let since = if last.is_empty() { "2020-01-01T00:00:00Z" } else { &last };
        let path = format!("/contacts?limit=200&updated_since={since}");
        let node = &nodes[followed.polls % nodes.len()];
        followed.polls += 1;
        let response = cluster.expect(200, node, &TestRequest::get(&path, &tenant.key.text)).await?;
        let rows = response.body["data"].as_array().cloned().unwrap_or_default();
        let mut fresh = 0;
        for row in &rows {
            let at = text(row, "updated_at");
            // `updated_since` is inclusive, so the last row is returned again.
            if at == last {
                continue;
            }
            ensure(at > last.as_str(), || format!("after {last} came {at}"))?;
            last = at.to_owned();
            followed.rows.insert(text(row, "id").to_owned(), last.clone());
            fresh += 1;
        }
        followed.seen += fresh;
        if was_done && fresh == 0 {
            return Ok(followed);
        }
        if was_done {
            let deadline = *deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            ensure(Instant::now() < deadline, || "the list of changes has no end".to_owned())?;
        }
    }
}

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}
