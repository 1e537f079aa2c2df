//! The tables of the links and the sessions of the dashboard.

use std::sync::LazyLock;

use async_trait::async_trait;
use svc_core::accounts::dashboard_links::DashboardLink;
use svc_core::accounts::sessions::{Session, SessionId};
use svc_core::store::{SignInRepository, StoreResult};
use svc_core::values::{Email, TenantId, Timestamp};

use crate::column::Column as _;
use crate::sql::SqlTx;
use crate::table::{TableRow, fields, record, select};

record!(DashboardLink, "dashboard_links", key: [token_hash], {
    extra: [token_hash: [u8; 32]],
    inserted: [id, tenant_id, role, identity, created_at, expires_at, member_id],
    updated: [],
});

record!(Session, "dashboard_sessions", key: [id], {
    extra: [token_hash: [u8; 32]],
    inserted: [id, email, identity, created_at, expires_at, last_used_at, member_id],
    updated: [tenant_id, role, viewed_tenant_id],
});

static TAKE_LINK: LazyLock<String> = LazyLock::new(|| {
    format!("DELETE FROM dashboard_links WHERE token_hash = $1 RETURNING {}", fields::<DashboardLink>(""))
});
static BY_TOKEN: LazyLock<String> = LazyLock::new(|| select::<Session>("WHERE token_hash = $1"));
static OF_TENANT: LazyLock<String> =
    LazyLock::new(|| select::<Session>("WHERE tenant_id = $1 ORDER BY id DESC LIMIT $2"));
static WITHOUT_TENANT: LazyLock<String> =
    LazyLock::new(|| select::<Session>("WHERE tenant_id IS NULL ORDER BY id DESC LIMIT $1"));
static TAKE_OF_MEMBER: LazyLock<String> = LazyLock::new(|| {
    format!("DELETE FROM dashboard_sessions WHERE tenant_id = $1 AND email = $2 RETURNING {}", fields::<Session>(""))
});
static TAKE_OF_MEMBER_WITHOUT_TENANT: LazyLock<String> = LazyLock::new(|| {
    format!("DELETE FROM dashboard_sessions WHERE tenant_id IS NULL AND email = $1 RETURNING {}", fields::<Session>(""))
});
const RECORD_USE: &str = "UPDATE dashboard_sessions SET last_used_at = $1 WHERE id = $2 AND last_used_at < $1";
const DELETE_SESSION: &str = "DELETE FROM dashboard_sessions WHERE id = $1";
const DELETE_EXPIRED: [&str; 2] = [
    "DELETE FROM dashboard_links WHERE token_hash IN \
     (SELECT token_hash FROM dashboard_links WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)",
    "DELETE FROM dashboard_sessions WHERE id IN \
     (SELECT id FROM dashboard_sessions WHERE expires_at < $1 ORDER BY expires_at LIMIT $2)",
];

#[cfg(test)]
pub(crate) fn statements() -> Vec<&'static str> {
    let mut all = vec![TAKE_LINK.as_str(), &BY_TOKEN, &OF_TENANT, &WITHOUT_TENANT, RECORD_USE, DELETE_SESSION];
    all.extend(DELETE_EXPIRED);
    all.extend([TAKE_OF_MEMBER.as_str(), &TAKE_OF_MEMBER_WITHOUT_TENANT]);
    all.extend(DashboardLink::statements().all());
    all.extend(Session::statements().all());
    all
}

#[async_trait]
impl SignInRepository for SqlTx<'_> {
    async fn insert_dashboard_link(&mut self, link: &DashboardLink, token_hash: &[u8; 32]) -> StoreResult<()> {
        self.insert_record(&[token_hash.param()], link).await
    }

    async fn take_dashboard_link(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<DashboardLink>> {
        self.fetch_one(&TAKE_LINK, &[token_hash.param()], DashboardLink::read).await
    }

    async fn insert_session(&mut self, session: &Session, token_hash: &[u8; 32]) -> StoreResult<()> {
        self.insert_record(&[token_hash.param()], session).await
    }

    async fn session_by_token(&mut self, token_hash: &[u8; 32]) -> StoreResult<Option<Session>> {
        self.fetch_one(&BY_TOKEN, &[token_hash.param()], Session::read).await
    }

    async fn lock_session(&mut self, id: SessionId) -> StoreResult<Option<Session>> {
        self.lock_record(id.uuid()).await
    }

    async fn sessions(&mut self, tenant: Option<TenantId>, limit: u32) -> StoreResult<Vec<Session>> {
        match tenant {
            Some(tenant) => self.fetch(&OF_TENANT, &[tenant.param(), limit.param()], Session::read).await,
            None => self.fetch(&WITHOUT_TENANT, &[limit.param()], Session::read).await,
        }
    }

    async fn update_session(&mut self, session: &Session) -> StoreResult<()> {
        self.update_record(session, &[session.id.param()]).await
    }

    async fn record_session_use(&mut self, id: SessionId, at: Timestamp) -> StoreResult<()> {
        self.pipeline(RECORD_USE, &[at.param(), id.param()]).await
    }

    async fn delete_session(&mut self, id: SessionId) -> StoreResult<()> {
        self.pipeline(DELETE_SESSION, &[id.param()]).await
    }

    async fn take_sessions_of_member(&mut self, tenant: Option<TenantId>, email: &Email) -> StoreResult<Vec<Session>> {
        match tenant {
            Some(tenant) => self.fetch(&TAKE_OF_MEMBER, &[tenant.param(), email.param()], Session::read).await,
            None => self.fetch(&TAKE_OF_MEMBER_WITHOUT_TENANT, &[email.param()], Session::read).await,
        }
    }

    async fn delete_expired_sign_ins(&mut self, now: Timestamp, limit: u32) -> StoreResult<u64> {
        let mut deleted = 0;
        for sql in DELETE_EXPIRED {
            deleted += self.execute(sql, &[now.param(), limit.param()]).await?;
        }
        Ok(deleted)
    }
}
