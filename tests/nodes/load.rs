//! Clients that create contacts on all nodes while something happens to them, and what must hold of their writes afterwards.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use svc_test_support::Result;
use svc_test_support::http::{HttpClient, TestRequest};
use svc_test_support::node::Node;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::{Tenant, TestCluster, ensure, until};

const CLIENTS: usize = 8;
/// Pause of a client between two requests.
const PAUSE: Duration = Duration::from_millis(20);

/// Clients at work.
pub(crate) struct Load {
    shared: Shared,
    tenant: Tenant,
    stop: watch::Sender<bool>,
    clients: JoinSet<Result<()>>,
}

/// What came of the requests.
#[derive(Default)]
pub(crate) struct Outcome {
    /// The contacts whose creation was acknowledged, by email.
    acknowledged: BTreeSet<String>,
    /// How many requests were refused with 503.
    pub(crate) unavailable: usize,
    /// The longest response time.
    pub(crate) slowest: Duration,
    /// How many of the acknowledged contacts are not there.
    pub(crate) lost: usize,
}

impl Outcome {
    pub(crate) fn acknowledged(&self) -> usize {
        self.acknowledged.len()
    }

    pub(crate) fn ensure_none_lost(&self) -> Result<()> {
        ensure(self.lost == 0, || format!("{} of {} acknowledged writes are lost", self.lost, self.acknowledged()))
    }
}

#[derive(Clone)]
struct Shared(Arc<Mutex<State>>);

struct State {
    outcome: Outcome,
    /// Where the clients send their requests: client 0 to the first address, and so on.
    addresses: Vec<SocketAddr>,
    /// For each address, when a request was first acknowledged since they were cleared.
    served: Vec<Option<Instant>>,
}

impl Load {
    /// Starts clients, which share the nodes.
    pub(crate) fn start(http: &HttpClient, tenant: &Tenant, nodes: &[Node]) -> Self {
        let addresses: Vec<SocketAddr> = nodes.iter().map(|node| node.address).collect();
        let served = vec![None; addresses.len()];
        let shared = Shared(Arc::new(Mutex::new(State { outcome: Outcome::default(), addresses, served })));
        let (stop, mut clients) = (watch::Sender::new(false), JoinSet::new());
        for number in 0..CLIENTS.max(nodes.len()) {
            let (http, key) = (http.clone(), tenant.key.text.clone());
            clients.spawn(create(http, key, number, shared.clone(), stop.subscribe()));
        }
        Self { shared, tenant: tenant.clone(), stop, clients }
    }

    /// Sends further requests to another node in place of this one.
    pub(crate) fn replace(&self, old: &Node, new: &Node) {
        self.shared.with(|state| {
            let places = state.addresses.iter_mut().filter(|address| **address == old.address);
            places.for_each(|address| *address = new.address);
        });
    }

    /// Waits until every node has acknowledged a request, and returns how long it took.
    pub(crate) async fn served_again(&self, patience: Duration) -> Result<Duration> {
        let started = Instant::now();
        self.shared.with(|state| state.served.fill(None));
        until("requests succeed on all nodes", patience, || async {
            Ok(self.shared.with(|state| state.served.iter().all(Option::is_some)))
        })
        .await?;
        let last = self.shared.with(|state| state.served.iter().flatten().max().copied());
        Ok(last.unwrap_or(started) - started)
    }

    /// Stops the clients, and compares what was acknowledged to what a node has. What was acknowledged and is not there is
    /// counted; everything else that does not fit is an error.
    pub(crate) async fn end(mut self, cluster: &TestCluster, node: &Node) -> Result<Outcome> {
        self.stop.send_replace(true);
        while let Some(ended) = self.clients.join_next().await {
            ended??;
        }
        let rows = cluster.list(node, &self.tenant, "contacts").await?;
        let there: BTreeSet<&str> = rows.iter().filter_map(|row| row["email"].as_str()).collect();
        let mut outcome = self.shared.with(|state| std::mem::take(&mut state.outcome));
        outcome.lost = outcome.acknowledged.iter().filter(|name| !there.contains(name.as_str())).count();
        let events = cluster.events(self.tenant.id).await?.len();
        ensure(events == rows.len() && there.len() == rows.len(), || {
            format!("{} rows of {} requests have {events} events", rows.len(), there.len())
        })?;
        Ok(outcome)
    }
}

impl Shared {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Creates contacts one after the other; a refused request is repeated with its Idempotency-Key.
async fn create(
    http: HttpClient,
    key: String,
    number: usize,
    shared: Shared,
    stop: watch::Receiver<bool>,
) -> Result<()> {
    for sequence in 0_usize.. {
        let name = format!("c{number}-{sequence}@example.com");
        let body = json!({ "email": name });
        let request = TestRequest { idempotency_key: Some(&name), ..TestRequest::post("/contacts", &key, &body) };
        let place = loop {
            if *stop.borrow() {
                return Ok(());
            }
            let (place, address) = shared.with(|state| {
                let place = number % state.addresses.len();
                (place, state.addresses[place])
            });
            let asked = Instant::now();
            let response = http.send(address, &request).await?;
            shared.with(|state| state.outcome.slowest = state.outcome.slowest.max(asked.elapsed()));
            match response.status.as_u16() {
                201 => break place,
                503 => {
                    ensure(response.headers.contains_key("retry-after"), || "503 without Retry-After".to_owned())?;
                    shared.with(|state| state.outcome.unavailable += 1);
                }
                409 if response.body["code"] == "idempotency_in_progress" => {}
                status => return Err(format!("{name} got {status}: {}", response.body).into()),
            }
            tokio::time::sleep(PAUSE).await;
        };
        shared.with(|state| {
            state.outcome.acknowledged.insert(name);
            state.served[place].get_or_insert_with(Instant::now);
        });
    }
    Ok(())
}
