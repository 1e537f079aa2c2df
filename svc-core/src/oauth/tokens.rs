//! Tokens: what a code is exchanged for, how they are refreshed and revoked (RFC 6749 §4.1.3 and §6, RFC 7009, RFC 7662).

use std::time::Duration;

use super::parameters::{self, Parameters, Repeated};
use super::revocation::{RevokeReason, revoke};
use crate::accounts::actor::Actor;
use crate::accounts::apps::App;
use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::grants::{
    ACCESS_TOKEN_PREFIX, AuthorizationCode, AuthorizationId, CODE_PREFIX, GrantId, REFRESH_TOKEN_PREFIX, Token,
};
use crate::accounts::keys;
use crate::accounts::limits::RateLimits;
use crate::accounts::tenants::DeveloperAccess;
use crate::crypto::{hmac_sha256, sha256};
use crate::error::Error;
use crate::oauth::authorization::Issuer;
use crate::store::Tx;
use crate::values::{Secret, TenantId, Timestamp};

/// How long an access token lasts.
pub const ACCESS_LIFETIME: Duration = Duration::from_secs(60 * 60);
/// How long a refresh token lasts without a use.
pub const REFRESH_LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// How long a refresh token that was replaced gets the same response again, if the response was lost.
pub const GRACE: Duration = Duration::from_secs(30 * 60);

/// The refusal of a token that another client has (RFC 7009 §2.1).
const FOREIGN: TokenError = TokenError::InvalidGrant("The token was issued to another client.");

/// Why tokens are refused, with its code in RFC 6749 §5.2 and RFC 8707 §2, and a sentence for the developer of the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// A parameter is missing, repeated or malformed.
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// The client did not authenticate as the one that it says it is.
    #[error("{0}")]
    InvalidClient(&'static str),
    /// The code or the refresh token is not valid.
    #[error("{0}")]
    InvalidGrant(&'static str),
    /// Developer access of the account is pending or suspended. The code or the refresh token stays valid.
    #[error("{0}")]
    UnauthorizedClient(&'static str),
    /// The type of the request is neither `authorization_code` nor `refresh_token`.
    #[error("grant_type must be authorization_code or refresh_token.")]
    UnsupportedGrantType,
    /// More is asked for than was granted.
    #[error("The scope is more than what was granted.")]
    InvalidScope,
    /// The resource is not the one that was granted.
    #[error("The resource is none of this service, or not the one that was granted.")]
    InvalidTarget,
}

impl TokenError {
    /// Returns the code of the error.
    pub fn code(self) -> &'static str {
        match self {
            Self::InvalidRequest(_) => "invalid_request",
            Self::InvalidClient(_) => "invalid_client",
            Self::InvalidGrant(_) => "invalid_grant",
            Self::UnauthorizedClient(_) => "unauthorized_client",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::InvalidScope => "invalid_scope",
            Self::InvalidTarget => "invalid_target",
        }
    }
}

impl From<Repeated> for TokenError {
    fn from(Repeated: Repeated) -> Self {
        Self::InvalidRequest("A parameter is repeated.")
    }
}

/// The credentials that a client sends.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    /// The client id.
    pub client_id: String,
    /// The secret. `None` if none was sent.
    pub secret: Option<Secret>,
}

/// New tokens.
#[derive(Clone, Debug)]
pub struct Tokens {
    /// The access token, which lasts for [`ACCESS_LIFETIME`].
    pub access_token: Secret,
    /// The refresh token.
    pub refresh_token: Secret,
    /// The rights of the access token, as a scope.
    pub scope: &'static str,
    /// The account.
    pub tenant_id: TenantId,
}

/// The facts about a token (RFC 7662).
#[derive(Clone, Debug, PartialEq)]
pub struct Introspection {
    /// The token as it is stored.
    pub token: Token,
    /// The client id of the app.
    pub client_id: String,
    /// The member who granted the access.
    pub member: String,
}

/// A result that is committed also if the client is refused, as a refusal may revoke.
pub type Outcome<T> = Result<Result<T, TokenError>, Error>;

/// Returns from the surrounding function with a refusal of the client.
macro_rules! accept {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(refused) => return Ok(Err(TokenError::from(refused))),
        }
    };
}

/// Returns the app that a client is.
async fn client(tx: &mut dyn Tx, credentials: &ClientCredentials) -> Outcome<App> {
    let unknown = TokenError::InvalidClient("The client_id or its secret is not valid, or the app is disabled.");
    let Some(app) = tx.app_by_client_id(&credentials.client_id).await? else { return Ok(Err(unknown)) };
    let is_authentic = match (&credentials.secret, app.confidential) {
        (Some(secret), true) => app.has_secret(secret.reveal(), tx.env().now()),
        (None, false) => true,
        (None, true) | (Some(_), false) => false,
    };
    Ok(if is_authentic && app.disabled_at.is_none() { Ok(app) } else { Err(unknown) })
}

/// Responds to a request for tokens.
///
/// # Errors
/// [`Error::Store`]. A mistake in the request is a [`TokenError`].
pub async fn request(
    tx: &mut dyn Tx,
    credentials: &ClientCredentials,
    parameters: &Parameters,
    issuer: &Issuer,
) -> Outcome<Tokens> {
    let app = accept!(client(tx, credentials).await?);
    let resource = match parameters.one("resource") {
        Ok(None) => None,
        Ok(Some(resource)) => match parameters::resource_path(resource, &issuer.url, &issuer.resources) {
            Some(path) => Some(path),
            None => return Ok(Err(TokenError::InvalidTarget)),
        },
        Err(Repeated) => return Ok(Err(TokenError::InvalidTarget)),
    };
    match accept!(parameters.one("grant_type")) {
        Some("authorization_code") => exchange(tx, &app, parameters, resource).await,
        Some("refresh_token") => refresh(tx, &app, parameters, resource).await,
        Some(_) => Ok(Err(TokenError::UnsupportedGrantType)),
        None => Ok(Err(TokenError::InvalidRequest("grant_type is missing."))),
    }
}

/// Exchanges a code for tokens, once. One that was used ends the tokens that it gave.
async fn exchange(tx: &mut dyn Tx, app: &App, parameters: &Parameters, resource: Option<&str>) -> Outcome<Tokens> {
    let Some(text) = accept!(parameters.one("code")) else {
        return Ok(Err(TokenError::InvalidRequest("code is missing.")));
    };
    let Some(verifier) = accept!(parameters.one("code_verifier")) else {
        return Ok(Err(TokenError::InvalidRequest("code_verifier is missing (RFC 7636).")));
    };
    let redirect_uri = accept!(parameters.one("redirect_uri"));
    let invalid = || Ok(Err(TokenError::InvalidGrant("The code is not valid, has expired or was used.")));
    let Ok(hash) = keys::hash_of(CODE_PREFIX, text) else { return invalid() };
    let Some(tenant) = tx.code(&hash).await?.map(|code| code.tenant_id) else { return invalid() };
    tx.lock_tenant(tenant).await?;
    // Only after the lock does it show whether another request has used it.
    let Some(code) = tx.code(&hash).await?.filter(|code| code.app_id == app.id) else { return invalid() };
    tx.act_as(Actor::App { app: app.id, grant: code.grant_id });
    if code.is_used {
        tx.delete_tokens_of(tenant, code.id).await?;
        let object = Object { kind: "grant", id: code.grant_id.uuid() };
        audit::record::<()>(tx, tenant, AuditAction::CodeReused, object, None, None).await?;
        return invalid();
    }
    if code.expires_at <= tx.env().now() {
        return invalid();
    }
    if !is_redirect_uri(&code, app, redirect_uri) {
        let reason = "redirect_uri is not that of the authorization request.";
        return Ok(Err(TokenError::InvalidGrant(reason)));
    }
    if !is_verifier(verifier) || sha256(verifier.as_bytes()) != code.challenge {
        return Ok(Err(TokenError::InvalidGrant("code_verifier does not match the code_challenge.")));
    }
    accept!(approved(tx, tenant).await?);
    let resource = accept!(narrowed(code.resource.as_deref(), resource));
    tx.use_code(&hash).await?;
    let refresh_token = keys::new_text(tx.env(), REFRESH_TOKEN_PREFIX);
    let of = Issued { authorization: code.id, tenant, app, grant: code.grant_id };
    let granted = TokenScope { writes: code.writes, resource: code.resource };
    insert_refresh(tx, &of, &granted, &refresh_token).await?;
    let access_token = keys::new_text(tx.env(), ACCESS_TOKEN_PREFIX);
    let scope = TokenScope { resource, ..granted };
    insert_access(tx, &of, &scope, &access_token).await?;
    Ok(Ok(tokens(access_token, refresh_token, scope.writes, tenant)))
}

/// Gives another access token for a refresh token. That of a public app is replaced.
async fn refresh(tx: &mut dyn Tx, app: &App, parameters: &Parameters, resource: Option<&str>) -> Outcome<Tokens> {
    let Some(text) = accept!(parameters.one("refresh_token")) else {
        return Ok(Err(TokenError::InvalidRequest("refresh_token is missing.")));
    };
    let scope = accept!(parameters.one("scope"));
    let invalid = || Ok(Err(TokenError::InvalidGrant("The refresh token is not valid, has expired or was revoked.")));
    let Ok(hash) = keys::hash_of(REFRESH_TOKEN_PREFIX, text) else { return invalid() };
    let Some(tenant) = tx.token(&hash).await?.map(|token| token.tenant_id) else { return invalid() };
    tx.lock_tenant(tenant).await?;
    let now = tx.env().now();
    let found = tx.token(&hash).await?;
    let Some(mut token) = found.filter(|token| token.app_id == app.id && now < token.expires_at) else {
        return invalid();
    };
    tx.act_as(Actor::App { app: app.id, grant: token.grant_id });
    accept!(approved(tx, tenant).await?);
    let writes = match scope {
        None => token.writes,
        scope => match parameters::asks_for_write(scope) {
            Ok(writes) if token.writes || !writes => writes,
            _ => return Ok(Err(TokenError::InvalidScope)),
        },
    };
    let resource = accept!(narrowed(token.resource.as_deref(), resource));
    let scope = TokenScope { writes, resource };
    let of = Issued { authorization: token.authorization, tenant, app, grant: token.grant_id };
    if app.confidential {
        token.expires_at = after(now, REFRESH_LIFETIME);
        tx.update_token(&token, &hash).await?;
        let access_token = keys::new_text(tx.env(), ACCESS_TOKEN_PREFIX);
        insert_access(tx, &of, &scope, &access_token).await?;
        return Ok(Ok(tokens(access_token, text.to_owned(), writes, tenant)));
    }
    let refresh_token = successor(REFRESH_TOKEN_PREFIX, &token.nonce, &[text.as_bytes()]);
    if let (Some(replaced_at), Some(successor)) = (token.replaced_at, token.successor) {
        let next = tx.token(&successor).await?;
        let is_unused = next.is_some_and(|next| next.replaced_at.is_none());
        if !is_unused || now.since(replaced_at) > GRACE {
            revoke(tx, tenant, token.grant_id, RevokeReason::TokenReused).await?;
            return invalid();
        }
    } else {
        let granted = TokenScope { writes: token.writes, resource: token.resource.clone() };
        insert_refresh(tx, &of, &granted, &refresh_token).await?;
        token.successor = Some(sha256(refresh_token.as_bytes()));
        token.replaced_at = Some(now);
        tx.update_token(&token, &hash).await?;
    }
    // A repeat gets what was issued the first time, for as long as the response says, or another token in its place if it was
    // revoked.
    let resource = scope.resource.as_deref().unwrap_or_default();
    let parts = [text, parameters::scope_text(writes), resource];
    let access_token = successor(ACCESS_TOKEN_PREFIX, &token.nonce, &parts.map(str::as_bytes));
    let access_hash = sha256(access_token.as_bytes());
    let access_token = match tx.token(&access_hash).await? {
        Some(issued) if now < issued.expires_at => {
            let issued = Token { expires_at: after(now, ACCESS_LIFETIME), ..issued };
            tx.update_token(&issued, &access_hash).await?;
            return Ok(Ok(tokens(access_token, refresh_token, writes, tenant)));
        }
        Some(_) => keys::new_text(tx.env(), ACCESS_TOKEN_PREFIX),
        None => access_token,
    };
    insert_access(tx, &of, &scope, &access_token).await?;
    Ok(Ok(tokens(access_token, refresh_token, writes, tenant)))
}

/// Returns whether a client has the token that it wants to revoke. Anyone can ask to revoke what is no token, so that must not
/// cost a write.
///
/// # Errors
/// [`Error::Store`]. A mistake in the request is a [`TokenError`].
pub async fn has_token(tx: &mut dyn Tx, credentials: &ClientCredentials, parameters: &Parameters) -> Outcome<bool> {
    let app = accept!(client(tx, credentials).await?);
    let Some(text) = accept!(parameters.one("token")) else {
        return Ok(Err(TokenError::InvalidRequest("token is missing.")));
    };
    let Some(hash) = hash_of_any(text) else { return Ok(Ok(false)) };
    match tx.token(&hash).await? {
        Some(token) if token.app_id != app.id => Ok(Err(FOREIGN)),
        token => Ok(Ok(token.is_some())),
    }
}

/// Refuses tokens for an account whose developer access is pending or suspended.
async fn approved(tx: &mut dyn Tx, tenant: TenantId) -> Outcome<()> {
    let account = tx.tenant(tenant).await?;
    if account.is_some_and(|account| account.developer_access == DeveloperAccess::Approved) {
        return Ok(Ok(()));
    }
    let reason = "Developer access of the account is not approved. Send the same request again once the operator of the service \
                  has approved it.";
    Ok(Err(TokenError::UnauthorizedClient(reason)))
}

/// An endpoint that takes a code or a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenEndpoint {
    /// It issues tokens ([`request`]).
    Token,
    /// It revokes one ([`revoke_token`]).
    Revocation,
}

impl TokenEndpoint {
    /// Returns the parameter that the endpoint reads the code or the token from. All others are ignored, so they must not choose
    /// the grant that a request counts against.
    fn parameter(self, parameters: &Parameters) -> Option<&'static str> {
        match (self, parameters.one("grant_type")) {
            (Self::Revocation, _) => Some("token"),
            (Self::Token, Ok(Some("authorization_code"))) => Some("code"),
            (Self::Token, Ok(Some("refresh_token"))) => Some("refresh_token"),
            (Self::Token, _) => None,
        }
    }
}

/// Returns the grant whose tokens a request concerns, and the rate limits of its account. `None` for a request that is refused,
/// or that names no token which is known.
///
/// # Errors
/// [`Error::Store`].
pub async fn grant_of(
    tx: &mut dyn Tx,
    endpoint: TokenEndpoint,
    credentials: &ClientCredentials,
    parameters: &Parameters,
) -> Result<Option<(GrantId, RateLimits)>, Error> {
    let Ok(app) = client(tx, credentials).await? else { return Ok(None) };
    let Some(name) = endpoint.parameter(parameters) else { return Ok(None) };
    let Some(sent) = parameters.one(name).ok().flatten() else { return Ok(None) };
    let found = if name == "code" {
        let Ok(hash) = keys::hash_of(CODE_PREFIX, sent) else { return Ok(None) };
        tx.code(&hash).await?.map(|code| (code.tenant_id, code.app_id, code.grant_id))
    } else {
        let Some(hash) = hash_of_any(sent) else { return Ok(None) };
        tx.token(&hash).await?.map(|token| (token.tenant_id, token.app_id, token.grant_id))
    };
    let Some((tenant, _, grant)) = found.filter(|(_, of, _)| *of == app.id) else { return Ok(None) };
    Ok(tx.tenant(tenant).await?.map(|account| (grant, account.limits)))
}

/// Revokes a token of a client (RFC 7009). One that is not known is revoked already, and that of another client is refused.
/// Without its last refresh token an app has no access any more, so the grant ends.
///
/// # Errors
/// [`Error::Store`]. A mistake in the request is a [`TokenError`].
pub async fn revoke_token(tx: &mut dyn Tx, credentials: &ClientCredentials, parameters: &Parameters) -> Outcome<()> {
    let app = accept!(client(tx, credentials).await?);
    let Some(text) = accept!(parameters.one("token")) else {
        return Ok(Err(TokenError::InvalidRequest("token is missing.")));
    };
    let Some(hash) = hash_of_any(text) else { return Ok(Ok(())) };
    let Some(tenant) = tx.token(&hash).await?.map(|token| token.tenant_id) else { return Ok(Ok(())) };
    tx.lock_tenant(tenant).await?;
    let Some(mut token) = tx.token(&hash).await? else { return Ok(Ok(())) };
    if token.app_id != app.id {
        return Ok(Err(FOREIGN));
    }
    tx.act_as(Actor::App { app: app.id, grant: token.grant_id });
    if !token.is_refresh {
        // It stays as an expired one, so that the repeat of a refresh does not issue it again.
        token.expires_at = token.expires_at.min(tx.env().now());
        tx.update_token(&token, &hash).await?;
        return Ok(Ok(()));
    }
    tx.delete_tokens_of(tenant, token.authorization).await?;
    let now = tx.env().now();
    if !tx.has_refresh_token(tenant, token.grant_id, now).await? {
        revoke(tx, tenant, token.grant_id, RevokeReason::Disconnected).await?;
    }
    Ok(Ok(()))
}

/// Returns what a token is, or `None` if it is refused (RFC 7662).
///
/// # Errors
/// [`Error::Store`].
pub async fn introspect(tx: &mut dyn Tx, text: &str) -> Result<Option<Introspection>, Error> {
    let Some(hash) = hash_of_any(text) else { return Ok(None) };
    let now = tx.env().now();
    let found = tx.token(&hash).await?.filter(|token| now < token.expires_at && token.replaced_at.is_none());
    let Some(token) = found else { return Ok(None) };
    let app = tx.app(token.app_id).await?.filter(|app| app.disabled_at.is_none());
    let grant = tx.grant(token.tenant_id, token.grant_id).await?;
    let (Some(app), Some(grant)) = (app, grant) else { return Ok(None) };
    // The API refuses the token as well, until the account is approved again.
    if approved(tx, token.tenant_id).await?.is_err() {
        return Ok(None);
    }
    Ok(Some(Introspection { token, client_id: app.client_id, member: grant.member }))
}

fn hash_of_any(text: &str) -> Option<[u8; 32]> {
    [ACCESS_TOKEN_PREFIX, REFRESH_TOKEN_PREFIX].into_iter().find_map(|prefix| keys::hash_of(prefix, text).ok())
}

/// The rights of a token, and the resource that they are for.
#[derive(Clone)]
struct TokenScope {
    writes: bool,
    resource: Option<String>,
}

/// The recipient of a token.
struct Issued<'a> {
    authorization: AuthorizationId,
    tenant: TenantId,
    app: &'a App,
    grant: GrantId,
}

async fn insert_refresh(tx: &mut dyn Tx, of: &Issued<'_>, scope: &TokenScope, text: &str) -> Result<(), Error> {
    let expires_at = after(tx.env().now(), REFRESH_LIFETIME);
    insert(tx, of, scope, text, expires_at, true).await
}

async fn insert_access(tx: &mut dyn Tx, of: &Issued<'_>, scope: &TokenScope, text: &str) -> Result<(), Error> {
    let expires_at = after(tx.env().now(), ACCESS_LIFETIME);
    insert(tx, of, scope, text, expires_at, false).await
}

async fn insert(
    tx: &mut dyn Tx,
    of: &Issued<'_>,
    scope: &TokenScope,
    text: &str,
    expires_at: Timestamp,
    is_refresh: bool,
) -> Result<(), Error> {
    let token = Token {
        authorization: of.authorization,
        tenant_id: of.tenant,
        grant_id: of.grant,
        app_id: of.app.id,
        is_refresh,
        writes: scope.writes,
        resource: scope.resource.clone(),
        expires_at,
        nonce: tx.env().bytes(),
        successor: None,
        replaced_at: None,
    };
    Ok(tx.insert_token(&token, &sha256(text.as_bytes())).await?)
}

fn tokens(access_token: String, refresh_token: String, writes: bool, tenant_id: TenantId) -> Tokens {
    let scope = parameters::scope_text(writes);
    Tokens { access_token: Secret::new(access_token), refresh_token: Secret::new(refresh_token), scope, tenant_id }
}

/// Returns a token that follows a refresh token. It takes its nonce, which the store alone has, and parts that begin with its
/// text, which clients alone have. No two lists of parts have the same bytes with a space between, as only the last may be empty
/// and none has a space but the second, which is a scope.
fn successor(prefix: &str, nonce: &[u8; 32], parts: &[&[u8]]) -> String {
    let parts = parts.join(&b' ');
    let mut block = 0_u8;
    keys::text_from(prefix, || {
        let mut bytes = [0; 64];
        for half in bytes.chunks_exact_mut(32) {
            half.copy_from_slice(&hmac_sha256(nonce, &[prefix.as_bytes(), &[block], &parts]));
            block = block.wrapping_add(1);
        }
        bytes
    })
}

fn after(now: Timestamp, lifetime: Duration) -> Timestamp {
    now.checked_add(lifetime).unwrap_or(now)
}

/// Returns whether a request names the redirect URI of its code (RFC 6749 §4.1.3).
fn is_redirect_uri(code: &AuthorizationCode, app: &App, sent: Option<&str>) -> bool {
    match (&code.redirect_uri, sent) {
        (Some(named), sent) => sent == Some(named),
        (None, None) => true,
        (None, Some(sent)) => app.redirect_uris.iter().any(|uri| uri.as_str() == sent),
    }
}

/// Returns whether a text has the form of a code verifier (RFC 7636 §4.1).
fn is_verifier(text: &str) -> bool {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    (43..=128).contains(&text.len()) && text.bytes().all(is_unreserved)
}

/// Returns the resource of a token: the one that was granted, or a part of it that is asked for.
fn narrowed(granted: Option<&str>, asked: Option<&str>) -> Result<Option<String>, TokenError> {
    let asked = asked.filter(|path| !path.is_empty());
    match (granted, asked) {
        (granted, None) => Ok(granted.map(str::to_owned)),
        (None, Some(asked)) => Ok(Some(asked.to_owned())),
        (Some(granted), Some(asked)) if granted == asked => Ok(Some(asked.to_owned())),
        _ => Err(TokenError::InvalidTarget),
    }
}
