//! Access tokens for receivers that want OAuth 2.0 client credentials (RFC 6749, section 4.4).
//!
//! A token is kept in memory until shortly before it expires, and got once however many attempts wait for it. The token
//! endpoint is reached under the same rules as the receiver: its addresses are checked each time, redirects are not followed,
//! and all of it is within the deadline of the attempt. The client certificate and the authorities of a subscription are for
//! its receiver alone.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use serde::Deserialize;
use svc_core::values::Secret;
use svc_core::webhooks::deliveries::{AttemptCause, FailureClass};
use svc_core::webhooks::options::ClientCredentials;
use svc_core::webhooks::subscriptions::SubscriptionId;
use tokio::time::Instant;

use super::client::{Inner, TransportError, read_response};
use crate::outbound::USER_AGENT_VALUE;
use crate::outbound::dial::CHECKED_ADDRESSES;

/// How long a token is kept whose endpoint does not say when it expires.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(300);
/// How long before its end a token is no longer used.
const MARGIN: Duration = Duration::from_secs(10);
/// The longest token, in bytes.
const MAX_TOKEN: usize = 8 * 1024;
/// The number of subscriptions whose tokens are kept.
const MAX_CACHED: usize = 10_000;

/// The tokens of subscriptions.
#[derive(Default)]
pub(super) struct Tokens(Mutex<HashMap<SubscriptionId, Arc<Slot>>>);

/// The place of the token of a subscription. Attempts that find it empty wait for the one that fills it.
type Slot = tokio::sync::Mutex<Option<CachedToken>>;

struct CachedToken {
    /// The credentials that the token was got with.
    credentials: ClientCredentials,
    token: Secret,
    until: Instant,
}

/// The response of a token endpoint (RFC 6749, section 5.1).
#[derive(Deserialize)]
struct TokenResponse {
    access_token: String,
    token_type: Option<String>,
    expires_in: Option<f64>,
}

/// The response to a request that was refused (RFC 6749, section 5.2).
#[derive(Deserialize)]
struct TokenError {
    error: String,
}

impl Tokens {
    fn slot(&self, subscription: SubscriptionId) -> Arc<Slot> {
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= MAX_CACHED && !slots.contains_key(&subscription) {
            slots.clear();
        }
        Arc::clone(slots.entry(subscription).or_default())
    }

    /// Returns the token of a subscription: the one that is kept, unless it is `refused`, or a new one.
    pub(super) async fn get(
        &self,
        client: &Inner,
        subscription: SubscriptionId,
        credentials: &ClientCredentials,
        refused: Option<&Secret>,
    ) -> Result<Secret, TransportError> {
        let slot = self.slot(subscription);
        let mut kept = slot.lock().await;
        if let Some(kept) = kept.as_ref().filter(|kept| {
            kept.credentials == *credentials && kept.until > Instant::now() && Some(&kept.token) != refused
        }) {
            return Ok(kept.token.clone());
        }
        *kept = None;
        let (token, lifetime) =
            client.request_token(credentials).await.map_err(|TransportError { cause, reason }| {
                match cause.class() {
                    // Nothing was sent to an address that is not allowed.
                    FailureClass::Blocked => TransportError::new(cause, format!("the token endpoint: {reason}")),
                    FailureClass::Token => TransportError::new(cause, reason),
                    class => {
                        TransportError::new(AttemptCause::TokenFailed, format!("the token endpoint: {class}: {reason}"))
                    }
                }
            })?;
        let until = Instant::now() + lifetime.saturating_sub(MARGIN);
        *kept = Some(CachedToken { credentials: credentials.clone(), token: token.clone(), until });
        Ok(token)
    }
}

impl Inner {
    /// Gets a token, and returns it with its lifetime.
    async fn request_token(&self, credentials: &ClientCredentials) -> Result<(Secret, Duration), TransportError> {
        let refused = |reason: String| TransportError::new(AttemptCause::TokenFailed, reason);
        let uri: Uri = credentials.token_url.url().as_str().parse().map_err(|error| refused(format!("{error}")))?;
        let addresses = self.connections.dialer.check_addresses(&uri).await?;
        let request = || token_request(credentials, uri.clone());
        let response = CHECKED_ADDRESSES.scope(addresses, self.connections.request(request)).await?;
        let response = read_response(response, None).await?;
        if response.status != StatusCode::OK {
            let code = serde_json::from_slice(&response.body).map_or_else(
                |_| String::new(),
                |TokenError { error }| {
                    format!(": {}", error.chars().filter(char::is_ascii_graphic).take(60).collect::<String>())
                },
            );
            return Err(refused(format!("the token endpoint responded with {}{code}", response.status)));
        }
        let granted: TokenResponse = serde_json::from_slice(&response.body)
            .map_err(|_| refused("the token endpoint responded with no token as RFC 6749 has it".to_owned()))?;
        if granted.token_type.is_some_and(|kind| !kind.eq_ignore_ascii_case("bearer")) {
            return Err(refused("the token endpoint responded with a token that is no bearer token".to_owned()));
        }
        let token = granted.access_token;
        if token.is_empty() || token.len() > MAX_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(refused("the token endpoint responded with a token that no header can have".to_owned()));
        }
        let lifetime = granted.expires_in.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        Ok((Secret::new(token), lifetime.unwrap_or(DEFAULT_LIFETIME).min(Duration::from_secs(24 * 60 * 60))))
    }
}

/// Returns the request for a token. The client authenticates by HTTP Basic (RFC 6749, section 2.3.1).
fn token_request(credentials: &ClientCredentials, uri: Uri) -> Result<Request<Full<Bytes>>, TransportError> {
    let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(&credentials.client_id), encoded(credentials.client_secret.reveal()));
    let mut authorization = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
        .map_err(|error| TransportError::new(AttemptCause::TokenFailed, error))?;
    authorization.set_sensitive(true);
    let mut form = "grant_type=client_credentials".to_owned();
    if let Some(scope) = &credentials.scope {
        form.push_str(&format!("&scope={}", encoded(scope)));
    }
    let mut request = Request::new(Full::from(form));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = uri;
    let headers = request.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(USER_AGENT_VALUE));
    headers.insert(AUTHORIZATION, authorization);
    Ok(request)
}
