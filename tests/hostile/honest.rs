//! The honest clients: requests at a fixed rate, whether or not earlier ones have completed (an open loop).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use svc_test_support::Result;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::server::Target;

/// One in this many requests uses a new connection.
const NEW_CONNECTION_EVERY: u64 = 10;

/// What the clients observed.
#[derive(Default)]
pub(crate) struct ClientResults {
    /// Latencies from the scheduled time of each request, in ascending order.
    latencies: Vec<Duration>,
    /// Error texts, and how often each occurred.
    pub(crate) errors: BTreeMap<String, usize>,
}

impl ClientResults {
    pub(crate) fn count(&self) -> usize {
        self.latencies.len()
    }

    /// Returns the latency that this percentage of the requests did not exceed.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let at = (self.latencies.len() * percent).div_ceil(100).saturating_sub(1);
        self.latencies.get(at).copied().unwrap_or_default()
    }
}

/// The number of contacts created, so that each has its own email.
static CREATED: AtomicU64 = AtomicU64::new(0);

/// Idle connections.
type Pool = Arc<Mutex<Vec<SendRequest<Full<Bytes>>>>>;

/// Sends `rate` requests per second for `time`. Each waits at most `patience` for its response.
pub(crate) async fn load(target: &Target, rate: u32, time: Duration, patience: Duration) -> ClientResults {
    let (pool, target) = (Pool::default(), Arc::new(target.clone()));
    let mut in_progress = JoinSet::new();
    let started = Instant::now();
    for number in 0.. {
        let due = started + Duration::from_secs(1) * number / rate;
        if due >= started + time {
            break;
        }
        tokio::time::sleep_until(due).await;
        let (pool, target) = (Arc::clone(&pool), Arc::clone(&target));
        in_progress.spawn(async move {
            let responded = tokio::time::timeout(patience, request(&target, &pool, number.into())).await;
            match responded {
                Err(_) => Err(format!("no response within {patience:?}")),
                Ok(Err(error)) => Err(error.to_string()),
                Ok(Ok(())) => Ok(due.elapsed()),
            }
        });
    }
    let mut results = ClientResults::default();
    for responded in in_progress.join_all().await {
        match responded {
            Ok(time) => results.latencies.push(time),
            Err(error) => *results.errors.entry(error).or_default() += 1,
        }
    }
    results.latencies.sort_unstable();
    results
}

/// Of ten requests, seven read a record, two read a list and one creates a contact.
async fn request(target: &Target, pool: &Pool, number: u64) -> Result<()> {
    let contact = format!("/contacts/{}", target.contact);
    let (method, path, body, status) = match number % 10 {
        0 => {
            let made = CREATED.fetch_add(1, Ordering::Relaxed);
            let body = format!("{{\"email\":\"honest{made}@example.com\",\"first_name\":\"Grace\"}}");
            ("POST", "/contacts", body, StatusCode::CREATED)
        }
        1 | 2 => ("GET", "/contacts?limit=50", String::new(), StatusCode::OK),
        _ => ("GET", contact.as_str(), String::new(), StatusCode::OK),
    };
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"))
        .header("host", "localhost")
        .header("authorization", format!("Bearer {}", target.key()))
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(body)))?;
    let idle = match number % NEW_CONNECTION_EVERY {
        NEW_CONNECTION_OFFSET => None,
        _ => idle(pool),
    };
    let (sender, response) = match idle {
        Some(mut sender) => match sender.send_request(request.clone()).await {
            Ok(response) => (sender, response),
            // A server may close an idle connection while a request is on its way. Clients send it again on a new one.
            Err(_) => on_new_connection(target, request).await?,
        },
        None => on_new_connection(target, request).await?,
    };
    let actual = response.status();
    response.into_body().collect().await?;
    if actual != status {
        return Err(format!("{method} got {actual}").into());
    }
    if let Ok(mut pool) = pool.lock() {
        pool.push(sender);
    }
    Ok(())
}

async fn on_new_connection(
    target: &Target,
    request: Request<Full<Bytes>>,
) -> Result<(SendRequest<Full<Bytes>>, Response<Incoming>)> {
    let (mut sender, connection) = handshake(TokioIo::new(target.connect("http/1.1").await?)).await?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    Ok((sender, response))
}

/// The remainder of their numbers. These requests are neither all writes nor all lists.
const NEW_CONNECTION_OFFSET: u64 = 5;

/// Returns the most recently used idle connection.
fn idle(pool: &Pool) -> Option<SendRequest<Full<Bytes>>> {
    let mut pool = pool.lock().ok()?;
    std::iter::from_fn(|| pool.pop()).find(SendRequest::is_ready)
}
