//! Links that sign a person in to the dashboard: each works once, for ten minutes, or for seven days if it is an invitation.
//!
//! An operator makes one with `svc dashboard link`, and an application for a person that it knows already. The link has 256
//! random bits, of which the store keeps the SHA-256 only. Using it deletes it and begins a [session](super::sessions).
//!
//! A link for a [member](super::members) signs in as that member, with the role that the member has by then. It proves no email
//! address, since anybody can have got it: its session sees the one account. It ends when the member is removed.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::members::{self, Member, MemberId};
use crate::accounts::sessions::{self, NewSession, Role};
use crate::accounts::tenants;
use crate::crypto::{new_token, sha256};
use crate::error::Error;
use crate::store::Tx;
use crate::values::{Email, Id, Secret, TenantId, Timestamp};

/// How long a link can be used.
pub const LINK_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// How long the link of an invitation can be used.
pub const INVITATION_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The longest name of a person that a link can have, in characters.
pub const MAX_IDENTITY: usize = 200;

/// The id of a link.
pub type DashboardLinkId = Id<DashboardLink>;

/// A link that was made and not used yet, without its secret token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DashboardLink {
    /// The id of the link, for the audit log.
    pub id: DashboardLinkId,
    /// The tenant that the link signs in to. `None` for one that signs an operator in.
    pub tenant_id: Option<TenantId>,
    /// The role of the person.
    pub role: Role,
    /// The person, as the audit log names them: `owner@link`, or a name that an application gave.
    pub identity: String,
    /// When the link was made.
    pub created_at: Timestamp,
    /// When the link stops working.
    pub expires_at: Timestamp,
    /// The member whom the link signs in. `None` for a link that is for no member.
    pub member_id: Option<MemberId>,
}

/// The settings of a new link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DashboardLinkCreate {
    tenant_id: Option<TenantId>,
    role: Role,
    identity: Option<String>,
    email: Option<Email>,
    lifetime: Duration,
}

impl DashboardLinkCreate {
    /// Returns the settings of a link that signs a person in to a tenant.
    pub fn to(tenant: TenantId, role: Role) -> Self {
        Self { tenant_id: Some(tenant), role, identity: None, email: None, lifetime: LINK_LIFETIME }
    }

    /// Returns the settings of a link that signs in the member of a tenant with this address, with the role of the member.
    pub fn to_member(tenant: TenantId, email: Email) -> Self {
        Self { email: Some(email), ..Self::to(tenant, Role::Viewer) }
    }

    /// Returns the settings of a link that signs an operator in, who sees all tenants.
    pub fn for_operator() -> Self {
        Self { tenant_id: None, role: Role::Owner, identity: None, email: None, lifetime: LINK_LIFETIME }
    }

    /// Sets the name under which the audit log records what the person does, such as a mail address. At most 200
    /// characters are kept.
    #[must_use]
    pub fn identity(mut self, identity: &str) -> Self {
        self.identity = Some(identity.chars().filter(|c| !c.is_control()).take(MAX_IDENTITY).collect());
        self
    }

    /// Sets how long the link signs in, in place of [`LINK_LIFETIME`].
    #[must_use]
    pub fn valid_for(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime;
        self
    }
}

/// A new link with its token, which is shown once and not stored.
#[derive(Clone, Debug)]
pub struct NewDashboardLink {
    /// The stored record of the link.
    pub link: DashboardLink,
    /// The secret token of the link.
    pub token: Secret,
}

impl NewDashboardLink {
    /// Returns the URL to open, at a server whose API is at `base`, such as `https://api.example.com`.
    pub fn url(&self, base: &str) -> String {
        format!("{}/dashboard/sign-in?token={}", base.trim_end_matches('/'), self.token.reveal())
    }
}

/// Makes a link.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when the tenant does not exist, and [`Error::NotAllowed`] when it has no member with the address.
pub async fn create(tx: &mut dyn Tx, input: DashboardLinkCreate) -> Result<NewDashboardLink, Error> {
    let DashboardLinkCreate { tenant_id, role, identity, email, lifetime } = input;
    if let Some(tenant) = tenant_id {
        tenants::get(tx, tenant).await?;
    }
    let member = match tenant_id.zip(email) {
        Some((tenant, email)) => Some(member_with(tx, tenant, &email).await?),
        None => None,
    };
    let role = member.as_ref().map_or(role, |member| member.role);
    let identity = member.as_ref().map(|member| member.email.to_string()).or(identity);
    let now = tx.env().now();
    let kind = if tenant_id.is_some() { role.as_str() } else { "operator" };
    let link = DashboardLink {
        id: tx.env().id(now),
        tenant_id,
        role,
        identity: identity.filter(|name| !name.is_empty()).unwrap_or_else(|| format!("{kind}@link")),
        created_at: now,
        expires_at: now.checked_add(lifetime).unwrap_or(now),
        member_id: member.map(|member| member.id),
    };
    let token = new_token(tx.env());
    tx.insert_dashboard_link(&link, &sha256(token.reveal().as_bytes())).await?;
    if let Some(tenant) = tenant_id {
        let object = Object { kind: "dashboard_link", id: link.id.uuid() };
        audit::record(tx, tenant, AuditAction::Create, object, None, Some(&link)).await?;
    }
    Ok(NewDashboardLink { link, token })
}

/// Returns the member with an address, or says how to add one.
async fn member_with(tx: &mut dyn Tx, tenant: TenantId, email: &Email) -> Result<Member, Error> {
    match members::get_by_email(tx, tenant, email).await {
        Err(Error::NotFound) => Err(Error::NotAllowed(format!(
            "{email} is not a member of the account. Add the member first: with `svc member add`, with POST \
                 /accounts/{{account}}/members, or in the dashboard under Settings."
        ))),
        found => found,
    }
}

/// Returns whether a text has the form of the token of a link: 43 characters of base64url.
pub fn is_token(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Uses a link up, and begins the session that it is for. With `remembers`, one of an account lasts for
/// [`REMEMBERED_SESSION_LIFETIME`](sessions::REMEMBERED_SESSION_LIFETIME).
///
/// # Errors
///
/// Returns [`Error::NotAllowed`] when there is no such link, when it was used, when it has expired, or when its member was removed.
pub async fn sign_in(tx: &mut dyn Tx, token: &str, remembers: bool) -> Result<NewSession, Error> {
    let link = tx.take_dashboard_link(&sha256(token.as_bytes())).await?;
    let now = tx.env().now();
    let Some(mut link) = link.filter(|link| now < link.expires_at) else {
        return Err(Error::NotAllowed("The link was used already or has expired. Ask for a new one.".to_owned()));
    };
    if let (Some(tenant), Some(id)) = (link.tenant_id, link.member_id) {
        let Some(member) = tx.member(tenant, id).await? else {
            let reason =
                format!("{} is no longer a member of the account. Ask an owner of the account.", link.identity);
            return Err(Error::NotAllowed(reason));
        };
        link.role = member.role;
    }
    sessions::begin_by_link(tx, link, remembers).await
}
