//! Revocations: a client uses a key at one node while it is revoked beside the other. What began after the
//! revocation was acknowledged must be refused.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use svc_core::accounts::keys;
use svc_tests::Result;
use svc_tests::http::{HttpClient, TestRequest};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::cluster::{Key, TestCluster, ensure};

/// Requests of one key that are under way at the same time.
const CONCURRENT: usize = 3;
/// Requests after the revocation, of each of those.
const AFTER: usize = 4;
/// Keys that are being revoked at the same time.
const CONCURRENT_KEYS: usize = 4;
/// The client has begun by then.
const HEAD_START: Duration = Duration::from_millis(15);

/// A key is refused on every node from the moment on that its revocation was acknowledged.
#[derive(Clone, Debug, Args)]
pub(crate) struct Size {
    /// Keys that are revoked.
    #[arg(long, default_value_t = 1_000)]
    keys: usize,
}

/// When a request began, and whether it was accepted.
type Request = (Instant, bool);

pub(crate) async fn run(cluster: &TestCluster, size: &Size) -> Result<String> {
    let [_, other] = cluster.start_two(&["--no-rate-limit"]).await?;
    let tenant = cluster.tenant().await?.id;
    let (mut left, mut running) = (size.keys, JoinSet::new());
    let (mut before, mut after, mut late) = (0, 0, 0);
    loop {
        while left > 0 && running.len() < CONCURRENT_KEYS {
            left -= 1;
            let key = cluster.key(tenant, false).await?;
            let (http, store, address) = (cluster.http.clone(), Arc::clone(&cluster.store), other.address);
            running.spawn(async move {
                let acknowledged = watch::Sender::new(None);
                let mut clients = JoinSet::new();
                for _ in 0..CONCURRENT {
                    clients.spawn(use_key(http.clone(), address, key.clone(), acknowledged.subscribe()));
                }
                tokio::time::sleep(HEAD_START).await;
                let id = key.id;
                store.write("nodes.revoke", move |tx| Box::pin(keys::revoke(tx, id))).await?;
                let revoked = Instant::now();
                acknowledged.send_replace(Some(revoked));
                let mut all: Vec<Request> = Vec::new();
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
    ensure(before >= keys && after >= keys, || format!("{before} accepted before and {after} asked after: too few"))?;
    Ok(format!(
        "revoked: {keys} keys; {before} requests were accepted before, of {after} that began after the acknowledgement 0"
    ))
}

/// Uses a key until it has been revoked for a while.
async fn use_key(
    http: HttpClient,
    address: std::net::SocketAddr,
    key: Key,
    acknowledged: watch::Receiver<Option<Instant>>,
) -> Result<Vec<Request>> {
    let (mut all, mut left) = (Vec::new(), AFTER);
    while left > 0 {
        let is_revoked = acknowledged.borrow().is_some();
        let began = Instant::now();
        let status = http.send(address, &TestRequest::get("/ping", &key.text)).await?.status.as_u16();
        ensure(status == 200 || status == 401, || format!("a ping was answered with {status}"))?;
        all.push((began, status == 200));
        left -= usize::from(is_revoked);
    }
    Ok(all)
}
