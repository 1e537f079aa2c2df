//! Honest clients: requests at a steady rate, whatever becomes of earlier ones (an open loop).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use svc_tests::Result;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::arena::Target;

/// What takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(10);
/// One request of so many comes over a new connection.
const FRESH: u64 = 10;

/// What the clients noticed.
#[derive(Default)]
pub(crate) struct Noticed {
    /// From when a request was due until its answer was there, in order.
    times: Vec<Duration>,
    /// What went wrong, and how often.
    pub(crate) errors: BTreeMap<String, usize>,
}

impl Noticed {
    pub(crate) fn count(&self) -> usize {
        self.times.len()
    }

    /// The time within which so many of a hundred requests were answered.
    pub(crate) fn percentile(&self, percent: usize) -> Duration {
        let at = (self.times.len() * percent).div_ceil(100).saturating_sub(1);
        self.times.get(at).copied().unwrap_or_default()
    }
}

/// Makes each address of this process another one.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Idle connections.
type Pool = Arc<Mutex<Vec<SendRequest<Full<Bytes>>>>>;

/// `rate` requests a second for `time`.
pub(crate) async fn load(target: &Target, rate: u32, time: Duration) -> Noticed {
    let (pool, target) = (Pool::default(), Arc::new(target.clone()));
    let mut under_way = JoinSet::new();
    let started = Instant::now();
    for number in 0.. {
        let due = started + Duration::from_secs(1) * number / rate;
        if due >= started + time {
            break;
        }
        tokio::time::sleep_until(due).await;
        let (pool, target) = (Arc::clone(&pool), Arc::clone(&target));
        under_way.spawn(async move {
            let answered = tokio::time::timeout(PATIENCE, ask(&target, &pool, number.into())).await;
            match answered {
                Err(_) => Err(format!("no answer in {PATIENCE:?}")),
                Ok(Err(error)) => Err(error.to_string()),
                Ok(Ok(())) => Ok(due.elapsed()),
            }
        });
    }
    let mut noticed = Noticed::default();
    for answered in under_way.join_all().await {
        match answered {
            Ok(time) => noticed.times.push(time),
            Err(error) => *noticed.errors.entry(error).or_default() += 1,
        }
    }
    noticed.times.sort_unstable();
    noticed
}

/// Seven reads of one record, two lists and one new contact in ten requests.
async fn ask(target: &Target, pool: &Pool, number: u64) -> Result<()> {
    let contact = format!("/contacts/{}", target.contact);
    let (method, path, body, status) = match number % 10 {
        0 => {
            let made = MADE.fetch_add(1, Ordering::Relaxed);
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
    let idle = match number % FRESH {
        FRESH_TURN => None,
        _ => idle(pool),
    };
    let mut sender = match idle {
        Some(sender) => sender,
        None => {
            let (sender, connection) = handshake(TokioIo::new(target.connect("http/1.1").await?)).await?;
            tokio::spawn(connection);
            sender
        }
    };
    let answer = sender.send_request(request).await?;
    let found = answer.status();
    answer.into_body().collect().await?;
    if found != status {
        return Err(format!("{method} was answered with {found}").into());
    }
    if let Ok(mut pool) = pool.lock() {
        pool.push(sender);
    }
    Ok(())
}

/// Which of them that is: neither always a write nor always a list.
const FRESH_TURN: u64 = 5;

/// The one that was used last.
fn idle(pool: &Pool) -> Option<SendRequest<Full<Bytes>>> {
    let mut pool = pool.lock().ok()?;
    std::iter::from_fn(|| pool.pop()).find(SendRequest::is_ready)
}
