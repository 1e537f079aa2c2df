//! One call: its attempts, each signed and sent anew, and the waits between them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_TYPE, DATE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use svc_core::env::Env;
use svc_core::values::Secret;
use tokio::time::Instant;
use tracing::Instrument as _;
use url::Url;
use uuid::Uuid;

use crate::error::{ApiError, Error, FieldError, Result, TransportError, TransportErrorKind, UnexpectedResponse};
use crate::retry::{RetryPolicy, retry_after};
use crate::signer::Signer;
use crate::tokens::{NewTokens, TokenSource};

/// The most bytes that are read of a response. A page of 200 records, each as large as it can be, has fewer.
const MAX_BODY: usize = 32 << 20;
/// The most bytes that are read of a failure.
const MAX_ERROR_BODY: usize = 1 << 20;
/// The most characters of an unexpected response that its error shows.
const SHOWN: usize = 200;

fn has_succeeded(status: StatusCode) -> bool {
    status.is_success() || status == StatusCode::NOT_MODIFIED
}

/// Returns the most bytes that are read of a response.
fn most(status: StatusCode) -> usize {
    if has_succeeded(status) { MAX_BODY } else { MAX_ERROR_BODY }
}

/// How a client waits between attempts.
pub(crate) type Sleep = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// The identity of the caller.
#[derive(Debug)]
pub(crate) enum Credential {
    /// An API key or a platform key.
    Key(Secret),
    /// The tokens of an app.
    Tokens(Box<TokenSource>),
}

/// The state that all calls of a client share.
pub(crate) struct Transport {
    pub(crate) http: reqwest::Client,
    pub(crate) credential: Credential,
    /// The URL of the endpoint for tokens.
    pub(crate) token_url: Url,
    /// Signs what changes something, if the key signs.
    pub(crate) signer: Option<Signer>,
    /// The longest time for one attempt.
    pub(crate) timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) env: Env,
    pub(crate) sleep: Sleep,
}

/// A request before it is signed.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
}

/// A response. That of a call has a status of success, or 304.
#[derive(Clone)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The body of a failure.
#[derive(Default, Deserialize)]
struct Problem {
    error: String,
    code: String,
    field: Option<String>,
    #[serde(default)]
    errors: Vec<FieldError>,
    existing_id: Option<Uuid>,
    retry_after_ms: Option<u64>,
}

/// The body of a failure at the endpoint for tokens (RFC 6749 §5.2).
#[derive(Deserialize)]
struct OauthProblem {
    error: String,
    error_description: String,
}

/// Returns the header `Authorization` with a key or a token.
pub(crate) fn bearer(credential: &str) -> Result<HeaderValue> {
    let mut header = HeaderValue::from_str(&format!("Bearer {credential}"))
        .map_err(|_| Error::InvalidArgument("the key or token has characters that none has".into()))?;
    header.set_sensitive(true);
    Ok(header)
}

impl Request {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: None }
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    pub(crate) fn idempotency_key(self, key: HeaderValue) -> Self {
        self.header(HeaderName::from_static("idempotency-key"), key)
    }

    pub(crate) fn json(mut self, body: Vec<u8>) -> Self {
        self.body = Some(body.into());
        self.header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }

    pub(crate) fn form(mut self, pairs: &[(&str, &str)]) -> Self {
        let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        self.body = Some(form.into());
        self.header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"))
    }
}

impl Transport {
    /// Sends a request until it succeeds, or fails for good. An app whose access token is refused gets another one and sends
    /// it again.
    pub(crate) async fn send(&self, request: Request) -> Result<Response> {
        let source = match &self.credential {
            Credential::Key(key) => return self.send_as(request, Some(key), &mut false).await,
            Credential::Tokens(source) => source,
        };
        let token = source.access_token().await;
        let mut may_be_done = false;
        match self.send_as(request.clone(), Some(&token), &mut may_be_done).await {
            Err(error) if error.status() == Some(401) => {
                let ask = async |form: &[(&str, &str)]| self.new_tokens(form).await;
                let token = source.access_token_after(&token, ask).await?;
                self.send_as(request, Some(&token), &mut may_be_done).await
            }
            result => result,
        }
    }

    async fn new_tokens(&self, form: &[(&str, &str)]) -> Result<NewTokens> {
        let request = Request::new(Method::POST, self.token_url.clone()).form(form);
        let response = self.send_as(request, None, &mut false).await?;
        let new: NewTokens = response.json(&self.env)?;
        // What no header can carry is not stored.
        bearer(&new.access_token)?;
        Ok(new)
    }

    /// Sends a request with this key or token until it succeeds, or fails for good. `may_be_done` becomes true once the service may
    /// have done what an attempt asked for, although no response says so.
    async fn send_as(&self, request: Request, credential: Option<&Secret>, may_be_done: &mut bool) -> Result<Response> {
        let request = match credential {
            Some(credential) => request.header(AUTHORIZATION, bearer(credential.reveal())?),
            None => request,
        };
        let span = tracing::info_span!(
            "svc_request",
            method = %request.method,
            // Without the query, which may contain an email address.
            path = request.url.path(),
            attempts = tracing::field::Empty,
            status = tracing::field::Empty,
            request_id = tracing::field::Empty,
        );
        self.try_until_done(request, may_be_done).instrument(span).await
    }

    async fn try_until_done(&self, request: Request, may_be_done: &mut bool) -> Result<Response> {
        let begun = Instant::now();
        let (mut attempt, mut waited, mut is_corrected) = (1, Duration::ZERO, false);
        loop {
            let signed_ahead = self.signer.as_ref().map_or(0, Signer::ahead);
            let left = self.retry.total.saturating_sub(begun.elapsed().max(waited));
            let result = self.attempt(&request, self.timeout.min(left)).await;
            let span = tracing::Span::current();
            span.record("attempts", attempt);
            let error = match result {
                Ok(response) => {
                    span.record("status", response.status.as_u16());
                    span.record("request_id", request_id(&response.headers));
                    return Ok(response);
                }
                Err(error) => error,
            };
            // An earlier attempt deleted the record, and its response was lost.
            if *may_be_done && request.method == Method::DELETE && error.status() == Some(404) {
                return Ok(Response { status: StatusCode::NO_CONTENT, headers: HeaderMap::new(), body: Bytes::new() });
            }
            *may_be_done |= error.outcome_is_unknown();
            let corrects = |signer: &Signer| signer.corrects(&error, signed_ahead, &self.env);
            if !is_corrected && self.signer.as_ref().is_some_and(corrects) {
                tracing::debug!(%error, "the clock was wrong; the request is signed by that of the service");
                is_corrected = true;
                attempt += 1;
                continue;
            }
            let spent = begun.elapsed().max(waited);
            let was_cut = left < self.timeout
                && matches!(&error, Error::Transport(error) if error.kind == TransportErrorKind::TimedOut);
            let wait = self.retry.wait_after(attempt, &error, spent, &self.env).filter(|_| !was_cut);
            let Some(wait) = wait else {
                let error = error.after_attempts(attempt);
                span.record("status", error.status());
                span.record("request_id", error.request_id());
                tracing::debug!(%error, "the call failed");
                return Err(error);
            };
            tracing::debug!(%error, attempt, wait_ms = wait.as_millis(), "the call is tried again");
            (self.sleep)(wait).await;
            waited += wait;
            attempt += 1;
        }
    }

    /// Sends the request once, and fails unless it succeeds.
    async fn attempt(&self, request: &Request, timeout: Duration) -> Result<Response> {
        let response = self.exchange(request, timeout).await?;
        if has_succeeded(response.status) {
            return Ok(response);
        }
        Err(self.failure(response.status, &response.headers, &response.body))
    }

    /// Sends a request with the key once, and returns the response, whatever its status.
    pub(crate) async fn send_once(&self, request: Request) -> Result<Response> {
        match &self.credential {
            Credential::Key(key) => {
                self.exchange(&request.header(AUTHORIZATION, bearer(key.reveal())?), self.timeout).await
            }
            Credential::Tokens(_) => self.exchange(&request, self.timeout).await,
        }
    }

    /// Sends the request once, with a signature of its own, and returns the response, whatever its status.
    async fn exchange(&self, request: &Request, timeout: Duration) -> Result<Response> {
        let Request { method, url, headers, body } = request.clone();
        let mut sent = reqwest::Request::new(method, url);
        *sent.headers_mut() = headers;
        *sent.timeout_mut() = Some(timeout);
        let signature = self.signer.as_ref().and_then(|signer| {
            let body = request.body.as_deref().unwrap_or_default();
            signer.sign(&request.method, &request.url, body, &self.env)
        });
        for (name, value) in signature.into_iter().flatten() {
            let value = HeaderValue::from_str(&value).map_err(|error| Error::InvalidArgument(error.to_string()))?;
            sent.headers_mut().insert(name, value);
        }
        *sent.body_mut() = body.map(Into::into);
        let mut response = self.http.execute(sent).await.map_err(TransportError::from)?;
        let (status, headers) = (response.status(), response.headers().clone());
        match read(&mut response, most(status)).await? {
            Ok(body) => Ok(Response { status, headers, body }),
            Err(start) => {
                let reason = format!("it has more than {} bytes", most(status));
                Err(unexpected(status, &headers, &start, reason, &self.env))
            }
        }
    }

    pub(crate) fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Error {
        let oauth = |OauthProblem { error, error_description }| Problem {
            error: error_description,
            code: error,
            ..Problem::default()
        };
        let problem =
            serde_json::from_slice(body).or_else(|error| serde_json::from_slice(body).map(oauth).map_err(|_| error));
        match problem {
            Ok(problem) => Error::Api(Box::new(ApiError {
                status: status.as_u16(),
                code: problem.code,
                message: problem.error,
                field: problem.field,
                errors: problem.errors,
                existing_id: problem.existing_id,
                retry_after: problem
                    .retry_after_ms
                    .map(Duration::from_millis)
                    .or_else(|| retry_after(headers, &self.env)),
                request_id: request_id(headers).map(str::to_owned),
                attempts: 1,
                date: headers.get(DATE).cloned(),
            })),
            Err(error) => unexpected(status, headers, body, format!("it is no error of the API: {error}"), &self.env),
        }
    }
}

/// Reads a body of at most `most` bytes. The inner error is the start of one that has more.
async fn read(response: &mut reqwest::Response, most: usize) -> Result<std::result::Result<Bytes, Bytes>> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(TransportError::from)? {
        body.extend_from_slice(&chunk);
        if body.len() > most {
            return Ok(Err(body.freeze()));
        }
    }
    Ok(Ok(body.freeze()))
}

impl Response {
    /// Reads the body.
    pub(crate) fn json<T: DeserializeOwned>(&self, env: &Env) -> Result<T> {
        serde_json::from_slice(&self.body)
            .map_err(|error| unexpected(self.status, &self.headers, &self.body, error.to_string(), env))
    }

    /// Returns the error of a response that lacks something.
    pub(crate) fn without(&self, missing: &str, env: &Env) -> Error {
        unexpected(self.status, &self.headers, &self.body, format!("it has no {missing}"), env)
    }
}

pub(crate) fn unexpected(status: StatusCode, headers: &HeaderMap, body: &[u8], reason: String, env: &Env) -> Error {
    Error::UnexpectedResponse(Box::new(UnexpectedResponse {
        status: status.as_u16(),
        reason,
        start: String::from_utf8_lossy(&body[..body.len().min(4 * SHOWN)]).chars().take(SHOWN).collect(),
        retry_after: retry_after(headers, env),
        request_id: request_id(headers).map(str::to_owned),
        attempts: 1,
    }))
}

fn request_id(headers: &HeaderMap) -> Option<&str> {
    headers.get("x-request-id")?.to_str().ok()
}

impl fmt::Debug for Transport {
    /// Shows no credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("signs", &self.signer.is_some())
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}
