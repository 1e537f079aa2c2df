//! Apps, and what accounts granted them.

use async_trait::async_trait;

use super::StoreResult;
use crate::accounts::apps::{App, AppId};
use crate::accounts::grants::{AuthorizationCode, AuthorizationId, Grant, GrantId, GrantUse, Token, TokenCredential};
use crate::values::{TenantId, Timestamp};

/// Apps that can ask accounts for access.
#[async_trait]
pub trait AppRepository: Send {
    /// Returns one app.
    async fn app(&mut self, id: AppId) -> StoreResult<Option<App>>;

    /// Locks an app until the transaction ends, and returns it. No other transaction changes or deletes it until then.
    async fn lock_app(&mut self, id: AppId) -> StoreResult<Option<App>>;

    /// Returns the app with a client id.
    async fn app_by_client_id(&mut self, client_id: &str) -> StoreResult<Option<App>>;

    /// Returns the apps of an account, or of the operator, oldest first.
    async fn apps(&mut self, owner: Option<TenantId>) -> StoreResult<Vec<App>>;

    /// Adds an app. Fails with [`StoreError::Conflict`](crate::error::StoreError::Conflict) when there is one with this id or
    /// client id.
    async fn insert_app(&mut self, app: &App) -> StoreResult<()>;

    /// Stores what can change of an app.
    async fn update_app(&mut self, app: &App) -> StoreResult<()>;

    /// Deletes an app, which no grant refers to any more.
    async fn delete_app(&mut self, id: AppId) -> StoreResult<()>;
}

/// Grants of accounts to apps, with their authorization codes and tokens.
#[async_trait]
pub trait GrantRepository: Send {
    /// Returns one grant of a tenant.
    async fn grant(&mut self, tenant: TenantId, id: GrantId) -> StoreResult<Option<Grant>>;

    /// Returns the grant of a tenant to an app.
    async fn grant_to(&mut self, tenant: TenantId, app: AppId) -> StoreResult<Option<Grant>>;

    /// Returns the first `limit` grants of a tenant, oldest first.
    async fn grants(&mut self, tenant: TenantId, limit: u32) -> StoreResult<Vec<Grant>>;

    /// Returns the first `limit` grants of all tenants to an app, in the order of the tenants' ids.
    async fn grants_to(&mut self, app: AppId, limit: u32) -> StoreResult<Vec<Grant>>;

    /// Adds a grant. Fails with [`StoreError::Conflict`](crate::error::StoreError::Conflict) when the tenant has one to this app.
    async fn insert_grant(&mut self, grant: &Grant) -> StoreResult<()>;

    /// Stores the scopes of a grant, and who granted it last.
    async fn update_grant(&mut self, grant: &Grant) -> StoreResult<()>;

    /// Deletes a grant with all its codes and tokens.
    async fn delete_grant(&mut self, tenant: TenantId, id: GrantId) -> StoreResult<()>;

    /// Adds to the requests of grants, and stores when they were last used, which is never set back.
    async fn record_grant_uses(&mut self, uses: &[GrantUse]) -> StoreResult<()>;

    /// Adds a code with its SHA-256 digest.
    async fn insert_code(&mut self, code: &AuthorizationCode, code_hash: &[u8; 32]) -> StoreResult<()>;

    /// Returns the code with this digest, also if it has expired or was used.
    async fn code(&mut self, code_hash: &[u8; 32]) -> StoreResult<Option<AuthorizationCode>>;

    /// Marks a code as used.
    async fn use_code(&mut self, code_hash: &[u8; 32]) -> StoreResult<()>;

    /// Adds a token with its SHA-256 digest.
    async fn insert_token(&mut self, token: &Token, token_hash: &[u8; 32]) -> StoreResult<()>;

    /// Returns the token with this digest, also if it has expired.
    async fn token(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<Token>>;

    /// Stores when a token expires, and its successor.
    async fn update_token(&mut self, token: &Token, token_hash: &[u8; 32]) -> StoreResult<()>;

    /// Deletes all tokens that an authorization gave.
    async fn delete_tokens_of(&mut self, tenant: TenantId, authorization: AuthorizationId) -> StoreResult<()>;

    /// Returns whether a grant has a refresh token that has not expired at `now`.
    async fn has_refresh_token(&mut self, tenant: TenantId, grant: GrantId, now: Timestamp) -> StoreResult<bool>;

    /// Returns what authentication reads of the access token with this digest.
    async fn token_credential(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<TokenCredential>>;

    /// Deletes at most `limit` codes and at most `limit` tokens that expired before `before`, and returns how many rows it
    /// deleted.
    async fn delete_expired_tokens(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64>;
}
