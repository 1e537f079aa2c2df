//! Scenario `upgrade`: nodes of an earlier release serve a database, and are replaced under load, one after the other. The
//! first new node applies its migrations while the old ones go on. No request fails, and no acknowledged write and no
//! delivery is lost.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use svc_core::store::DeliveryFilter;
use svc_core::webhooks::deliveries::DeliveryStatus;
use svc_test_support::Result;
use svc_test_support::database::Database;
use svc_test_support::http::{HttpClient, TestRequest};
use svc_test_support::node::{Node, Program};
use tokio::process::Command;

use crate::cluster::{Key, SetUp, Tenant, TestCluster, ensure, until};
use crate::load::Load;
use crate::receiver::{Behavior, Receiver};

const FLAGS: [&str; 1] = ["--no-rate-limit"];
/// How long requests are sent before, between and after the replacements.
const UP: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);

/// Replaces the nodes of an earlier release under load; no request may fail.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// The folder with both programs of the earlier release, svc-server and svc.
    #[arg(long, value_name = "FOLDER")]
    before: PathBuf,
}

pub(crate) async fn run(database: Database, set_up: SetUp, size: &Size) -> Result<String> {
    ensure(!set_up.pooler, || "this cannot run with --pooler".to_owned())?;
    let earlier = Program { file: Some(size.before.join("svc-server")), ..set_up.program.clone() };
    let mut old: Vec<Node> = Vec::new();
    for _ in 0..set_up.nodes {
        old.push(earlier.start(&database, &FLAGS).await?);
    }
    // What this process does itself would bring the database up to date.
    let tenant = tenant(&size.before.join("svc"), &database).await?;
    let (http, receiver) = (HttpClient::default(), Receiver::listen(Behavior::Accept).await?);
    subscribe(&http, &old[0], &tenant, &receiver.url("subscription")).await?;

    let load = Load::start(&http, &tenant, &old);
    load.served_again(PATIENCE).await?;
    tokio::time::sleep(UP).await;
    let mut new: Vec<Node> = Vec::new();
    for node in old {
        new.push(set_up.program.start(&database, &FLAGS).await?);
        load.served_again(PATIENCE).await?;
        load.replace(&node, &new[new.len() - 1]);
        node.stop().await?;
        load.served_again(PATIENCE).await?;
        tokio::time::sleep(UP).await;
    }
    let cluster = TestCluster::new(database, set_up).await?;
    let outcome = load.end(&cluster, &new[0]).await?;
    let (acknowledged, unavailable, slowest) = (outcome.acknowledged(), outcome.unavailable, outcome.slowest);
    outcome.ensure_none_lost()?;
    ensure(unavailable == 0, || format!("{unavailable} requests were refused with 503"))?;
    until("nothing is pending", PATIENCE, || async {
        let filter = DeliveryFilter { status: Some(DeliveryStatus::Pending), limit: 1, ..DeliveryFilter::default() };
        Ok(cluster.deliveries(tenant.id, filter).await?.is_empty())
    })
    .await?;
    let arrivals = receiver.arrivals();
    let delivered: HashSet<_> = arrivals.iter().map(|arrival| arrival.delivery).collect();
    let (events, repeats) = (cluster.events(tenant.id).await?.len(), arrivals.len() - delivered.len());
    ensure(delivered.len() == events, || format!("of {events} events {} arrived", delivered.len()))?;
    for node in new {
        node.stop().await?;
    }
    Ok(format!(
        "upgrade: {} nodes replaced; {acknowledged} writes acknowledged, 0 lost, 0 refused, slowest response {slowest:.1?}; \
         {events} events delivered, {repeats} of them again",
        cluster.set_up.nodes
    ))
}

/// Creates a tenant by the command line program of the earlier release.
async fn tenant(svc: &Path, database: &Database) -> Result<Tenant> {
    let mut command = Command::new(svc);
    command.args(["init", "--json", "--database-url", &database.url]).envs(database.variables());
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output().await?;
    ensure(output.status.success(), || format!("svc init: {}", String::from_utf8_lossy(&output.stderr)))?;
    let made: Value = serde_json::from_slice(&output.stdout)?;
    let text = |name: &str| made[name].as_str().ok_or_else(|| format!("svc init printed no {name}"));
    let key = Key { id: text("key_id")?.parse()?, text: text("key")?.to_owned(), secret: None };
    Ok(Tenant { id: text("tenant_id")?.parse()?, key })
}

/// Subscribes a tenant to all events, at a node of the earlier release.
async fn subscribe(http: &HttpClient, node: &Node, tenant: &Tenant, url: &str) -> Result<()> {
    let body = json!({ "url": url, "events": ["*"] });
    let response = http.send(node.address, &TestRequest::post("/webhooks", &tenant.key.text, &body)).await?;
    ensure(response.status == 201, || format!("the webhook got {}: {}", response.status, response.body))
}
