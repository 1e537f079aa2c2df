//! OAuth 2.0 over HTTP: the endpoints of apps, and the metadata by which they find them (`docs/oauth.md`).
//!
//! The rules are in [`svc_core::oauth`]. This module reads requests and writes responses as the RFCs have them. The page on
//! which an owner consents is one of the dashboard (`dashboard/consent.rs`).
//!
//! # Mounted
//!
//! The issuer is the public URL followed by the mount. A host application that mounts the API at `/business` routes two paths
//! at its root to it as well, since RFC 8414 §3.1 and RFC 9728 §3.1 put the path of the issuer behind them:
//! `/.well-known/oauth-authorization-server/business` and `/.well-known/oauth-protected-resource/business`, with what follows.

mod client;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, PRAGMA, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::{self, Area, PLATFORM_KEY_PREFIX, PlatformKeyHash};
use svc_core::error::{Error, StoreError};
use svc_core::oauth::tokens::{self, ACCESS_LIFETIME, ClientCredentials, TokenEndpoint, TokenError};
use svc_core::oauth::{Parameters, scope_text};
use svc_core::values::TenantId;

use crate::kernel::Kernel;
use crate::kernel::apps::{Apps, Resource};
use crate::kernel::auth::{self, Principal};
use crate::kernel::body::MAX_FORM;
use crate::kernel::limits::RateLimitKey;
use crate::kernel::listener::{Arrived, Exchange, Kind, Route, Surface};
use crate::kernel::problem::Problem;
use crate::kernel::response::{Outcome, ResponseBody};
use crate::kernel::response_memory::Holder;

const SERVER_METADATA: &str = "/.well-known/oauth-authorization-server";
const RESOURCE_METADATA: &str = "/.well-known/oauth-protected-resource";
const ANYONE: HeaderValue = HeaderValue::from_static("*");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Scripts of any origin may send any header, as no cookie counts here. Those that clients send are named, since `*` stands for all
/// but `Authorization`, and older browsers do not know it.
const ALLOWED_HEADERS: HeaderValue = HeaderValue::from_static(
    "authorization, content-type, mcp-protocol-version, traceparent, tracestate, x-request-id, x-requested-with, *",
);

/// This service as an authorization server.
pub(crate) struct Oauth {
    kernel: Arc<Kernel>,
    apps: Arc<Apps>,
}

/// The endpoint at a path below the mount.
#[derive(Clone, Copy, Debug)]
enum Endpoint {
    Token,
    Revoke,
    /// RFC 8414.
    ServerMetadata,
    /// RFC 9728, of a resource, or of all.
    ResourceMetadata(Option<Resource>),
}

impl Endpoint {
    /// Returns whether secrets are sent to it, so that guessing must be slowed down.
    fn takes_tokens(self) -> bool {
        matches!(self, Self::Token | Self::Revoke)
    }
}

impl Oauth {
    /// Creates the endpoints. Without apps there are none.
    pub(crate) fn new(kernel: &Arc<Kernel>) -> Option<Self> {
        Some(Self { kernel: Arc::clone(kernel), apps: kernel.apps.clone()? })
    }

    fn mount(&self) -> &str {
        &self.kernel.settings.mount
    }

    /// Returns what a path is for. Metadata is found below the mount, and behind the well-known path of the host.
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match path {
            "/oauth/token" => return Some(Endpoint::Token),
            "/oauth/revoke" => return Some(Endpoint::Revoke),
            _ => {}
        }
        let rest_of = |well_known| {
            let rest: &str = path.strip_prefix(well_known)?;
            Some(rest.strip_prefix(self.mount()).unwrap_or(rest))
        };
        if rest_of(SERVER_METADATA) == Some("") {
            return Some(Endpoint::ServerMetadata);
        }
        match rest_of(RESOURCE_METADATA)? {
            "" => Some(Endpoint::ResourceMetadata(None)),
            path => {
                let resource = self.apps.resources.iter().find(|resource| resource.path == path)?;
                Some(Endpoint::ResourceMetadata(Some(*resource)))
            }
        }
    }

    /// Adds to a 401 or 403 of the API where clients learn how to get a token, and what was wrong with theirs (RFC 9728 §5.1,
    /// RFC 6750 §3.1).
    pub(crate) fn challenge(&self, exchange: &Exchange<'_>, headers: &mut HeaderMap) {
        let Exchange { parts, kind, client, status, bearer_error } = *exchange;
        // A key that may only read is not refused because of a token.
        let is_of_token = status != StatusCode::FORBIDDEN || client.is_some_and(Principal::is_app);
        let error = match (status, bearer_error.filter(|_| is_of_token)) {
            _ if kind == Kind::Page => return,
            (StatusCode::FORBIDDEN, Some(error)) => format!("error=\"{error}\", scope=\"read write\", "),
            (StatusCode::UNAUTHORIZED, Some(error)) => format!("error=\"{error}\", "),
            (StatusCode::UNAUTHORIZED, None) => String::new(),
            _ => return,
        };
        let resource = self.apps.resources.iter().find(|resource| parts.uri.path().starts_with(resource.path));
        let metadata = self.resource_metadata_url(resource.map_or("", |resource| resource.path));
        if let Ok(challenge) = HeaderValue::try_from(format!("Bearer {error}resource_metadata=\"{metadata}\"")) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
    }

    fn resource_metadata_url(&self, resource: &str) -> String {
        format!("{}{RESOURCE_METADATA}{}{resource}", self.apps.origin, self.mount())
    }

    fn server_metadata(&self) -> serde_json::Value {
        let url = &self.apps.issuer.url;
        let authentication = ["client_secret_basic", "client_secret_post", "none"];
        let mut metadata = json!({
            "issuer": url,
            "authorization_endpoint": format!("{url}/oauth/authorize"),
            "token_endpoint": format!("{url}/oauth/token"),
            "token_endpoint_auth_methods_supported": authentication,
            "revocation_endpoint": format!("{url}/oauth/revoke"),
            "revocation_endpoint_auth_methods_supported": authentication,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "scopes_supported": ["read", "write", "offline_access"],
            "authorization_response_iss_parameter_supported": true,
            "prompt_values_supported": ["none", "login", "consent", "select_account"],
            "service_documentation": format!("{url}/docs"),
        });
        if self.apps.takes_published {
            metadata["client_id_metadata_document_supported"] = true.into();
        }
        metadata
    }

    fn resource_metadata(&self, resource: Option<Resource>) -> serde_json::Value {
        let url = &self.apps.issuer.url;
        let is_read_only = resource.is_some_and(|resource| resource.is_read_only);
        let scopes: &[&str] = if is_read_only { &["read"] } else { &["read", "write"] };
        let resource = resource.map_or("", |resource| resource.path);
        json!({
            "resource": format!("{url}{resource}"),
            "authorization_servers": [url],
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
            "resource_documentation": format!("{url}/docs"),
        })
    }

    /// Responds at an endpoint. Refused requests for tokens count against their address.
    async fn respond(&self, endpoint: Endpoint, request: Arrived<'_>) -> Result<Outcome, Problem> {
        let Arrived { parts, body, peer, .. } = request;
        let (limits, now) = (&self.kernel.limits, || self.kernel.now());
        let refusals = limits.key_of_peer(peer);
        let count = async |window| match limits.count(window, now()).await {
            Ok(_) => Ok(()),
            Err(limited) => Err(Problem::rate_limited(&limited)),
        };
        if endpoint.takes_tokens() {
            limits.check(refusals, now()).map_err(|limited| Problem::rate_limited(&limited))?;
        }
        let is_post = parts.method == Method::POST;
        if matches!(endpoint, Endpoint::Revoke) && is_post {
            count(limits.revocations_of_peer(peer)).await?;
        }
        let form = match is_post {
            true => match body.read(MAX_FORM).await {
                Err(Problem::BodyTooLarge) if endpoint.takes_tokens() => {
                    return Ok(held(&self.kernel, parts, too_large()));
                }
                form => form?,
            },
            false => Bytes::new(),
        };
        // What an app may do in a minute with a grant, whatever its requests are.
        if is_post && let Some(window) = self.window(endpoint, parts, &form).await? {
            count(window).await?;
        }
        let response = self.answer(endpoint, parts, form).await;
        if endpoint.takes_tokens() && response.status().is_client_error() {
            count(refusals).await?;
        }
        Ok(held(&self.kernel, parts, response))
    }

    async fn answer(&self, endpoint: Endpoint, parts: &Parts, form: Bytes) -> Response<ResponseBody> {
        let allowed = if endpoint.takes_tokens() { Method::POST } else { Method::GET };
        if let Some(response) = unless_allowed(parts, &allowed) {
            return response;
        }
        match endpoint {
            Endpoint::ServerMetadata => metadata(&self.server_metadata()),
            Endpoint::ResourceMetadata(resource) => metadata(&self.resource_metadata(resource)),
            Endpoint::Token => self.token(parts, &form).await,
            Endpoint::Revoke => self.revoke(parts, &form).await,
        }
    }

    /// Returns the window that a request of an app counts in, of which each grant has one. `None` for a request without a valid
    /// client and token, which counts against its address when it is refused.
    async fn window(&self, endpoint: Endpoint, parts: &Parts, form: &[u8]) -> Result<Option<RateLimitKey>, Error> {
        let endpoint = match endpoint {
            Endpoint::Token => TokenEndpoint::Token,
            Endpoint::Revoke => TokenEndpoint::Revocation,
            _ => return Ok(None),
        };
        let Ok((credentials, parameters)) = client::read(parts, form) else { return Ok(None) };
        let input = (endpoint, credentials, parameters);
        let grant = self.kernel.store.read("oauth.grant", input, async |tx, (endpoint, credentials, parameters)| {
            tokens::grant_of(tx, *endpoint, credentials, parameters).await
        });
        Ok(grant.await?.map(|(grant, own)| self.kernel.limits.tokens_of_grant(grant, &own)))
    }

    async fn token(&self, parts: &Parts, form: &[u8]) -> Response<ResponseBody> {
        #[derive(Serialize)]
        struct Tokens<'a> {
            access_token: &'a str,
            token_type: &'static str,
            expires_in: u64,
            refresh_token: &'a str,
            scope: &'static str,
            tenant_id: TenantId,
        }
        let (credentials, parameters) = match client::read(parts, form) {
            Ok(read) => read,
            Err(refused) => return refusal(parts, refused),
        };
        let input = (credentials, parameters, self.apps.issuer.clone());
        let outcome = self.kernel.store.write("oauth.token", input, async |tx, (credentials, parameters, issuer)| {
            tokens::request(tx, credentials, parameters, issuer).await
        });
        match outcome.await {
            Ok(Ok(new)) => json_response(
                StatusCode::OK,
                &Tokens {
                    access_token: new.access_token.reveal(),
                    token_type: "Bearer",
                    expires_in: ACCESS_LIFETIME.as_secs(),
                    refresh_token: new.refresh_token.reveal(),
                    scope: new.scope,
                    tenant_id: new.tenant_id,
                },
            ),
            Ok(Err(refused)) => refusal(parts, refused),
            Err(failed) => failure(&failed),
        }
    }

    async fn revoke(&self, parts: &Parts, form: &[u8]) -> Response<ResponseBody> {
        let store = &self.kernel.store;
        let input: (ClientCredentials, Parameters) = match client::read(parts, form) {
            Ok(read) => read,
            Err(refused) => return refusal(parts, refused),
        };
        let has_token = store.read("oauth.has_token", input.clone(), async |tx, (credentials, parameters)| {
            tokens::has_token(tx, credentials, parameters).await
        });
        let outcome = match has_token.await {
            Ok(Ok(true)) => {
                let revoke = store.write("oauth.revoke", input, async |tx, (credentials, parameters)| {
                    tokens::revoke_token(tx, credentials, parameters).await
                });
                revoke.await
            }
            other => other.map(|result| result.map(drop)),
        };
        match outcome {
            // Clients ignore the body (RFC 7009 §2.2), but some, such as simple-oauth2, fail if it is not JSON.
            Ok(Ok(())) => json_response(StatusCode::OK, &json!({})),
            Ok(Err(refused)) => refusal(parts, refused),
            Err(failed) => failure(&failed),
        }
    }
}

impl Surface for Oauth {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        let endpoint = self.endpoint(parts.uri.path())?;
        Some(Route::new(Kind::Page, move |request| self.respond(endpoint, request)))
    }
}

/// The endpoint where programs of the operator ask about tokens, on the platform listener (RFC 7662).
pub(crate) struct Introspection {
    kernel: Arc<Kernel>,
    apps: Arc<Apps>,
}

impl Introspection {
    /// Creates the endpoint. Without apps there is none.
    pub(crate) fn new(kernel: &Arc<Kernel>) -> Option<Self> {
        Some(Self { kernel: Arc::clone(kernel), apps: kernel.apps.clone()? })
    }

    /// Responds to a request. A refused one counts against its address.
    async fn respond(&self, request: Arrived<'_>) -> Result<Outcome, Problem> {
        let Arrived { parts, body, peer, .. } = request;
        let limits = &self.kernel.limits;
        let refusals = limits.key_of_peer(peer);
        limits.check(refusals, self.kernel.now()).map_err(|limited| Problem::rate_limited(&limited))?;
        let refused = async |response| match limits.count(refusals, self.kernel.now()).await {
            Ok(_) => response,
            Err(limited) => Err(Problem::rate_limited(&limited)),
        };
        if let Some(response) = unless_allowed(parts, &Method::POST) {
            let is_error = response.status().is_client_error();
            let response = Ok(held(&self.kernel, parts, response));
            return if is_error { refused(response).await } else { response };
        }
        let form = match body.read(MAX_FORM).await {
            Err(Problem::BodyTooLarge) => return Ok(held(&self.kernel, parts, too_large())),
            form => form?,
        };
        match self.introspect(parts, &form).await {
            Ok(response) => Ok(held(&self.kernel, parts, response)),
            Err(problem) => refused(Err(problem)).await,
        }
    }

    /// Says what a token is, to a platform key with the scope `apps:read`.
    async fn introspect(&self, parts: &Parts, form: &[u8]) -> Result<Response<ResponseBody>, Problem> {
        let hash = PlatformKeyHash::of(auth::bearer(&parts.headers, PLATFORM_KEY_PREFIX)?)?;
        let found =
            self.kernel.store.read("oauth.introspect", (hash, Parameters::of(form)), async |tx, (hash, parameters)| {
                platform_keys::authenticate(tx, *hash).await?.require(Area::Apps, Scope::Read)?;
                match parameters.one("token") {
                    Ok(Some(token)) => tokens::introspect(tx, token).await.map(Ok),
                    _ => Ok(Err(TokenError::InvalidRequest("token is missing, or repeated."))),
                }
            });
        Ok(match found.await? {
            Ok(Some(tokens::Introspection { token, client_id, member })) => json_response(
                StatusCode::OK,
                &json!({
                    "active": true,
                    "scope": scope_text(token.writes),
                    "client_id": client_id,
                    "username": member,
                    "token_type": if token.is_refresh { "refresh_token" } else { "Bearer" },
                    "exp": token.expires_at.as_seconds(),
                    "aud": format!("{}{}", self.apps.issuer.url, token.resource.unwrap_or_default()),
                    "iss": self.apps.issuer.url,
                    "tenant_id": token.tenant_id,
                }),
            ),
            Ok(None) => json_response(StatusCode::OK, &json!({ "active": false })),
            Err(refused) => error(StatusCode::BAD_REQUEST, refused.code(), &refused.to_string()),
        })
    }
}

impl Surface for Introspection {
    fn find<'a>(&'a self, parts: &'a Parts) -> Option<Route<'a>> {
        let is_own = parts.uri.path() == "/oauth/introspect";
        is_own.then(|| Route::new(Kind::Page, |request| self.respond(request)))
    }
}

/// Returns a response in the memory of responses. They are small, and made at once.
fn held(kernel: &Kernel, parts: &Parts, response: Response<ResponseBody>) -> Outcome {
    let responses = &kernel.responses;
    let memory = responses.nothing(Holder::Strangers);
    Outcome::Http(response.map(|body| body.within(responses, memory, parts.extensions.get())))
}

/// Returns the response to a request with another method than the one that is allowed.
fn unless_allowed(parts: &Parts, allowed: &Method) -> Option<Response<ResponseBody>> {
    if parts.method == Method::OPTIONS {
        return Some(preflight(allowed));
    }
    if parts.method == *allowed || (parts.method == Method::HEAD && *allowed == Method::GET) {
        return None;
    }
    let mut response = error(StatusCode::METHOD_NOT_ALLOWED, "invalid_request", "The endpoint has another method.");
    let methods = if *allowed == Method::GET { "GET, HEAD, OPTIONS" } else { "POST, OPTIONS" };
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    Some(response)
}

/// Refuses a form that is too large to be read.
fn too_large() -> Response<ResponseBody> {
    error(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request", "The form is too large.")
}

/// Returns the response to a request that is refused. A client that has authenticated in `Authorization` gets 401 with a challenge
/// (RFC 6749 §5.2), without which some clients lose the response. Any other gets 400: browsers would show a dialog for a password
/// to people whose app sent the request, such as the API reference.
fn refusal(parts: &Parts, refused: TokenError) -> Response<ResponseBody> {
    let is_challenged = matches!(refused, TokenError::InvalidClient(_)) && parts.headers.contains_key(AUTHORIZATION);
    let status = if is_challenged { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST };
    let mut response = error(status, refused.code(), &refused.to_string());
    if is_challenged {
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"svc\", charset=\"UTF-8\""));
    }
    response
}

fn failure(failed: &Error) -> Response<ResponseBody> {
    match failed {
        Error::Store(store) if store.is_transient() || *store == StoreError::Closed => {
            error(StatusCode::SERVICE_UNAVAILABLE, "temporarily_unavailable", "The service is not available right now.")
        }
        failed => {
            tracing::error!(error = %failed, "the store failed a request for tokens");
            error(StatusCode::INTERNAL_SERVER_ERROR, "server_error", "Something failed on our side.")
        }
    }
}

fn error(status: StatusCode, code: &str, description: &str) -> Response<ResponseBody> {
    json_response(status, &json!({ "error": code, "error_description": description }))
}

fn metadata(metadata: &serde_json::Value) -> Response<ResponseBody> {
    let mut response = json_response(StatusCode::OK, metadata);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response.headers_mut().remove(PRAGMA);
    response
}

fn json_response(status: StatusCode, body: &impl Serialize) -> Response<ResponseBody> {
    let mut body = serde_json::to_vec(body).unwrap_or_default();
    body.push(b'\n');
    let mut response = with_headers(status, body.into());
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response
}

/// Returns a response that no cache keeps, and that scripts of any page may read: none of them has a cookie that counts here.
fn with_headers(status: StatusCode, body: Bytes) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, NO_STORE);
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANYONE);
    response
}

fn preflight(method: &Method) -> Response<ResponseBody> {
    let mut response = with_headers(StatusCode::NO_CONTENT, Bytes::new());
    let headers = response.headers_mut();
    let methods = if *method == Method::GET { "GET, HEAD" } else { "POST" };
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(methods));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_HEADERS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}
