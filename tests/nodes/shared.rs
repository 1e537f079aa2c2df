//! Scenario `shared`: rate limits, used signatures, Idempotency-Keys and failure counts apply to all nodes together.

use std::time::Duration;

use clap::Args;
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use svc_core::accounts::signing::SignedRequest;
use svc_core::store::DeliveryFilter;
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_core::webhooks::subscriptions::DisabledReason;
use svc_test_support::Result;
use svc_test_support::http::{TestRequest, TestResponse};
use svc_test_support::node::Node;
use tokio::task::JoinSet;

use crate::cluster::{Tenant, TestCluster, ensure, until};
use crate::receiver::{Behavior, Receiver};

const BURST: usize = 200;
/// Concurrent requests of the burst.
const CONCURRENT: usize = 20;
const LIMIT: usize = 60;
/// Consecutive failures that pause a subscription.
const PAUSE_AFTER: u32 = 10;
const PATIENCE: Duration = Duration::from_secs(30);

/// Tests rate limits, signatures, Idempotency-Keys and failure counts across all nodes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// How often each is tested, each time with new keys and tenants.
    #[arg(long, default_value_t = 10)]
    rounds: usize,
}

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let nodes = cluster.start_nodes(&["--webhook-timeout", "2s", "--webhook-retry", "5ms,5ms,5ms,5ms,5ms"]).await?;
    let (mut in_progress, mut attempts) = (0, Vec::new());
    for _ in 0..size.rounds {
        burst(cluster, &nodes).await?;
        signature(cluster, &nodes).await?;
        later(cluster, &nodes).await?;
        in_progress += at_once(cluster, &nodes).await?;
        attempts.push(paused(cluster, nodes.len()).await?);
    }
    attempts.sort_unstable();
    Ok(format!(
        "shared, {} rounds: of {BURST} requests at {} nodes exactly {LIMIT} were accepted; a used signature was refused at \
         every other node; an Idempotency-Key of one node was replayed by another, and concurrent repeats at all made one row and \
         one event ({in_progress} × in progress); a subscription was paused at failure {PAUSE_AFTER}, after \
         {:?} to {:?} attempts",
        size.rounds,
        nodes.len(),
        attempts.first().unwrap_or(&0),
        attempts.last().unwrap_or(&0)
    ))
}

async fn burst(cluster: &TestCluster, nodes: &[Node]) -> Result<()> {
    let key = cluster.tenant().await?.key.text;
    let (mut running, mut passed, mut refused) = (JoinSet::new(), 0, vec![0; nodes.len()]);
    let mut note = |(number, status): (usize, u16)| {
        match status {
            200 => passed += 1,
            429 => refused[number % nodes.len()] += 1,
            other => return Err(format!("a ping got {other}").into()),
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    };
    for number in 0..BURST {
        if running.len() == CONCURRENT
            && let Some(ended) = running.join_next().await
        {
            note(ended??)?;
        }
        let (http, address, key) = (cluster.http.clone(), nodes[number % nodes.len()].address, key.clone());
        running.spawn(async move {
            let response: Result<TestResponse> = http.send(address, &TestRequest::get("/ping", &key)).await;
            response.map(|response| (number, response.status.as_u16()))
        });
    }
    while let Some(ended) = running.join_next().await {
        note(ended??)?;
    }
    ensure(passed == LIMIT && refused.iter().all(|count| *count > 0), || {
        format!("of {BURST} requests {passed} were accepted, not {LIMIT}; refused per node: {refused:?}")
    })
}

async fn signature(cluster: &TestCluster, nodes: &[Node]) -> Result<()> {
    let tenant = cluster.tenant().await?;
    let key = cluster.key(tenant.id, true).await?;
    let secret = key.secret.as_ref().ok_or("the key has no signing secret")?;
    let body = json!({ "title": "Fix tap" });
    let timestamp = cluster.store.env().now().as_seconds().to_string();
    let text = body.to_string();
    let path_and_query = "/api/v1/jobs";
    let signed = SignedRequest { timestamp: &timestamp, method: "POST", path_and_query, body: text.as_bytes() };
    let signature = signed.sign(secret);
    let headers = [("x-svc-timestamp", timestamp.as_str()), ("x-svc-signature", signature.as_str())];
    let request = TestRequest { headers: &headers, ..TestRequest::post("/jobs", &key.text, &body) };
    cluster.expect(201, &nodes[0], &request).await?;
    for node in &nodes[1..] {
        let response = cluster.expect(401, node, &request).await?;
        ensure(response.body["code"] == "signature_reused", || response.body.to_string())?;
    }
    Ok(())
}

async fn later(cluster: &TestCluster, nodes: &[Node]) -> Result<()> {
    let tenant = cluster.tenant().await?;
    let body = json!({ "email": "ada@example.com" });
    let request =
        TestRequest { idempotency_key: Some("one"), ..TestRequest::post("/contacts", &tenant.key.text, &body) };
    let first = cluster.expect(201, &nodes[0], &request).await?;
    let again = cluster.expect(201, &nodes[1], &request).await?;
    ensure(again.replayed && again.body == first.body, || format!("{} and then {}", first.body, again.body))?;
    made_once(cluster, nodes, &tenant).await
}

/// Returns how many requests got `idempotency_in_progress`.
async fn at_once(cluster: &TestCluster, nodes: &[Node]) -> Result<usize> {
    const TIMES: usize = 10;
    let body = json!({ "email": "ada@example.com" });
    let mut waiting = 0;
    for number in 0..TIMES {
        let tenant = cluster.tenant().await?;
        let name = format!("all-{number}");
        let request =
            TestRequest { idempotency_key: Some(&name), ..TestRequest::post("/contacts", &tenant.key.text, &body) };
        let sent = nodes.iter().map(|node| cluster.http.send(node.address, &request));
        let responses = try_join_all(sent).await?;
        let mut fresh = 0;
        for TestResponse { status, replayed, body, .. } in &responses {
            match (status.as_u16(), replayed) {
                (201, replayed) => fresh += usize::from(!replayed),
                (409, _) if body["code"] == "idempotency_in_progress" => waiting += 1,
                _ => return Err(format!("{name} got {status}: {body}").into()),
            }
        }
        let same = responses.iter().filter(|response| response.status == 201).all(|response| {
            let first = responses.iter().find(|response| response.status == 201);
            first.is_some_and(|first| first.body == response.body)
        });
        ensure(fresh == 1 && same, || format!("{name} was done {fresh} times: {responses:?}"))?;
        made_once(cluster, nodes, &tenant).await?;
    }
    Ok(waiting)
}

async fn made_once(cluster: &TestCluster, nodes: &[Node], tenant: &Tenant) -> Result<()> {
    let rows: Vec<Value> = cluster.list(&nodes[1], tenant, "contacts").await?;
    let events = cluster.events(tenant.id).await?.len();
    ensure(rows.len() == 1 && events == 1, || format!("a request made {} rows and {events} events", rows.len()))
}

/// Returns the number of attempts. Those beyond ten were in progress at the first failure.
async fn paused(cluster: &TestCluster, nodes: usize) -> Result<usize> {
    let receiver = Receiver::listen(Behavior::Refuse).await?;
    let tenant = cluster.tenant().await?.id;
    let subscription = cluster.subscribe(tenant, &receiver.url("subscription")).await?;
    cluster.emit(tenant, 40).await?;
    until("the subscription is paused", PATIENCE, || async {
        Ok(!cluster.subscription(tenant, subscription).await?.enabled)
    })
    .await?;
    // Attempts in progress have to end first.
    until("all deliveries are held", PATIENCE, || async {
        let filter = DeliveryFilter { status: Some(DeliveryStatus::Pending), ..DeliveryFilter::default() };
        Ok(cluster.deliveries(tenant, filter).await?.is_empty())
    })
    .await?;
    until("all outcomes are stored", PATIENCE, || async {
        Ok(cluster.logs(tenant).await?.iter().all(|(delivery, _)| delivery.lease.is_none()))
    })
    .await?;
    let subscription = cluster.subscription(tenant, subscription).await?;
    let (failures, reason) = (subscription.consecutive_failures, subscription.disabled_reason);
    ensure(failures == PAUSE_AFTER && reason == Some(DisabledReason::AutoPaused), || {
        format!("it was paused after {failures} failures, {reason:?}")
    })?;
    let logs = cluster.logs(tenant).await?;
    let (stored, arrived) = (logs.iter().map(|(_, log)| log.len()).sum::<usize>(), receiver.arrivals().len());
    let made: u32 = logs.iter().map(|(delivery, _)| delivery.attempts).sum();
    // Each node may have four attempts in progress at the first failure, which count once. The other nine follow singly.
    ensure(stored == arrived && made as usize == stored && (10..=9 + 4 * nodes).contains(&stored), || {
        format!("{made} attempts were made, {arrived} arrived, {stored} are stored")
    })?;
    Ok(stored)
}
