//! Sessions of the dashboard: who is signed in, to what, and for how long.
//!
//! A session that a link began belongs to a tenant, or to none if an operator signed in. That of a [member](super::members)
//! belongs to the person, by email address: it shows one of the tenants that the address is a member of, with the role that
//! it has there at each request, and can change to another. A link for a member begins a session of the member in that tenant alone,
//! with the role at each request as well: a link proves no address. All can show the sandbox of their tenant in its place, with the
//! same role: a sandbox needs no members of its own. A session that was begun for a sandbox sees the sandbox alone.
//!
//! A session ends after twelve hours, after an hour without a request, or when it is revoked, which deletes it. One that a browser is
//! to remember ends after 30 days instead. Its token has 256 random bits, of which the store keeps the SHA-256
//! only. It is looked up for each request, so a revocation holds from the next request on.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::accounts::actor::Actor;
use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::dashboard_links::DashboardLink;
use crate::accounts::members::{self, Member, MemberId};
use crate::accounts::tenants::{self, Tenant};
use crate::crypto::{new_token, sha256};
use crate::error::Error;
use crate::store::Tx;
use crate::values::{Email, Id, Secret, TenantId, TextEnum, Timestamp};

/// How long a session lasts at most.
pub const SESSION_LIFETIME: Duration = Duration::from_secs(12 * 60 * 60);
/// How long a session lasts without a request, unless it is remembered.
pub const SESSION_IDLE: Duration = Duration::from_secs(60 * 60);
/// How long a session lasts that the browser is to remember, with and without requests. Those of operators are not remembered.
pub const REMEMBERED_SESSION_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How exactly the last use of a session is stored, so that few requests write.
const USE_INTERVAL: Duration = Duration::from_secs(60);
/// The number of sessions that a person has in an account. The next one ends the oldest.
pub const MAX_SESSIONS: usize = 20;
/// The most sessions that [`list`] returns.
pub const MAX_LISTED: u32 = 200;

/// The rights of a person in the dashboard. Each role has those of the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum Role {
    /// See everything except secrets.
    Viewer,
    /// Change records, take payments, manage webhooks and replay deliveries.
    Developer,
    /// Manage API keys, settings, members and sessions.
    Owner,
}

/// The id of a session.
pub type SessionId = Id<Session>;

/// A session, without its secret token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The id of the session.
    pub id: SessionId,
    /// The tenant that the session belongs to, or that a member has chosen. `None` for an operator, and for a member who
    /// has chosen none or is no longer a member of it.
    pub tenant_id: Option<TenantId>,
    /// The address of the person, which was verified. `None` for a session that a link began.
    pub email: Option<Email>,
    /// The role of the person in the tenant.
    pub role: Role,
    /// The person, as the audit log names them.
    pub identity: String,
    /// When the person signed in.
    pub created_at: Timestamp,
    /// When the session ends at the latest.
    pub expires_at: Timestamp,
    /// When the session was last used, exact to about a minute.
    pub last_used_at: Timestamp,
    /// The tenant that an operator looks at as its viewers do, or the sandbox of their tenant that other people look at.
    pub viewed_tenant_id: Option<TenantId>,
    /// The member whom a link signed in, whose session shows this tenant alone. `None` for all other sessions.
    pub member_id: Option<MemberId>,
}

impl Session {
    /// Returns the tenant whose pages the session shows, and the role it has there. An operator who looks at a tenant can
    /// change nothing of it. People have the role of their tenant in its sandbox as well.
    pub fn account(&self) -> Option<(TenantId, Role)> {
        match self.tenant_id {
            Some(tenant) => Some((self.viewed_tenant_id.unwrap_or(tenant), self.role)),
            None if self.is_operator() => self.viewed_tenant_id.map(|tenant| (tenant, Role::Viewer)),
            None => None,
        }
    }

    /// Returns the tenant that the session of its people shows. An operator who looks at a tenant is none of them.
    pub fn own_account(&self) -> Option<TenantId> {
        self.account().filter(|_| self.tenant_id.is_some()).map(|(tenant, _)| tenant)
    }

    /// Returns whether an operator signed in.
    pub fn is_operator(&self) -> bool {
        self.tenant_id.is_none() && self.email.is_none()
    }

    /// Returns the actor under which the audit log records what is done in this session.
    pub fn actor(&self) -> Actor {
        Actor::Dashboard(self.identity.clone())
    }

    /// Returns whether the session has not ended by itself.
    fn lasts(&self, now: Timestamp) -> bool {
        now < self.expires_at && (self.is_remembered() || now.since(self.last_used_at) < SESSION_IDLE)
    }

    /// Returns whether the session lasts for [`REMEMBERED_SESSION_LIFETIME`].
    pub fn is_remembered(&self) -> bool {
        self.lifetime() > SESSION_LIFETIME
    }

    /// Returns how long the session lasts at most, from its beginning on.
    pub fn lifetime(&self) -> Duration {
        self.expires_at.since(self.created_at)
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
pub(super) async fn begin_by_link(tx: &mut dyn Tx, link: DashboardLink, remembers: bool) -> Result<NewSession, Error> {
    let DashboardLink { tenant_id, role, identity, member_id, .. } = link;
    let remembers = remembers && tenant_id.is_some();
    let lifetime = if remembers { REMEMBERED_SESSION_LIFETIME } else { SESSION_LIFETIME };
    begin(tx, tenant_id, role, identity, Person { email: None, member_id }, lifetime).await
}

/// Begins the session of a person whose email address was verified. It shows the tenant that the address is a member of; of
/// several, the person chooses one with [`choose`].
///
/// # Errors
///
/// Returns [`Error::NotAllowed`] when the address is a member of no tenant.
pub async fn begin_of_member(tx: &mut dyn Tx, email: &Email) -> Result<NewSession, Error> {
    let memberships = members::of_email(tx, email).await?;
    let (tenant, role) = match memberships.as_slice() {
        [] => {
            let reason = format!("{email} is a member of no account. Ask an owner of the account to add this address.");
            return Err(Error::NotAllowed(reason));
        }
        [only] => (Some(only.tenant_id), only.role),
        _ => (None, Role::Viewer),
    };
    let person = Person { email: Some(Email::from_stored(&email.key())), member_id: None };
    begin(tx, tenant, role, email.key(), person, SESSION_LIFETIME).await
}

/// The facts about the person who signs in.
struct Person {
    email: Option<Email>,
    member_id: Option<MemberId>,
}

async fn begin(
    tx: &mut dyn Tx,
    tenant_id: Option<TenantId>,
    role: Role,
    identity: String,
    Person { email, member_id }: Person,
    lifetime: Duration,
) -> Result<NewSession, Error> {
    let now = tx.env().now();
    let session = Session {
        id: tx.env().id(now),
        tenant_id,
        email,
        role,
        identity,
        created_at: now,
        expires_at: now.checked_add(lifetime).unwrap_or(now),
        last_used_at: now,
        viewed_tenant_id: None,
        member_id,
    };
    let token = new_token(tx.env());
    tx.act_as(session.actor());
    make_room(tx, &session).await?;
    tx.insert_session(&session, &sha256(token.reveal().as_bytes())).await?;
    audit_change(tx, AuditAction::Create, None, Some(&session)).await?;
    Ok(NewSession { session, token })
}

/// Ends the oldest sessions of the person in a tenant, or without one, where there are [`MAX_SESSIONS`]: a person who signs in again
/// and again takes no room of others.
async fn make_room(tx: &mut dyn Tx, new: &Session) -> Result<(), Error> {
    let newest = tx.sessions(new.tenant_id, MAX_LISTED).await?;
    let person = |session: &Session| (session.identity.clone(), session.email.clone(), session.member_id);
    let own = newest.iter().filter(|session| person(session) == person(new));
    for oldest in own.skip(MAX_SESSIONS - 1) {
        end(tx, oldest).await?;
    }
    Ok(())
}

/// Returns the session with this token, unless it has ended.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn find(tx: &mut dyn Tx, token: &str) -> Result<Option<Session>, Error> {
    let now = tx.env().now();
    match tx.session_by_token(&sha256(token.as_bytes())).await? {
        Some(session) if session.lasts(now) => with_current_role(tx, session).await,
        _ => Ok(None),
    }
}

/// Gives the session of a member the role that the member has now. A person with a verified address who is no longer a member sees no
/// tenant; the session of a member whom a link signed in has ended then.
async fn with_current_role(tx: &mut dyn Tx, mut session: Session) -> Result<Option<Session>, Error> {
    if let (Some(tenant), Some(id)) = (session.tenant_id, session.member_id) {
        match tx.member(tenant, id).await? {
            Some(member) => session.role = member.role,
            None => return Ok(None),
        }
    }
    if let (Some(tenant), Some(email)) = (session.tenant_id, &session.email) {
        match tx.member_by_email(tenant, email).await? {
            Some(member) => session.role = member.role,
            None => (session.tenant_id, session.viewed_tenant_id) = (None, None),
        }
    }
    Ok(Some(session))
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
    Ok(tx.record_session_use(id, now).await?)
}

/// Returns the sessions of a tenant that have not ended, newest first, at most [`MAX_LISTED`]; or those that show none,
/// which are those of operators and of members who have chosen none.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn list(tx: &mut dyn Tx, tenant: Option<TenantId>) -> Result<Vec<Session>, Error> {
    let now = tx.env().now();
    let mut sessions = Vec::new();
    for session in tx.sessions(tenant, MAX_LISTED).await? {
        if session.lasts(now) {
            sessions.extend(with_current_role(tx, session).await?);
        }
    }
    sessions.retain(|session| session.tenant_id == tenant);
    Ok(sessions)
}

/// Returns the tenants that an address is a member of, each with the role that it has there, in the order of their names.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn accounts_of(tx: &mut dyn Tx, email: &Email) -> Result<Vec<(Tenant, Role)>, Error> {
    let mut accounts = Vec::new();
    for Member { tenant_id, role, .. } in members::of_email(tx, email).await? {
        accounts.push((tenants::get(tx, tenant_id).await?, role));
    }
    accounts.sort_by(|(a, _), (b, _)| (&a.name, a.id).cmp(&(&b.name, b.id)));
    Ok(accounts)
}

/// Lets the session of a member show a tenant that the address is a member of. The audit log of the tenant records it.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such session of a member, or the address is no member of the tenant.
pub async fn choose(tx: &mut dyn Tx, id: SessionId, tenant: TenantId) -> Result<Session, Error> {
    let mut session = tx.lock_session(id).await?.ok_or(Error::NotFound)?;
    let email = session.email.clone().ok_or(Error::NotFound)?;
    session.role = members::get_by_email(tx, tenant, &email).await?.role;
    let is_other = session.tenant_id != Some(tenant);
    (session.tenant_id, session.viewed_tenant_id) = (Some(tenant), None);
    if is_other {
        make_room(tx, &session).await?;
    }
    tx.update_session(&session).await?;
    if is_other {
        audit_change(tx, AuditAction::Create, None, Some(&session)).await?;
    }
    Ok(session)
}

/// Lets a session of a tenant show its sandbox, or the tenant itself again.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such session of a tenant, or the tenant has no sandbox.
pub async fn show_sandbox(tx: &mut dyn Tx, id: SessionId, sandbox: bool) -> Result<Session, Error> {
    let mut session = tx.lock_session(id).await?.ok_or(Error::NotFound)?;
    let tenant = session.tenant_id.ok_or(Error::NotFound)?;
    // Whoever deletes the sandbox ends the views of it, and locks the account.
    tx.lock_tenant(tenant).await?;
    let tenant = tenants::get(tx, tenant).await?;
    let viewed = if sandbox { Some(tenants::sandbox_of(tx, &tenant).await?.ok_or(Error::NotFound)?) } else { None };
    session.viewed_tenant_id = viewed.map(|sandbox| sandbox.id);
    tx.update_session(&session).await?;
    Ok(session)
}

/// Ends a session for the person who signed in. There may be none any more.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn sign_out(tx: &mut dyn Tx, id: SessionId) -> Result<(), Error> {
    match tx.lock_session(id).await? {
        Some(session) => end(tx, &session).await,
        None => Ok(()),
    }
}

/// Revokes a session of a tenant, or one that shows none.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such session.
pub async fn revoke(tx: &mut dyn Tx, tenant: Option<TenantId>, id: SessionId) -> Result<(), Error> {
    let session = tx.lock_session(id).await?.filter(|session| session.tenant_id == tenant).ok_or(Error::NotFound)?;
    end(tx, &session).await
}

/// Ends all sessions of a member that show a tenant, also those that a link of the member began, and returns how many there were.
/// Those that show another tenant go on.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn sign_out_everywhere(tx: &mut dyn Tx, tenant: TenantId, email: &Email) -> Result<usize, Error> {
    let ended = tx.take_sessions_of_member(Some(tenant), email).await?;
    for session in &ended {
        audit_change(tx, AuditAction::Revoke, Some(session), None).await?;
    }
    let by_link = match tx.member_by_email(tenant, email).await? {
        Some(member) => end_of_links(tx, tenant, member.id).await?,
        None => 0,
    };
    Ok(ended.len() + by_link)
}

/// Ends the sessions that links of a member began, and returns how many there were.
async fn end_of_links(tx: &mut dyn Tx, tenant: TenantId, member: MemberId) -> Result<usize, Error> {
    let sessions = tx.sessions(Some(tenant), u32::MAX).await?;
    let of_member: Vec<_> = sessions.iter().filter(|session| session.member_id == Some(member)).collect();
    for session in &of_member {
        end(tx, session).await?;
    }
    Ok(of_member.len())
}

/// Ends the sessions with which a member who was removed from a tenant could see it if they were added again: those that show
/// it, and those that show none, which could choose it. Those that a link began end as well, and would not be found either.
pub(super) async fn end_of_removed_member(tx: &mut dyn Tx, tenant: TenantId, member: &Member) -> Result<(), Error> {
    sign_out_everywhere(tx, tenant, &member.email).await?;
    tx.take_sessions_of_member(None, &member.email).await?;
    end_of_links(tx, tenant, member.id).await?;
    Ok(())
}

async fn end(tx: &mut dyn Tx, session: &Session) -> Result<(), Error> {
    tx.delete_session(session.id).await?;
    audit_change(tx, AuditAction::Revoke, Some(session), None).await
}

/// Lets an operator look at a tenant as its viewers do, or no longer at any. The audit log of the tenant records it.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is no such session of an operator, or no such tenant.
pub async fn view(tx: &mut dyn Tx, id: SessionId, tenant: Option<TenantId>) -> Result<Session, Error> {
    let mut session = tx.lock_session(id).await?.filter(Session::is_operator).ok_or(Error::NotFound)?;
    if let Some(tenant) = tenant {
        tx.lock_tenant(tenant).await?;
        let viewed = tenants::get(tx, tenant).await?;
        audit::record(tx, tenant, AuditAction::View, Object { kind: audit::TENANT, id: tenant.0 }, None, Some(&viewed))
            .await?;
    }
    session.viewed_tenant_id = tenant;
    tx.update_session(&session).await?;
    Ok(session)
}

async fn audit_change(
    tx: &mut dyn Tx,
    action: AuditAction,
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
