//! Scenario `revoked`: clients use a key at a node while it is revoked through another process. Requests sent after
//! the revocation was acknowledged must be refused.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use svc_core::accounts::keys;
use svc_test_support::Result;
use svc_test_support::http::{HttpClient, TestRequest};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::{Key, TestCluster, ensure};

/// Concurrent clients of one key.
const CONCURRENT: usize = 3;
/// Requests that each client sends after the revocation.
const AFTER: usize = 4;
/// Keys that are tested concurrently.
const CONCURRENT_KEYS: usize = 4;
/// Time for the clients to start.
const HEAD_START: Duration = Duration::from_millis(15);

/// Revokes keys in use; every node must refuse them as soon as the revocation is acknowledged.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// Number of keys.
    #[arg(long, default_value_t = 1_000)]
    keys: usize,
}

/// When a request was sent, and whether it was accepted.
type SentRequest = (Instant, bool);

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let nodes = cluster.start_nodes(&["--no-rate-limit"]).await?;
    let tenant = cluster.tenant().await?.id;
    let (mut left, mut running) = (size.keys, JoinSet::new());
    let (mut before, mut after, mut late) = (0, 0, 0);
    loop {
        while left > 0 && running.len() < CONCURRENT_KEYS {
            left -= 1;
            let key = cluster.key(tenant, false).await?;
            let (http, store, address) =
                (cluster.http.clone(), Arc::clone(&cluster.store), nodes[left % nodes.len()].address);
            running.spawn(async move {
                let acknowledged = watch::Sender::new(None);
                let mut clients = JoinSet::new();
                for _ in 0..CONCURRENT {
                    clients.spawn(use_key(http.clone(), address, key.clone(), acknowledged.subscribe()));
                }
                tokio::time::sleep(HEAD_START).await;
                let id = key.id;
                store.write("nodes.revoke", id, async |tx, &id| keys::revoke(tx, id).await).await?;
                let revoked = Instant::now();
                acknowledged.send_replace(Some(revoked));
                let mut all: Vec<SentRequest> = Vec::new();
                while let Some(ended) = clients.join_next().await {
                    all.extend(ended??);
                }
                Ok::<_, Box<dyn std::error::Error + Send + Sync>>((revoked, all))
            });
        }
        let Some(ended) = running.join_next().await else { break };
        let (revoked, asked) = ended??;
        before += asked.iter().filter(|(began, accepted)| *began < revoked && *accepted).count();
        after += asked.iter().filter(|(began, _)| *began >= revoked).count();
        late += asked.iter().filter(|(began, accepted)| *began >= revoked && *accepted).count();
    }
    let keys = size.keys;
    ensure(late == 0, || format!("{late} of {after} requests were accepted after the revocation"))?;
    ensure(before >= keys && after >= keys, || {
        format!("too few requests: {before} accepted before the revocation, {after} sent after it")
    })?;
    Ok(format!(
        "revoked: {keys} keys; {before} requests were accepted before the revocation, and 0 of {after} sent after it"
    ))
}

/// Uses a key until some requests after its revocation.
async fn use_key(
    http: HttpClient,
    address: std::net::SocketAddr,
    key: Key,
    acknowledged: watch::Receiver<Option<Instant>>,
) -> Result<Vec<SentRequest>> {
    let (mut all, mut left) = (Vec::new(), AFTER);
    while left > 0 {
        let is_revoked = acknowledged.borrow().is_some();
        let began = Instant::now();
        let status = http.send(address, &TestRequest::get("/ping", &key.text)).await?.status.as_u16();
        ensure(status == 200 || status == 401, || format!("a ping got {status}"))?;
        all.push((began, status == 200));
        left -= usize::from(is_revoked);
    }
    Ok(all)
}
