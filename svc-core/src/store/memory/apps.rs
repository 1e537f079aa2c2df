//! Apps, and what accounts granted them.

use async_trait::async_trait;

use super::{MemoryTx, conflict, insert, of_tenant};
use crate::accounts::apps::{App, AppId};
use crate::accounts::grants::{AuthorizationCode, AuthorizationId, Grant, GrantId, GrantUse, Token, TokenCredential};
use crate::store::{AppRepository, GrantRepository, StoreResult};
use crate::values::{TenantId, Timestamp};

#[async_trait]
impl AppRepository for MemoryTx<'_> {
    async fn app(&mut self, id: AppId) -> StoreResult<Option<App>> {
        Ok(self.state.apps.get(&id).cloned())
    }

    async fn lock_app(&mut self, id: AppId) -> StoreResult<Option<App>> {
        self.app(id).await
    }

    async fn app_by_client_id(&mut self, client_id: &str) -> StoreResult<Option<App>> {
        Ok(self.state.apps.values().find(|app| app.client_id == client_id).cloned())
    }

    async fn apps(&mut self, owner: Option<TenantId>) -> StoreResult<Vec<App>> {
        Ok(self.state.apps.values().filter(|app| app.tenant_id == owner).cloned().collect())
    }

    async fn insert_app(&mut self, app: &App) -> StoreResult<()> {
        if self.app_by_client_id(&app.client_id).await?.is_some() {
            return Err(conflict("client_id"));
        }
        insert(&mut self.state_mut()?.apps, app.id, app)
    }

    async fn update_app(&mut self, app: &App) -> StoreResult<()> {
        self.state_mut()?.apps.change(&app.id, |stored| stored.clone_from(app));
        Ok(())
    }

    async fn delete_app(&mut self, id: AppId) -> StoreResult<()> {
        self.state_mut()?.apps.take(&id);
        Ok(())
    }
}

#[async_trait]
impl GrantRepository for MemoryTx<'_> {
    async fn grant(&mut self, tenant: TenantId, id: GrantId) -> StoreResult<Option<Grant>> {
        Ok(self.state.grants.get(&(tenant, id)).cloned())
    }

    async fn grant_to(&mut self, tenant: TenantId, app: AppId) -> StoreResult<Option<Grant>> {
        Ok(of_tenant(&self.state.grants, tenant).find(|grant| grant.app_id == app).cloned())
    }

    async fn grants(&mut self, tenant: TenantId, limit: u32) -> StoreResult<Vec<Grant>> {
        Ok(of_tenant(&self.state.grants, tenant).take(limit as usize).cloned().collect())
    }

    async fn grants_to(&mut self, app: AppId, limit: u32) -> StoreResult<Vec<Grant>> {
        let grants = self.state.grants.values().filter(|grant| grant.app_id == app);
        Ok(grants.take(limit as usize).cloned().collect())
    }

    async fn insert_grant(&mut self, grant: &Grant) -> StoreResult<()> {
        if self.grant_to(grant.tenant_id, grant.app_id).await?.is_some() {
            return Err(conflict("app_id"));
        }
        insert(&mut self.state_mut()?.grants, (grant.tenant_id, grant.id), grant)
    }

    async fn update_grant(&mut self, grant: &Grant) -> StoreResult<()> {
        self.state_mut()?.grants.change(&(grant.tenant_id, grant.id), |stored| {
            stored.scopes.clone_from(&grant.scopes);
            stored.member.clone_from(&grant.member);
        });
        Ok(())
    }

    async fn delete_grant(&mut self, tenant: TenantId, id: GrantId) -> StoreResult<()> {
        let state = self.state_mut()?;
        state.grants.take(&(tenant, id));
        state.codes.take_first(u32::MAX, |_, code| code.tenant_id == tenant && code.grant_id == id);
        state.tokens.take_first(u32::MAX, |_, token| token.tenant_id == tenant && token.grant_id == id);
        Ok(())
    }

    async fn record_grant_uses(&mut self, uses: &[GrantUse]) -> StoreResult<()> {
        for GrantUse { tenant_id, grant_id, used_at, requests } in uses {
            self.state_mut()?.grants.change(&(*tenant_id, *grant_id), |grant| {
                grant.last_used_at = grant.last_used_at.max(Some(*used_at));
                grant.requests += requests;
            });
        }
        Ok(())
    }

    async fn insert_code(&mut self, code: &AuthorizationCode, code_hash: &[u8; 32]) -> StoreResult<()> {
        insert(&mut self.state_mut()?.codes, *code_hash, code)
    }

    async fn code(&mut self, code_hash: &[u8; 32]) -> StoreResult<Option<AuthorizationCode>> {
        Ok(self.state.codes.get(code_hash).cloned())
    }

    async fn use_code(&mut self, code_hash: &[u8; 32]) -> StoreResult<()> {
        self.state_mut()?.codes.change(code_hash, |code| code.is_used = true);
        Ok(())
    }

    async fn insert_token(&mut self, token: &Token, token_hash: &[u8; 32]) -> StoreResult<()> {
        insert(&mut self.state_mut()?.tokens, *token_hash, token)
    }

    async fn token(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<Token>> {
        Ok(self.state.tokens.get(token_hash).cloned())
    }

    async fn update_token(&mut self, token: &Token, token_hash: &[u8; 32]) -> StoreResult<()> {
        self.state_mut()?.tokens.change(token_hash, |stored| {
            stored.expires_at = token.expires_at;
            stored.successor = token.successor;
            stored.replaced_at = token.replaced_at;
        });
        Ok(())
    }

    async fn delete_tokens_of(&mut self, tenant: TenantId, authorization: AuthorizationId) -> StoreResult<()> {
        let is_of = |token: &Token| token.tenant_id == tenant && token.authorization == authorization;
        self.state_mut()?.tokens.take_first(u32::MAX, |_, token| is_of(token));
        Ok(())
    }

    async fn has_refresh_token(&mut self, tenant: TenantId, grant: GrantId, now: Timestamp) -> StoreResult<bool> {
        let mut tokens = self.state.tokens.values();
        Ok(tokens.any(|token| {
            token.tenant_id == tenant && token.grant_id == grant && token.is_refresh && now < token.expires_at
        }))
    }

    async fn token_credential(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<TokenCredential>> {
        let state = &self.state;
        let Some(token) = state.tokens.get(token_hash).filter(|token| !token.is_refresh) else { return Ok(None) };
        let (Some(app), Some(tenant)) = (state.apps.get(&token.app_id), state.tenants.get(&token.tenant_id)) else {
            return Ok(None);
        };
        Ok(Some(TokenCredential {
            grant_id: token.grant_id,
            app_id: token.app_id,
            tenant_id: token.tenant_id,
            writes: token.writes,
            expires_at: token.expires_at,
            resource: token.resource.clone(),
            is_disabled: app.disabled_at.is_some(),
            developer_access: tenant.developer_access,
            limits: tenant.limits,
        }))
    }

    async fn delete_expired_tokens(&mut self, before: Timestamp, limit: u32) -> StoreResult<u64> {
        let state = self.state_mut()?;
        let codes = state.codes.take_first(limit, |_, code| code.expires_at < before);
        Ok(codes + state.tokens.take_first(limit, |_, token| token.expires_at < before))
    }
}
