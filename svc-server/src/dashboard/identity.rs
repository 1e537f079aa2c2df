//! People whom the application has signed in that mounts the API.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::request::Parts;
use svc_core::Svc;
use svc_core::accounts::dashboard_links::MAX_IDENTITY;
use svc_core::accounts::sessions::{Role, Session};
use svc_core::error::Error;
use svc_core::values::{Id, Secret, TenantId, Timestamp};

use super::cookies;

/// Tells who asks for a page of the dashboard; see [`Builder::dashboard_identity`](crate::Builder::dashboard_identity).
pub type Identify = Arc<dyn for<'a> Fn(&'a Parts) -> BoxFuture<'a, Option<Identity>> + Send + Sync>;

/// Finds out who asks for a page.
pub(super) struct People {
    svc: Svc,
    identify: Option<Identify>,
}

impl People {
    pub(super) fn new(svc: Svc, identify: Option<Identify>) -> Self {
        Self { svc, identify }
    }

    /// Returns the session of whom the application says that they ask, otherwise that of the cookie, and the secret that its
    /// forms are made with. A use of a stored session keeps it alive.
    pub(super) async fn find(&self, parts: &Parts, is_use: bool) -> Result<Option<(Session, String)>, Error> {
        if let Some(identify) = &self.identify
            && let Some(identity) = identify(parts).await
        {
            return Ok(identity.into_session(self.svc.store().env().now()));
        }
        let Some(token) = cookies::session_token(parts) else { return Ok(None) };
        let sessions = self.svc.dashboard();
        let found = if is_use { sessions.use_session(&token).await? } else { sessions.find_session(&token).await? };
        Ok(found.map(|session| (session, token)))
    }
}

/// A person whom the application has signed in.
#[derive(Clone, Debug)]
pub struct Identity {
    tenant: TenantId,
    role: Role,
    name: String,
    session: Secret,
}

impl Identity {
    /// Returns a person who sees a tenant with a role. The audit log names them `name`, of which at most 200 characters are
    /// kept.
    ///
    /// `session` is a secret of the person's session in the application that no other site can know, such as its token.
    /// Forms of the dashboard contain a digest under it and are refused otherwise, so another site cannot send them. It must
    /// not be empty.
    pub fn new(tenant: TenantId, role: Role, name: &str, session: &str) -> Self {
        let name = name.chars().filter(|c| !c.is_control()).take(MAX_IDENTITY).collect();
        Self { tenant, role, name, session: Secret::new(session) }
    }

    /// Returns a session that lasts for one request and is not stored, and the secret of its forms. `None` without a secret.
    pub(super) fn into_session(self, now: Timestamp) -> Option<(Session, String)> {
        let Self { tenant, role, name, session: secret } = self;
        if secret.reveal().is_empty() {
            tracing::error!(
                identity = name,
                "the application gave an identity without the secret of a session, which the dashboard refuses"
            );
            return None;
        }
        let session = Session {
            id: Id::nil(),
            tenant_id: Some(tenant),
            email: None,
            role,
            identity: name,
            created_at: now,
            expires_at: now,
            last_used_at: now,
            viewed_tenant_id: None,
            member_id: None,
        };
        Some((session, secret.reveal().to_owned()))
    }
}
