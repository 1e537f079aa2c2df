//! Sessions of the dashboard: who is signed in, to what, and for how long.
//!
//! A session belongs to a tenant, or to none if an operator signed in. It ends after twelve hours, after an hour without a
//! request, or when it is revoked, which deletes it. Its token has 256 random bits, of which the store keeps the SHA-256
//! only. It is looked up for each request, so a revocation holds from the next request on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::accounts::audit::{self, Actor, Object};
use crate::accounts::dashboard_links::DashboardLink;
use crate::accounts::tenants;
use crate::crypto::{new_token, sha256};
use crate::error::Error;
use crate::store::Tx;
use crate::values::{Id, Secret, TenantId, TextEnum, Timestamp};

/// How long a session lasts at most.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// How long a session lasts without a request.
pub const SESSION_IDLE: Duration = Duration::from_secs(60 * 60);
/// How exactly the last use of a session is stored, so that few requests write.
const USE_INTERVAL: Duration = Duration::from_secs(60);
/// The most sessions that [`list`] returns.
pub const MAX_LISTED: u32 = 200;

/// What a person may do in the dashboard. Each role may do what those before it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum Role {
    /// See everything except secrets.
    Viewer,
    /// Manage webhooks, and replay deliveries.
    Developer,
    /// Manage API keys, settings and sessions.
    Owner,
}

/// The id of a session.
pub type SessionId = Id<Session>;

/// A session, without its secret token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The id of the session.
    pub id: SessionId,
    /// The tenant that the session belongs to. `None` for a session of an operator.
    pub tenant_id: Option<TenantId>,
    /// What the person may do.
    pub role: Role,
    /// The person, as the audit log names them.
    pub identity: String,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// When the session ends at the latest.
    pub expires_at: Timestamp,
    /// When the session was last used, exact to about a minute.
    pub last_used_at: Timestamp,
    /// The tenant that an operator looks at as its viewers do.
    pub viewed_tenant_id: Option<TenantId>,
}

impl Session {
    /// Returns the tenant whose pages the session shows, and the role it has there. An operator who looks at a tenant can
    /// change nothing of it.
    pub fn account(&self) -> Option<(TenantId, Role)> {
        match self.tenant_id {
            Some(tenant) => Some((tenant, self.role)),
            None => self.viewed_tenant_id.map(|tenant| (tenant, Role::Viewer)),
        }
    }

    /// Returns whether an operator signed in.
    pub fn is_operator(&self) -> bool {
        self.tenant_id.is_none()
    }

    /// Returns the actor under which the audit log records what is done in this session.
    pub fn actor(&self) -> Actor {
        Actor::Dashboard(self.identity.clone())
    }

    /// Returns whether the session has not ended by itself.
    fn lasts(&self, now: Timestamp) -> bool {
        now < self.expires_at && now.since(self.last_used_at) < SESSION_IDLE
    }
}

/// A new session with its token, which the browser keeps and nobody stores.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The stored record of the session.
    pub session: Session,
    /// The secret token of the session.
    pub token: Secret,
}

/// Begins the session that a link is for.
pub(super) async fn begin(tx: &mut dyn Tx, link: DashboardLink) -> Result<NewSession, Error> {
    let now = tx.env().now();
    let session = Session {
        id: tx.env().id(now),
        tenant_id: link.tenant_id,
        role: link.role,
        identity: link.identity,
        created_at: now,
        expires_at: now.checked_add(SESSION_LIFETIME).unwrap_or(now),
        last_used_at: now,
        viewed_tenant_id: None,
    };
    let token = new_token(tx.env());
    tx.insert_session(&session, &sha256(token.reveal().as_bytes())).await?;
    tx.act_as(session.actor());
    audit_change(tx, "create", None, Some(&session)).await?;
    Ok(NewSession { session, token })
}

/// Returns the session with this token, unless it has ended.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn find(tx: &mut dyn Tx, token: &str) -> Result<Option<Session>, Error> {
    let found = tx.session_by_token(&sha256(token.as_bytes())).await?;
    let now = tx.env().now();
    Ok(found.filter(|session| session.lasts(now)))
}

/// Returns whether the last use of a session has to be stored by [`record_use`].
pub fn is_use_due(session: &Session, now: Timestamp) -> bool {
    now.since(session.last_used_at) >= USE_INTERVAL
}

/// Stores that a session is used now.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn record_use(tx: &mut dyn Tx, id: SessionId) -> Result<(), Error> {
    let now = tx.env().now();
    if let Some(mut session) = tx.session(id).await?
        && session.last_used_at < now
    {
        session.last_used_at = now;
        tx.update_session(&session).await?;
    }
    Ok(())
}

/// Returns the sessions of a tenant, or of the operators, that have not ended, newest first, at most [`MAX_LISTED`].
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn list(tx: &mut dyn Tx, tenant: Option<TenantId>) -> Result<Vec<Session>, Error> {
    let now = tx.env().now();
    let mut sessions = tx.sessions(tenant, MAX_LISTED).await?;
    sessions.retain(|session| session.lasts(now));
    Ok(sessions)
}

/// Revokes a session of a tenant, or of an operator.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such session.
pub async fn revoke(tx: &mut dyn Tx, tenant: Option<TenantId>, id: SessionId) -> Result<(), Error> {
    let session = tx.session(id).await?.filter(|session| session.tenant_id == tenant).ok_or(Error::NotFound)?;
    tx.delete_session(id).await?;
    audit_change(tx, "revoke", Some(&session), None).await
}

/// Lets an operator look at a tenant as its viewers do, or no longer at any. The audit log of the tenant records it.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such session of an operator, or no such tenant.
pub async fn view(tx: &mut dyn Tx, id: SessionId, tenant: Option<TenantId>) -> Result<Session, Error> {
    let mut session = tx.session(id).await?.filter(Session::is_operator).ok_or(Error::NotFound)?;
    if let Some(tenant) = tenant {
        let viewed = tenants::get(tx, tenant).await?;
        audit::record(tx, tenant, "view", Object { kind: "tenant", id: tenant.0 }, None, Some(&viewed)).await?;
    }
    session.viewed_tenant_id = tenant;
    tx.update_session(&session).await?;
    Ok(session)
}

async fn audit_change(
    tx: &mut dyn Tx,
    action: &'static str,
    before: Option<&Session>,
    after: Option<&Session>,
) -> Result<(), Error> {
    match after.or(before) {
        Some(Session { id, tenant_id: Some(tenant), .. }) => {
            audit::record(tx, *tenant, action, Object { kind: "session", id: id.uuid() }, before, after).await
        }
        // The audit log belongs to tenants.
        _ => Ok(()),
    }
}
