//! Grants: that an account lets an app work on it, and the tokens with which the app does.
//!
//! An account has at most one grant for an app. It belongs to the account and not to the member who gave it, so it stays when
//! the member goes. A revocation deletes it, with its tokens, so that they are refused from the next request on.

use serde::{Deserialize, Serialize};

use crate::accounts::apps::{App, AppId};
use crate::accounts::keys::{self, Caller, CallerId, Scope};
use crate::accounts::limits::RateLimits;
use crate::accounts::tenants::DeveloperAccess;
use crate::error::Error;
use crate::input::Record;
use crate::store::Tx;
use crate::values::{Id, TenantId, Timestamp};

/// The id of a grant.
pub type GrantId = Id<Grant>;
/// The id of an authorization: of its code, and of all tokens that the code gave.
pub type AuthorizationId = Id<AuthorizationCode>;

/// The prefix of an authorization code.
pub const CODE_PREFIX: &str = "svc_oac_";
/// The prefix of an access token.
pub const ACCESS_TOKEN_PREFIX: &str = "svc_oat_";
/// The prefix of a refresh token.
pub const REFRESH_TOKEN_PREFIX: &str = "svc_ort_";
/// The most grants of an account that are listed.
pub const MAX_LISTED: u32 = 1000;

/// The access of an app to an account.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Record)]
pub struct Grant {
    /// The unique identifier of the grant, a UUID of version 7.
    pub id: GrantId,
    /// The account that granted the access.
    pub tenant_id: TenantId,
    /// The app.
    pub app_id: AppId,
    /// The scopes of the app: `read`, or `read` and `write`.
    pub scopes: Vec<Scope>,
    /// The person who granted it last, as the audit log names them.
    pub member: String,
    /// When it was granted.
    pub created_at: Timestamp,
    /// When the app last sent a request, exact to about ten seconds. Null if it never did.
    pub last_used_at: Option<Timestamp>,
    /// How many requests the app has sent, exact to about ten seconds.
    pub requests: u64,
}

/// An authorization code as it is stored, beside its digest.
#[derive(Clone, Debug, PartialEq)]
pub struct AuthorizationCode {
    /// The id of the authorization.
    pub id: AuthorizationId,
    /// The account that was chosen.
    pub tenant_id: TenantId,
    /// The grant.
    pub grant_id: GrantId,
    /// The app.
    pub app_id: AppId,
    /// Whether the scope `write` was granted.
    pub writes: bool,
    /// The redirect URI of the request. `None` if it named none.
    pub redirect_uri: Option<String>,
    /// The SHA-256 that the code verifier must have (RFC 7636, `S256`).
    pub challenge: [u8; 32],
    /// The resource of the request (RFC 8707), as a path below the issuer. `None` for all of it.
    pub resource: Option<String>,
    /// When the code expires.
    pub expires_at: Timestamp,
    /// Whether the code was exchanged.
    pub is_used: bool,
}

/// An access token or a refresh token as it is stored, beside its digest.
#[derive(Clone, Debug, PartialEq)]
pub struct Token {
    /// The authorization that gave the token, or its first predecessor.
    pub authorization: AuthorizationId,
    /// The account.
    pub tenant_id: TenantId,
    /// The grant.
    pub grant_id: GrantId,
    /// The app.
    pub app_id: AppId,
    /// Whether it is a refresh token.
    pub is_refresh: bool,
    /// Whether the token has the scope `write`.
    pub writes: bool,
    /// The resource that the token is for, as a path below the issuer. `None` for all of it.
    pub resource: Option<String>,
    /// When the token expires. Each use of a refresh token moves it.
    pub expires_at: Timestamp,
    /// The bytes that the successors of a refresh token are made from, together with its text.
    pub nonce: [u8; 32],
    /// The digest of the refresh token that replaced this one.
    pub successor: Option<[u8; 32]>,
    /// When the refresh token was replaced.
    pub replaced_at: Option<Timestamp>,
}

/// The part of an access token, its app and its account that authentication reads: one row per request.
#[derive(Clone, Debug)]
pub struct TokenCredential {
    /// The grant.
    pub grant_id: GrantId,
    /// The app.
    pub app_id: AppId,
    /// The account.
    pub tenant_id: TenantId,
    /// Whether the token has the scope `write`.
    pub writes: bool,
    /// When the token expires.
    pub expires_at: Timestamp,
    /// The resource that the token is for.
    pub resource: Option<String>,
    /// Whether the app is disabled.
    pub is_disabled: bool,
    /// The developer access of the account.
    pub developer_access: DeveloperAccess,
    /// The rate limits that the account has in place of the server's.
    pub limits: RateLimits,
}

/// The requests that an app has sent with a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GrantUse {
    /// The account.
    pub tenant_id: TenantId,
    /// The grant.
    pub grant_id: GrantId,
    /// When the last of them was sent.
    pub used_at: Timestamp,
    /// How many there were.
    pub requests: u64,
}

/// The SHA-256 of an access token whose form and checksum are valid. The store finds a token by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// Checks the form and the checksum of an access token and hashes it.
    ///
    /// # Errors
    /// [`Error::InvalidToken`].
    pub fn of(token: &str) -> Result<Self, Error> {
        keys::hash_of(ACCESS_TOKEN_PREFIX, token).map(Self).map_err(|_| Error::InvalidToken)
    }
}

/// Returns the app that an access token belongs to. `resource` is the path below the issuer that is asked for.
///
/// # Errors
/// [`Error::InvalidToken`] if the token is unknown, expired or for another resource, or the app is disabled.
pub async fn authenticate(tx: &mut dyn Tx, hash: TokenHash, resource: &str) -> Result<Caller, Error> {
    let found = tx.token_credential(&hash.0).await?.ok_or(Error::InvalidToken)?;
    // A resource includes what is below it.
    let is_below = |own: &str| resource.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let is_for = found.resource.as_deref().is_none_or(is_below);
    if found.expires_at <= tx.env().now() || found.is_disabled || !is_for {
        return Err(Error::InvalidToken);
    }
    let id = CallerId::App { app: found.app_id, grant: found.grant_id };
    Ok(Caller::new(id, found.tenant_id, None, found.limits, found.writes, found.developer_access))
}

/// Returns the grants of an account with their apps, oldest first, at most [`MAX_LISTED`].
///
/// # Errors
/// [`Error::Store`].
pub async fn list(tx: &mut dyn Tx, tenant: TenantId) -> Result<Vec<(Grant, App)>, Error> {
    let mut grants = Vec::new();
    for grant in tx.grants(tenant, MAX_LISTED).await? {
        if let Some(app) = tx.app(grant.app_id).await? {
            grants.push((grant, app));
        }
    }
    Ok(grants)
}

/// Returns a grant of an account.
///
/// # Errors
/// [`Error::NotFound`].
pub async fn get(tx: &mut dyn Tx, tenant: TenantId, id: GrantId) -> Result<Grant, Error> {
    tx.grant(tenant, id).await?.ok_or(Error::NotFound)
}
