//! People whom the application has signed in that mounts the API, and the pages that may show the dashboard in a frame.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::request::Parts;
use svc_core::Svc;
use svc_core::accounts::dashboard_links::MAX_IDENTITY;
use svc_core::accounts::sessions::{Role, Session};
use svc_core::error::Error;
use svc_core::values::{Id, Secret, TenantId, Timestamp};
use url::Url;

use super::context;

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
        let Some(token) = context::session_token(parts) else { return Ok(None) };
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
        };
        Some((session, secret.reveal().to_owned()))
    }
}

/// The origin of a page, such as `https://app.example.com`.
///
/// ```
/// use svc_server::dashboard::Origin;
/// assert!("https://app.example.com".parse::<Origin>().is_ok());
/// assert!("https://app.example.com/page".parse::<Origin>().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    /// Returns the origin as a browser writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Origin {
    type Err = &'static str;

    /// Reads an origin. It has no path, not even `/`, and is written as browsers write it.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_web = |url: &Url| matches!(url.scheme(), "http" | "https");
        // A policy separates its parts by characters that a host may have.
        let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:/[]_".contains(&byte));
        match Url::parse(text) {
            Ok(url) if is_plain && is_web(&url) && url.origin().ascii_serialization() == text => {
                Ok(Self(text.to_owned()))
            }
            _ => Err("must be an origin such as https://app.example.com, without a path"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        for good in
            ["https://app.example.com", "http://localhost:3000", "https://[::1]:8443", "https://xn--mller-kva.example"]
        {
            assert_eq!(good.parse::<Origin>().map(|origin| origin.0), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "*",
            "null",
            "app.example.com",
            "https://app.example.com/",
            "https://app.example.com/x",
            "https://APP.example.com",
            "https://app.example.com:443",
            "https://*.example.com",
            "https://a;script-src",
            "https://a b",
            "https://müller.example",
            "https://user@app.example.com",
            "ftp://app.example.com",
            "data:text/html,x",
            "https://a.example,https://b.example",
        ] {
            assert!(bad.parse::<Origin>().is_err(), "{bad}");
        }
    }
}
