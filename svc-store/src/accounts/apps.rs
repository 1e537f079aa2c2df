//! The tables of apps, of the grants of accounts to them, and of their codes and tokens.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::apps::{App, AppId};
use svc_core::accounts::grants::{
    AuthorizationCode, AuthorizationId, Grant, GrantId, GrantUse, Token, TokenCredential,
};
use svc_core::store::{AppRepository, GrantRepository, StoreResult};
use svc_core::values::{TenantId, Timestamp};

use super::tenants::{CredentialStatements, TenantAccess};
use crate::column::{CellError, Column as _};
use crate::sql::{Cells, SqlTx};
use crate::table::{TableRow, record, select};

record!(App, "oauth_apps", key: [id], {
    inserted: [id, client_id, tenant_id, confidential, created_at, created_by],
    updated: [name, website, redirect_uris, scopes as can_write, disconnect_url, webhook_id, disabled_at, secret_hash, previous_hash,
        previous_until],
});

record!(Grant, "oauth_grants", key: [tenant_id, id], {
    inserted: [id, tenant_id, app_id, created_at, last_used_at, requests],
    updated: [scopes as can_write, member],
});

record!(AuthorizationCode, "oauth_codes", key: [code_hash], {
    extra: [code_hash: [u8; 32]],
    inserted: [id, tenant_id, grant_id, app_id, writes as can_write, redirect_uri, challenge, resource, expires_at],
    updated: [is_used],
});

record!(Token, "oauth_tokens", key: [token_hash], {
    extra: [token_hash: [u8; 32]],
    inserted: [authorization as authorization_id, tenant_id, grant_id, app_id, is_refresh, writes as can_write, resource,
        nonce],
    updated: [expires_at, successor, replaced_at],
});

static BY_CLIENT_ID: LazyLock<String> = LazyLock::new(|| select::<App>("WHERE client_id = $1"));
static OF_OWNER: LazyLock<String> = LazyLock::new(|| select::<App>("WHERE tenant_id = $1 ORDER BY id"));
static WITHOUT_OWNER: LazyLock<String> = LazyLock::new(|| select::<App>("WHERE tenant_id IS NULL ORDER BY id"));
const DELETE_APP: &str = "DELETE FROM oauth_apps WHERE id = $1";

static GRANT_TO: LazyLock<String> = LazyLock::new(|| select::<Grant>("WHERE tenant_id = $1 AND app_id = $2"));
static GRANTS: LazyLock<String> = LazyLock::new(|| select::<Grant>("WHERE tenant_id = $1 ORDER BY id LIMIT $2"));
static GRANTS_TO: LazyLock<String> =
    LazyLock::new(|| select::<Grant>("WHERE app_id = $1 ORDER BY tenant_id, id LIMIT $2"));
const DELETE_GRANT: [&str; 3] = [
    "DELETE FROM oauth_codes WHERE tenant_id = $1 AND grant_id = $2",
    "DELETE FROM oauth_tokens WHERE tenant_id = $1 AND grant_id = $2",
    "DELETE FROM oauth_grants WHERE tenant_id = $1 AND id = $2",
];
const RECORD_USE: &str = "UPDATE oauth_grants SET requests = requests + $1, \
     last_used_at = CASE WHEN last_used_at > $2 THEN last_used_at ELSE $2 END WHERE tenant_id = $3 AND id = $4";

static CODE: LazyLock<String> = LazyLock::new(|| select::<AuthorizationCode>("WHERE code_hash = $1"));
const USE_CODE: &str = "UPDATE oauth_codes SET is_used = TRUE WHERE code_hash = $1";
static TOKEN: LazyLock<String> = LazyLock::new(|| select::<Token>("WHERE token_hash = $1"));
const DELETE_TOKENS_OF: &str = "DELETE FROM oauth_tokens WHERE tenant_id = $1 AND authorization_id = $2";
const HAS_REFRESH_TOKEN: &str = "SELECT expires_at FROM oauth_tokens \
     WHERE tenant_id = $1 AND grant_id = $2 AND is_refresh = TRUE AND expires_at > $3 LIMIT 1";
const CREDENTIAL: CredentialStatements = CredentialStatements {
    joined: "SELECT k.grant_id, k.app_id, k.tenant_id, k.can_write, k.expires_at, k.resource, a.disabled_at, \
         t.developer_access, t.limits, t.sandbox_of FROM oauth_tokens k JOIN oauth_apps a ON a.id = k.app_id \
         JOIN tenants t ON t.id = k.tenant_id WHERE k.token_hash = $1 AND k.is_refresh = FALSE",
    alone: "SELECT k.grant_id, k.app_id, k.tenant_id, k.can_write, k.expires_at, k.resource, a.disabled_at \
         FROM oauth_tokens k JOIN oauth_apps a ON a.id = k.app_id WHERE k.token_hash = $1 AND k.is_refresh = FALSE",
};
const DELETE_EXPIRED: [&str; 2] = [
    "DELETE FROM oauth_codes WHERE code_hash IN \
     (SELECT code_hash FROM oauth_codes WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)",
    "DELETE FROM oauth_tokens WHERE token_hash IN \
     (SELECT token_hash FROM oauth_tokens WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)",
];

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let mut all = vec![BY_CLIENT_ID.as_str(), &OF_OWNER, &WITHOUT_OWNER, DELETE_APP, &GRANT_TO, &GRANTS, &GRANTS_TO];
    all.extend(DELETE_GRANT);
    all.extend([
        RECORD_USE,
        &CODE,
        USE_CODE,
        &TOKEN,
        DELETE_TOKENS_OF,
        HAS_REFRESH_TOKEN,
        CREDENTIAL.joined,
        CREDENTIAL.alone,
    ]);
    all.extend(DELETE_EXPIRED);
    all
}

/// Reads an access token, and returns its tenant and what makes a credential of both.
fn read_token(
    cells: &mut Cells<'_>,
) -> Result<(TenantId, impl FnOnce(TenantAccess) -> TokenCredential + use<>), CellError> {
    let (grant_id, app_id) = (cells.take("oauth_tokens", "grant_id")?, cells.take("oauth_tokens", "app_id")?);
    let (tenant_id, writes) = (cells.take("oauth_tokens", "tenant_id")?, cells.take("oauth_tokens", "can_write")?);
    let (expires_at, resource) = (cells.take("oauth_tokens", "expires_at")?, cells.take("oauth_tokens", "resource")?);
    let is_disabled = cells.take::<Option<Timestamp>>("oauth_apps", "disabled_at")?.is_some();
    let credential = move |TenantAccess { developer_access, limits, .. }| TokenCredential {
        grant_id,
        app_id,
        tenant_id,
        writes,
        expires_at,
        resource,
        is_disabled,
        developer_access,
        limits,
    };
    Ok((tenant_id, credential))
}

#[async_trait]
impl AppRepository for SqlTx<'_> {
    async fn app(&mut self, id: AppId) -> StoreResult<Option<App>> {
        self.get_record(&[id.param()]).await
    }

    async fn lock_app(&mut self, id: AppId) -> StoreResult<Option<App>> {
        self.lock_record(id.uuid()).await
    }

    async fn app_by_client_id(&mut self, client_id: &str) -> StoreResult<Option<App>> {
        self.fetch_one(&BY_CLIENT_ID, &[client_id.to_owned().param()], App::read).await
    }

    async fn apps(&mut self, owner: Option<TenantId>) -> StoreResult<Vec<App>> {
        match owner {
            Some(owner) => self.fetch(&OF_OWNER, &[owner.param()], App::read).await,
            None => self.fetch(&WITHOUT_OWNER, &[], App::read).await,
        }
    }

    async fn insert_app(&mut self, app: &App) -> StoreResult<()> {
        self.insert_record(&[], app).await
    }

    async fn update_app(&mut self, app: &App) -> StoreResult<()> {
        self.update_record(app, &[app.id.param()]).await
    }

    async fn delete_app(&mut self, id: AppId) -> StoreResult<()> {
        self.pipeline(DELETE_APP, &[id.param()]).await
    }
}

#[async_trait]
impl GrantRepository for SqlTx<'_> {
    async fn grant(&mut self, tenant: TenantId, id: GrantId) -> StoreResult<Option<Grant>> {
        self.get_record(&[tenant.param(), id.param()]).await
    }

    async fn grant_to(&mut self, tenant: TenantId, app: AppId) -> StoreResult<Option<Grant>> {
        self.fetch_one(&GRANT_TO, &[tenant.param(), app.param()], Grant::read).await
    }

    async fn grants(&mut self, tenant: TenantId, limit: u32) -> StoreResult<Vec<Grant>> {
        self.fetch(&GRANTS, &[tenant.param(), limit.param()], Grant::read).await
    }

    async fn grants_to(&mut self, app: AppId, limit: u32) -> StoreResult<Vec<Grant>> {
        self.fetch(&GRANTS_TO, &[app.param(), limit.param()], Grant::read).await
    }

    async fn insert_grant(&mut self, grant: &Grant) -> StoreResult<()> {
        self.insert_record(&[], grant).await
    }

    async fn update_grant(&mut self, grant: &Grant) -> StoreResult<()> {
        self.update_record(grant, &[grant.tenant_id.param(), grant.id.param()]).await
    }

    async fn delete_grant(&mut self, tenant: TenantId, id: GrantId) -> StoreResult<()> {
        for sql in DELETE_GRANT {
            self.pipeline(sql, &[tenant.param(), id.param()]).await?;
        }
        Ok(())
    }

    async fn record_grant_uses(&mut self, uses: &[GrantUse]) -> StoreResult<()> {
        // Always in the same order, so that two nodes never deadlock.
        let mut uses = uses.to_vec();
        uses.sort_unstable();
        for GrantUse { tenant_id, grant_id, used_at, requests } in &uses {
            let params = [requests.param(), used_at.param(), tenant_id.param(), grant_id.param()];
            self.pipeline(RECORD_USE, &params).await?;
        }
        Ok(())
    }

    async fn insert_code(&mut self, code: &AuthorizationCode, code_hash: &[u8; 32]) -> StoreResult<()> {
        self.insert_record(&[code_hash.param()], code).await
    }

    async fn code(&mut self, code_hash: &[u8; 32]) -> StoreResult<Option<AuthorizationCode>> {
        self.fetch_one(&CODE, &[code_hash.param()], AuthorizationCode::read).await
    }

    async fn use_code(&mut self, code_hash: &[u8; 32]) -> StoreResult<()> {
        self.pipeline(USE_CODE, &[code_hash.param()]).await
    }

    async fn insert_token(&mut self, token: &Token, token_hash: &[u8; 32]) -> StoreResult<()> {
        self.insert_record(&[token_hash.param()], token).await
    }

    async fn token(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<Token>> {
        self.fetch_one(&TOKEN, &[token_hash.param()], Token::read).await
    }

    async fn update_token(&mut self, token: &Token, token_hash: &[u8; 32]) -> StoreResult<()> {
        self.update_record(token, &[token_hash.param()]).await
    }

    async fn delete_tokens_of(&mut self, tenant: TenantId, authorization: AuthorizationId) -> StoreResult<()> {
        self.pipeline(DELETE_TOKENS_OF, &[tenant.param(), authorization.param()]).await
    }

    async fn has_refresh_token(&mut self, tenant: TenantId, grant: GrantId, now: Timestamp) -> StoreResult<bool> {
        let params = [tenant.param(), grant.param(), now.param()];
        let found: Option<Timestamp> =
            self.fetch_one(HAS_REFRESH_TOKEN, &params, |cells| cells.take("oauth_tokens", "expires_at")).await?;
        Ok(found.is_some())
    }

    async fn token_credential(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<TokenCredential>> {
        self.credential_with(&CREDENTIAL, token_hash, read_token).await
    }

    async fn delete_expired_tokens(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let mut deleted = 0;
        for sql in DELETE_EXPIRED {
            deleted += self.execute(sql, &[before.param(), limit.param()]).await?;
        }
        Ok(deleted)
    }
}
