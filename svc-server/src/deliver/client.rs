//! One attempt over HTTP: a deadline over all of it, a bound on what is read, no redirects, no proxies, no
//! decompression.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use svc_core::env::Env;
use svc_core::values::Timestamp;
use svc_core::webhooks::deliveries::{AttemptLog, FailureClass};
use svc_core::webhooks::engine::{Attempt, Outcome};
use tokio::time::{Instant, timeout_at};

use super::WebhookClient;
use super::dial::{CHECKED_ADDRESSES, DialError, Dialer, Dialled};
use crate::deliver::resolver::Resolver;

/// Bytes of an answer that are read at most.
const MOST_READ: usize = 64 * 1024;
/// Bytes of an answer that the log keeps.
const MOST_KEPT: usize = 16 * 1024;
/// How long an idle connection is kept for the next delivery.
const IDLE: Duration = Duration::from_secs(60);

const AGENT: &str = concat!("svc-webhooks/", env!("CARGO_PKG_VERSION"));

/// Posts deliveries over kept-alive connections.
pub struct HttpWebhookClient {
    inner: Arc<Inner>,
}

struct Inner {
    env: Env,
    timeout: Duration,
    dialer: Dialer,
    client: Client<Dialer, Full<Bytes>>,
}

/// What came back.
struct Answer {
    status: StatusCode,
    body: Vec<u8>,
    more: bool,
    retry_after: Option<Duration>,
}

/// Why nothing, or not all, came back.
struct Failure {
    class: FailureClass,
    reason: String,
    /// The status, when the answer broke off after it.
    status: Option<StatusCode>,
}

impl HttpWebhookClient {
    /// With a deadline per attempt. Which hosts may be dialled is the environment's to say.
    pub fn new(env: Env, timeout: Duration, resolver: Arc<dyn Resolver>) -> Self {
        let dialer = Dialer::new(resolver, env.webhook_hosts);
        let client = Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .http1_max_buf_size(MOST_READ)
            // A kept connection that turns out closed before the request was begun costs no attempt.
            .retry_canceled_requests(true)
            .build(dialer.clone());
        Self { inner: Arc::new(Inner { env, timeout, dialer, client }) }
    }
}

impl WebhookClient for HttpWebhookClient {
    fn attempt(&self, attempt: Attempt) -> BoxFuture<'static, Outcome> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.attempt(attempt).await })
    }
}

impl Inner {
    async fn attempt(&self, attempt: Attempt) -> Outcome {
        let started_at = self.env.now();
        let begun = Instant::now();
        let mut dialled = None;
        let answer = match timeout_at(begun + self.timeout, self.post(&attempt, &mut dialled)).await {
            Ok(answer) => answer,
            Err(_) => Err(Failure {
                class: FailureClass::Timeout,
                reason: format!("no whole answer within {} s", self.timeout.as_secs_f32()),
                status: None,
            }),
        };
        let duration_ms = u32::try_from(begun.elapsed().as_millis()).unwrap_or(u32::MAX);
        let mut log = AttemptLog {
            attempt: attempt.delivery.attempts,
            started_at,
            duration_ms,
            status: 0,
            error: None,
            response_body: None,
            response_truncated: false,
            remote_addr: dialled.map(|Dialled(address)| address.to_string()),
        };
        let mut retry_after = None;
        match answer {
            Ok(answer) => {
                log.status = i32::from(answer.status.as_u16());
                if !answer.status.is_success() {
                    log.error = Some(format!("{}: {}", FailureClass::Status, answer.status));
                }
                let kept = &answer.body[..answer.body.len().min(MOST_KEPT)];
                log.response_truncated = answer.more || kept.len() < answer.body.len();
                log.response_body = Some(String::from_utf8_lossy(kept).replace('\0', "\u{fffd}"));
                retry_after = answer.retry_after;
            }
            Err(failure) => {
                log.status = match failure.class {
                    FailureClass::Blocked => -1,
                    _ => failure.status.map_or(0, |status| i32::from(status.as_u16())),
                };
                log.error = Some(format!("{}: {}", failure.class, failure.reason));
            }
        }
        Outcome { delivery: attempt.delivery, log, retry_after }
    }

    async fn post(&self, attempt: &Attempt, dialled: &mut Option<Dialled>) -> Result<Answer, Failure> {
        let uri: Uri =
            attempt.url.url().as_str().parse().map_err(|error| Failure::new(FailureClass::Connect, error))?;
        // Judged at each attempt, also when a connection is open already.
        let checked_addresses = self.dialer.check_addresses(&uri).await?;
        let now = self.env.now();
        let body = attempt.body(now);
        let mut request = Request::post(uri).header(CONTENT_TYPE, "application/json").header(USER_AGENT, AGENT);
        for (name, value) in attempt.headers(now, &body) {
            request = request.header(name, value);
        }
        let request = request.body(Full::from(body)).map_err(|error| Failure::new(FailureClass::Connect, error))?;
        let response = CHECKED_ADDRESSES
            .scope(checked_addresses, self.client.request(request))
            .await
            .map_err(|error| Failure::of(&error))?;
        *dialled = response.extensions().get().copied();
        let retry_after = retry_after(response.status(), response.headers(), self.env.now());
        read(response, retry_after).await
    }
}

async fn read(response: Response<Incoming>, retry_after: Option<Duration>) -> Result<Answer, Failure> {
    let status = response.status();
    let (mut body, mut more) = (Vec::new(), false);
    let mut incoming = response.into_body();
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| Failure { status: Some(status), ..Failure::of(&error) })?;
        let Ok(data) = frame.into_data() else { continue };
        let room = MOST_READ - body.len();
        body.extend_from_slice(&data[..data.len().min(room)]);
        if data.len() > room || body.len() == MOST_READ {
            more = true;
            break;
        }
    }
    Ok(Answer { status, body, more, retry_after })
}

/// The wait that `Retry-After` asks for, in seconds or by a date (RFC 9110, section 10.2.3), on the two statuses
/// where it asks for patience.
fn retry_after(status: StatusCode, headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        return None;
    }
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    until.checked_sub(now.since(Timestamp::from_micros(0)))
}

impl Failure {
    fn new(class: FailureClass, reason: impl std::fmt::Display) -> Self {
        Self { class, reason: reason.to_string(), status: None }
    }

    /// The class of a client's error: that of the dialling, if it failed there.
    fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut cause = Some(error);
        let mut last = error;
        while let Some(error) = cause {
            if let Some(dial) = error.downcast_ref::<DialError>() {
                return Self::new(dial.class, &dial.reason);
            }
            last = error;
            cause = error.source();
        }
        Self::new(FailureClass::Reset, last)
    }
}

impl From<DialError> for Failure {
    fn from(error: DialError) -> Self {
        Self::new(error.class, error.reason)
    }
}
