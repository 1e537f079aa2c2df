//! The HTTP client that makes delivery attempts (`docs/contract.md`, "Webhook deliveries").
//!
//! Each attempt is one POST with a timeout from resolving the host name to the end of the response. The client reads at most
//! 64 KiB of the response and logs the first 16 KiB. It follows no redirects and decompresses nothing. All
//! requests go through the [`EgressProxy`] if there is one.

use std::error::Error as StdError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use svc_core::env::Env;
use svc_core::values::{Secret, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::{AttemptCause, AttemptLog, FailureClass};
use svc_core::webhooks::engine::{Attempt, AttemptResult};
use tokio::time::{Instant, timeout_at};

use super::echoes;
use super::tls::TlsClients;
use super::tokens::Tokens;
use super::{Trial, WebhookClient};
use crate::outbound::dial::{CHECKED_ADDRESSES, DialError, Dialer, Dialled};
use crate::outbound::resolver::Resolver;
use crate::outbound::{EgressProxy, USER_AGENT_VALUE, tls_errors};

/// The highest number of bytes of a response body that are read.
const MAX_BODY_READ: usize = 64 * 1024;
/// The number of bytes of a response body that are logged.
const MAX_BODY_LOGGED: usize = 16 * 1024;
/// How many headers a request has room for at first, the `Host` of the HTTP client among them.
const HEADERS: usize = 13;
/// How late a timer may fire while this process runs. If one fires later, the process stood still until then.
const MAX_TIMER_DELAY: Duration = Duration::from_millis(100);
/// How long an attempt goes on after the process stood still at its deadline, for what has arrived meanwhile.
const TIME_AFTER_STALL: Duration = Duration::from_secs(1);
/// How long getting a document may take.
const GET_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an idle connection is kept open for the next delivery.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes delivery attempts over HTTP/1.1 with connections that are kept alive.
///
/// Before every attempt it resolves the host name and checks every address, and it connects only to checked addresses. So,
/// unless the host policy allows private hosts, no attempt reaches a private address, even if a name resolves to another
/// address each time.
pub struct HttpWebhookClient {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    env: Env,
    timeout: Duration,
    tokens: Tokens,
    /// The connections of all that asks for no TLS of its own, token endpoints among it.
    pub(super) connections: Connections,
    tls_clients: TlsClients,
}

/// Connections with the same settings of TLS, and what makes them.
pub(super) struct Connections {
    pub(super) dialer: Dialer,
    client: Client<Dialer, Full<Bytes>>,
    /// Sends each request on a new connection, which it does not keep.
    unpooled_client: Client<Dialer, Full<Bytes>>,
}

/// The part of a response that is logged.
pub(super) struct LoggedResponse {
    pub(super) status: StatusCode,
    headers: HeaderMap,
    pub(super) body: Vec<u8>,
    /// Whether the body is longer than what was read.
    more: bool,
    retry_after: Option<Duration>,
}

/// The reason for which no response, or only a part of it, was received.
pub(super) struct TransportError {
    pub(super) cause: AttemptCause,
    pub(super) reason: String,
}

impl HttpWebhookClient {
    /// Creates a client with a timeout per attempt. `env.webhook_hosts` says which hosts it may connect to.
    pub fn new(env: Env, timeout: Duration, resolver: Arc<dyn Resolver>) -> Self {
        Self::with_proxy(env, timeout, resolver, None)
    }

    /// Creates a client whose requests all go through a proxy, if there is one.
    pub fn with_proxy(env: Env, timeout: Duration, resolver: Arc<dyn Resolver>, proxy: Option<EgressProxy>) -> Self {
        let dialer = Dialer::new(resolver, env.webhook_hosts);
        let dialer = match proxy {
            Some(proxy) => dialer.through(proxy),
            None => dialer,
        };
        let (connections, tls_clients) = (Connections::new(dialer), TlsClients::default());
        Self { inner: Arc::new(Inner { env, timeout, tokens: Tokens::default(), connections, tls_clients }) }
    }
}

impl Connections {
    pub(super) fn new(dialer: Dialer) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_timer(TokioTimer::new())
            .http1_max_buf_size(MAX_BODY_READ)
            // If a kept connection turns out to be closed before any of the request was written, another one is used.
            .retry_canceled_requests(true);
        let client = builder.build(dialer.clone());
        let unpooled_client = builder.pool_max_idle_per_host(0).build(dialer.clone());
        Self { dialer, client, unpooled_client }
    }

    /// Sends a request on a kept connection if there is one. If that ends before any byte of a response, the request is
    /// sent once more, on a new connection: many receivers close a connection after a response without saying so, and a
    /// request that crosses with that is no failure of theirs. Receivers recognise one that they did handle by its id.
    pub(super) async fn request(
        &self,
        request: impl Fn() -> Result<Request<Full<Bytes>>, TransportError>,
    ) -> Result<Response<Incoming>, TransportError> {
        let response = match self.client.request(request()?).await {
            Err(error) if Dialled::has_lost_request(&error) => self.unpooled_client.request(request()?).await,
            response => response,
        };
        response.map_err(|error| TransportError::from_client(&error))
    }
}

impl WebhookClient for HttpWebhookClient {
    fn attempt(&self, attempt: Attempt) -> BoxFuture<'static, AttemptResult> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move { inner.attempt(attempt).await.0 })
    }

    fn get(&self, url: WebhookUrl) -> BoxFuture<'static, Result<Bytes, String>> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let got = until(Instant::now() + GET_TIMEOUT, inner.get(&url)).await;
            got.unwrap_or_else(|| Err(format!("no complete response within {} s", GET_TIMEOUT.as_secs())))
        })
    }

    fn try_endpoint(&self, attempt: Attempt) -> BoxFuture<'static, Trial> {
        let inner = Arc::clone(&self.inner);
        Box::pin(async move {
            let (AttemptResult { log, .. }, headers) = inner.attempt(attempt).await;
            Trial { log, headers }
        })
    }
}

impl Inner {
    /// Gets a document.
    async fn get(&self, url: &WebhookUrl) -> Result<Bytes, String> {
        let uri: Uri = url.url().as_str().parse().map_err(|error| format!("{error}"))?;
        let failed = |TransportError { cause, reason }| format!("{}: {reason}", cause.class());
        let addresses = self.connections.dialer.check_addresses(&uri).await.map_err(|error| failed(error.into()))?;
        let request = || {
            let mut request = Request::new(Full::default());
            *request.uri_mut() = uri.clone();
            request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
            Ok(request)
        };
        let response = CHECKED_ADDRESSES.scope(addresses, self.connections.request(request)).await.map_err(failed)?;
        let response = read_response(response, None).await.map_err(failed)?;
        match (response.status, response.more) {
            (StatusCode::OK, false) => Ok(response.body.into()),
            (StatusCode::OK, true) => Err(format!("the document has {MAX_BODY_READ} bytes or more")),
            (status, _) => Err(format!("the response was {status}")),
        }
    }

    /// Makes an attempt, and returns its outcome with the headers of the response.
    async fn attempt(&self, attempt: Attempt) -> (AttemptResult, HeaderMap) {
        let started_at = self.env.now();
        let started = Instant::now();
        let mut dialled = None;
        let timeout = attempt.options.timeout.unwrap_or(self.timeout);
        let response = match until(started + timeout, self.send(&attempt, started_at, &mut dialled)).await {
            Some(response) => response,
            None => {
                let limit = timeout.as_secs_f32();
                // The peer is known once the head of the response has come.
                let (cause, reason) = match dialled {
                    Some(_) => (AttemptCause::BodyTimeout, "the body of the response did not end"),
                    None => (AttemptCause::ResponseTimeout, "no complete response"),
                };
                Err(TransportError::new(cause, format!("{reason} within {limit} s")))
            }
        };
        let duration_ms = u32::try_from(started.elapsed().as_millis()).unwrap_or(u32::MAX);
        let mut log = AttemptLog {
            attempt: attempt.delivery.attempts,
            started_at,
            duration_ms,
            status: 0,
            error: None,
            cause: None,
            response_body: None,
            response_truncated: false,
            remote_addr: dialled.flatten().map(|peer| peer.to_string()),
        };
        let (mut retry_after, mut headers) = (None, HeaderMap::new());
        match response {
            Ok(response) => {
                log.status = i32::from(response.status.as_u16());
                if !response.status.is_success() {
                    log.fail(AttemptCause::Status, response.status);
                }
                let logged = &response.body[..response.body.len().min(MAX_BODY_LOGGED)];
                log.response_truncated = response.more || logged.len() < response.body.len();
                log.response_body = Some(String::from_utf8_lossy(logged).replace('\0', "\u{fffd}"));
                (retry_after, headers) = (response.retry_after, response.headers);
            }
            Err(failure) => {
                log.status = if failure.cause.class() == FailureClass::Blocked { -1 } else { 0 };
                log.fail(failure.cause, failure.reason);
            }
        }
        (AttemptResult { delivery: attempt.delivery, log, retry_after }, headers)
    }

    /// Sends the request of an attempt. It has the time at which the attempt started, also if resolving the host took long, so
    /// that it can be made anew from the log.
    async fn send(
        &self,
        attempt: &Attempt,
        started_at: Timestamp,
        dialled: &mut Option<Option<SocketAddr>>,
    ) -> Result<LoggedResponse, TransportError> {
        let uri: Uri = attempt
            .url
            .url()
            .as_str()
            .parse()
            .map_err(|error| TransportError::new(AttemptCause::ConnectionFailed, error))?;
        // The addresses are checked at each attempt, also if a connection to the host is open.
        let checked_addresses = self.connections.dialer.check_addresses(&uri).await?;
        let (subscription, credentials) = (attempt.delivery.subscription_id, attempt.options.credentials.as_ref());
        let own_connections = match &attempt.options.tls {
            Some(options) => Some(self.tls_clients.of(subscription, options, &self.connections.dialer)?),
            None => None,
        };
        let connections = own_connections.as_deref().unwrap_or(&self.connections);
        let mut token = match credentials {
            Some(credentials) => Some(self.tokens.get(self, subscription, credentials, None).await?),
            None => None,
        };
        let send = async |token: Option<&Secret>| {
            let request = || request(attempt, uri.clone(), started_at, token);
            CHECKED_ADDRESSES.scope(checked_addresses.clone(), connections.request(request)).await
        };
        let mut response = send(token.as_ref()).await?;
        if let (StatusCode::UNAUTHORIZED, Some(credentials), Some(refused)) = (response.status(), credentials, &token) {
            token = Some(self.tokens.get(self, subscription, credentials, Some(refused)).await?);
            response = send(token.as_ref()).await?;
        }
        *dialled = response.extensions().get().map(|Dialled { peer, .. }| *peer);
        let retry_after = retry_after(response.status(), response.headers(), self.env.now());
        let mut response = read_response(response, retry_after).await?;
        response.mask(&echoes::of(attempt, token.as_ref()));
        Ok(response)
    }
}

/// Returns the request of an attempt, the same each time.
fn request(
    attempt: &Attempt,
    uri: Uri,
    started_at: Timestamp,
    token: Option<&Secret>,
) -> Result<Request<Full<Bytes>>, TransportError> {
    let body = attempt.body(started_at);
    let mut headers = HeaderMap::with_capacity(HEADERS);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
    // Firewalls take a request without it for one of a bad robot.
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    for (name, value) in attempt.headers(started_at, &body) {
        let value =
            HeaderValue::try_from(value).map_err(|error| TransportError::new(AttemptCause::ConnectionFailed, error))?;
        headers.insert(HeaderName::from_static(name), value);
    }
    let authorization =
        token.map(|token| ("authorization".to_owned(), Secret::new(format!("Bearer {}", token.reveal()))));
    for (name, value) in attempt.options.headers.iter().chain(&authorization) {
        let refused = |error: http::Error| TransportError::new(AttemptCause::ConnectionFailed, error);
        let name = HeaderName::try_from(name).map_err(|error| refused(error.into()))?;
        let mut value = HeaderValue::try_from(value.reveal()).map_err(|error| refused(error.into()))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let mut request = Request::new(Full::from(body));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Runs a future until a deadline. Returns `None` when the deadline is over first.
///
/// If the process stood still until after the deadline, the future goes on for a short time: a response may have arrived
/// meanwhile, and the task of its connection has to read it first.
async fn until<T>(mut deadline: Instant, future: impl Future<Output = T>) -> Option<T> {
    tokio::pin!(future);
    loop {
        if let Ok(output) = timeout_at(deadline, &mut future).await {
            return Some(output);
        }
        if deadline.elapsed() < MAX_TIMER_DELAY {
            return None;
        }
        deadline = Instant::now() + TIME_AFTER_STALL;
    }
}

pub(super) async fn read_response(
    response: Response<Incoming>,
    retry_after: Option<Duration>,
) -> Result<LoggedResponse, TransportError> {
    let (head, mut incoming) = response.into_parts();
    let status = head.status;
    let (mut body, mut more) = (Vec::new(), false);
    while let Some(frame) = incoming.frame().await {
        let frame = frame.map_err(|error| {
            let TransportError { cause, reason } = TransportError::from_client(&error);
            let received = body.len();
            // The connection was there, as the response had begun.
            let cause = if cause.class() == FailureClass::Reset { AttemptCause::ResponseCut } else { cause };
            TransportError::new(
                cause,
                format!("the response {status} broke off after {received} bytes of its body: {reason}"),
            )
        })?;
        let Ok(data) = frame.into_data() else { continue };
        let remaining = MAX_BODY_READ - body.len();
        body.extend_from_slice(&data[..data.len().min(remaining)]);
        if data.len() > remaining || body.len() == MAX_BODY_READ {
            more = true;
            break;
        }
    }
    Ok(LoggedResponse { status, headers: head.headers, body, more, retry_after })
}

/// Returns the delay that `Retry-After` asks for, in seconds or as a date (RFC 9110, section 10.2.3). It applies to 429 and
/// 503 only.
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

impl LoggedResponse {
    /// Masks what a receiver has sent back of the secrets of the request.
    fn mask(&mut self, secrets: &[Secret]) {
        if secrets.is_empty() {
            return;
        }
        self.body = echoes::masked(&self.body, secrets, self.more);
        // A mask may be longer than what it stands for.
        self.more |= self.body.len() > MAX_BODY_READ;
        self.body.truncate(MAX_BODY_READ);
        for value in self.headers.values_mut() {
            if let Ok(masked) = HeaderValue::try_from(echoes::masked(value.as_bytes(), secrets, false)) {
                *value = masked;
            }
        }
    }
}

impl TransportError {
    pub(super) fn new(cause: AttemptCause, reason: impl std::fmt::Display) -> Self {
        Self { cause, reason: reason.to_string() }
    }

    /// Classifies an error of the HTTP client: by the connection if that failed, as one of TLS if the receiver says so after the
    /// handshake, as those do that refuse a client certificate, and otherwise as a reset.
    fn from_client(error: &(dyn StdError + 'static)) -> Self {
        let (mut next, mut last) = (Some(error), error);
        let mut cause = AttemptCause::ConnectionClosed;
        while let Some(error) = next {
            if let Some(dial) = error.downcast_ref::<DialError>() {
                return Self::new(dial.cause, &dial.reason);
            }
            if let Some(alert) = tls_errors::alert(error) {
                return Self::new(AttemptCause::TlsFailed, alert);
            }
            if error.downcast_ref().is_some_and(hyper::Error::is_parse) {
                cause = AttemptCause::InvalidResponse;
            }
            (last, next) = (error, error.source());
        }
        Self::new(cause, last)
    }
}

impl From<DialError> for TransportError {
    fn from(error: DialError) -> Self {
        Self::new(error.cause, error.reason)
    }
}
