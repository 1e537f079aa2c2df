//! OAuth 2.0 over HTTP: the endpoints of apps, and the metadata by which they find them (`docs/oauth.md`).
//!
//! The rules are in [`svc_core::oauth`]. What is here reads requests and writes responses as the RFCs have them. The page on
//! which an owner consents is one of the dashboard (`dashboard/consent.rs`).
//!
//! # Mounted
//!
//! The issuer is the public URL followed by the mount. A host application that mounts the API at `/business` routes two paths
//! at its root to it as well, since RFC 8414 §3.1 and RFC 9728 §3.1 put the path of the issuer behind them:
//! `/.well-known/oauth-authorization-server/business` and `/.well-known/oauth-protected-resource/business`, with what follows.

mod client;
mod published;

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_MAX_AGE,
    AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, PRAGMA, WWW_AUTHENTICATE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use serde::Serialize;
use serde_json::json;
use svc_core::accounts::keys::Scope;
use svc_core::accounts::platform_keys::{self, Area, PLATFORM_KEY_PREFIX, PlatformKeyHash};
use svc_core::error::{Error, StoreError};
use svc_core::oauth::authorization::Issuer;
use svc_core::oauth::tokens::{self, ACCESS_LIFETIME, ClientCredentials, Introspection, TokenEndpoint, TokenError};
use svc_core::oauth::{Parameters, scope_text};
use svc_core::store::Store;
use svc_core::values::TenantId;

pub(crate) use self::published::PublishedApps;
use crate::api::auth;
use crate::api::limits::{RateLimitKey, RateLimiter};
use crate::api::problem::Problem;
use crate::api::routes::{VERSIONS, Version};
use crate::api::{OauthClients, ResponseBody, Settings};
use crate::dashboard::Origin;
#[cfg(feature = "mcp")]
use crate::mcp;

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
    issuer: Issuer,
    /// The origin of the issuer.
    origin: String,
    mount: String,
    /// The resources.
    versions: Vec<Version>,
    /// Whether apps may publish what they are, in place of being registered.
    takes_published: bool,
}

/// What a path below the mount is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// The page on which an owner consents.
    Authorize,
    Token,
    Revoke,
    /// RFC 7662, for programs of the operator, on the platform listener.
    Introspect,
    /// RFC 8414.
    ServerMetadata,
    /// RFC 9728, of the resource with this path below the issuer.
    ResourceMetadata(&'static str),
}

impl Endpoint {
    /// Returns whether secrets are sent to it, so that whoever guesses them must be slowed down.
    pub(crate) fn takes_tokens(self) -> bool {
        matches!(self, Self::Token | Self::Revoke | Self::Introspect)
    }
}

impl Oauth {
    pub(crate) fn new(origin: &Origin, settings: &Settings) -> Self {
        let mount = settings.mount.as_str();
        #[cfg(feature = "mcp")]
        let tools = settings.mcp.is_some().then_some(mcp::VERSIONS).into_iter().flatten();
        #[cfg(not(feature = "mcp"))]
        let tools = [];
        let versions: Vec<Version> = tools.into_iter().chain(VERSIONS).collect();
        let takes_published = settings.oauth_clients == OauthClients::Metadata;
        let resources = versions.iter().map(|version| version.path().to_owned()).collect();
        let issuer = Issuer { url: format!("{origin}{mount}"), resources };
        Self { issuer, origin: origin.to_string(), mount: mount.to_owned(), versions, takes_published }
    }

    pub(crate) fn issuer(&self) -> &Issuer {
        &self.issuer
    }

    /// Returns what a path is for. Metadata is found below the mount, and behind the well-known path of the host.
    pub(crate) fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match path {
            "/oauth/authorize" => return Some(Endpoint::Authorize),
            "/oauth/token" => return Some(Endpoint::Token),
            "/oauth/revoke" => return Some(Endpoint::Revoke),
            _ => {}
        }
        let rest_of = |well_known| {
            let rest: &str = path.strip_prefix(well_known)?;
            Some(rest.strip_prefix(self.mount.as_str()).unwrap_or(rest))
        };
        if rest_of(SERVER_METADATA) == Some("") {
            return Some(Endpoint::ServerMetadata);
        }
        let resource = rest_of(RESOURCE_METADATA)?;
        let mut known = self.versions.iter().map(|version| version.path()).chain([""]);
        known.find(|path| *path == resource).map(Endpoint::ResourceMetadata)
    }

    /// Adds to a 401 or 403 of the API where clients learn how to get a token, and what was wrong with theirs (RFC 9728 §5.1,
    /// RFC 6750 §3.1).
    pub(crate) fn challenge(&self, path: &str, status: StatusCode, error: Option<&str>, headers: &mut HeaderMap) {
        let error = match (status, error) {
            (StatusCode::FORBIDDEN, Some(error)) => format!("error=\"{error}\", scope=\"read write\", "),
            (StatusCode::UNAUTHORIZED, Some(error)) => format!("error=\"{error}\", "),
            (StatusCode::UNAUTHORIZED, None) => String::new(),
            _ => return,
        };
        let resource = self.versions.iter().map(|version| version.path()).find(|version| path.starts_with(version));
        let metadata = self.resource_metadata_url(resource.unwrap_or_default());
        if let Ok(challenge) = HeaderValue::try_from(format!("Bearer {error}resource_metadata=\"{metadata}\"")) {
            headers.insert(WWW_AUTHENTICATE, challenge);
        }
    }

    fn resource_metadata_url(&self, resource: &str) -> String {
        format!("{}{RESOURCE_METADATA}{}{resource}", self.origin, self.mount)
    }

    fn server_metadata(&self) -> serde_json::Value {
        let url = &self.issuer.url;
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
        if self.takes_published {
            metadata["client_id_metadata_document_supported"] = true.into();
        }
        metadata
    }

    fn resource_metadata(&self, resource: &str) -> serde_json::Value {
        let url = &self.issuer.url;
        let scopes: &[&str] = if resource == Version::McpReadOnly.path() { &["read"] } else { &["read", "write"] };
        json!({
            "resource": format!("{url}{resource}"),
            "authorization_servers": [url],
            "scopes_supported": scopes,
            "bearer_methods_supported": ["header"],
            "resource_documentation": format!("{url}/docs"),
        })
    }

    /// Responds to a request of an app, other than that of a page. `form` is its body.
    pub(crate) async fn respond(
        &self,
        store: &dyn Store,
        endpoint: Endpoint,
        parts: &Parts,
        form: Bytes,
    ) -> Response<ResponseBody> {
        let allowed = match endpoint {
            Endpoint::Token | Endpoint::Revoke | Endpoint::Introspect => Method::POST,
            _ => Method::GET,
        };
        if parts.method == Method::OPTIONS {
            return preflight(&allowed);
        }
        let is_allowed = parts.method == allowed || (parts.method == Method::HEAD && allowed == Method::GET);
        if !is_allowed {
            let mut response =
                error(StatusCode::METHOD_NOT_ALLOWED, "invalid_request", "The endpoint has another method.");
            let methods = if allowed == Method::GET { "GET, HEAD, OPTIONS" } else { "POST, OPTIONS" };
            response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static(methods));
            return response;
        }
        match endpoint {
            Endpoint::ServerMetadata => metadata(&self.server_metadata()),
            Endpoint::ResourceMetadata(resource) => metadata(&self.resource_metadata(resource)),
            Endpoint::Token => self.token(store, parts, &form).await,
            Endpoint::Revoke => self.revoke(store, parts, &form).await,
            // These are answered before.
            Endpoint::Authorize | Endpoint::Introspect => {
                error(StatusCode::NOT_FOUND, "invalid_request", "There is no such endpoint.")
            }
        }
    }

    /// Returns the window that a request of an app counts in, of which each grant has one. `None` for a request without a valid
    /// client and token, which counts against its address when it is refused.
    pub(crate) async fn window(
        &self,
        store: &dyn Store,
        endpoint: Endpoint,
        parts: &Parts,
        form: &[u8],
        limits: &RateLimiter,
    ) -> Result<Option<RateLimitKey>, Error> {
        let endpoint = match endpoint {
            Endpoint::Token => TokenEndpoint::Token,
            Endpoint::Revoke => TokenEndpoint::Revocation,
            _ => return Ok(None),
        };
        let Ok((credentials, parameters)) = client::read(parts, form) else { return Ok(None) };
        let input = (endpoint, credentials, parameters);
        let grant = store.read("oauth.grant", input, async |tx, (endpoint, credentials, parameters)| {
            tokens::grant_of(tx, *endpoint, credentials, parameters).await
        });
        Ok(grant.await?.map(|(grant, own)| limits.tokens_of_grant(grant, &own)))
    }

    /// Refuses a form that is too large to be read.
    pub(crate) fn too_large() -> Response<ResponseBody> {
        error(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request", "The form is too large.")
    }

    async fn token(&self, store: &dyn Store, parts: &Parts, form: &[u8]) -> Response<ResponseBody> {
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
        let input = (credentials, parameters, self.issuer.clone());
        let outcome = store.write("oauth.token", input, async |tx, (credentials, parameters, issuer)| {
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

    /// Says what a token is, to a platform key with the scope `apps:read`.
    pub(crate) async fn introspect(
        &self,
        store: &dyn Store,
        parts: &Parts,
        form: &[u8],
    ) -> Result<Response<ResponseBody>, Problem> {
        let hash = PlatformKeyHash::of(auth::bearer(&parts.headers, PLATFORM_KEY_PREFIX)?)?;
        let found = store.read("oauth.introspect", (hash, Parameters::of(form)), async |tx, (hash, parameters)| {
            platform_keys::authenticate(tx, *hash).await?.require(Area::Apps, Scope::Read)?;
            match parameters.one("token") {
                Ok(Some(token)) => tokens::introspect(tx, token).await.map(Ok),
                _ => Ok(Err(TokenError::InvalidRequest("token is missing, or repeated."))),
            }
        });
        Ok(match found.await? {
            Ok(Some(Introspection { token, client_id, member })) => json_response(
                StatusCode::OK,
                &json!({
                    "active": true,
                    "scope": scope_text(token.writes),
                    "client_id": client_id,
                    "username": member,
                    "token_type": if token.is_refresh { "refresh_token" } else { "Bearer" },
                    "exp": token.expires_at.as_seconds(),
                    "aud": format!("{}{}", self.issuer.url, token.resource.unwrap_or_default()),
                    "iss": self.issuer.url,
                    "tenant_id": token.tenant_id,
                }),
            ),
            Ok(None) => json_response(StatusCode::OK, &json!({ "active": false })),
            Err(refused) => error(StatusCode::BAD_REQUEST, refused.code(), &refused.to_string()),
        })
    }

    async fn revoke(&self, store: &dyn Store, parts: &Parts, form: &[u8]) -> Response<ResponseBody> {
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
