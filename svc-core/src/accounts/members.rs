//! Members: the people who may sign in to the dashboard of a tenant with their email address, and the role of each.
//!
//! A member is an email address, in lower case, with a [`Role`]. A person who signs in with an address that an identity
//! provider has verified gets the role that the address has in a tenant, and each request looks it up again, so a change holds from the
//! next request on. An address may be a member of several tenants. A [link](super::dashboard_links) signs a member in without the
//! provider, to the one tenant.
//!
//! A tenant that has owners keeps one: its people cannot remove the last one or take its role away, so they cannot lock
//! themselves out. Operators and applications can.

use serde::{Deserialize, Serialize};

use crate::accounts::actor::Actor;
use crate::accounts::audit::{self, AuditAction, Object};
use crate::accounts::sessions::{self, Role};
use crate::accounts::tenants;
use crate::error::Error;
use crate::input::Record;
use crate::store::Tx;
use crate::values::{Email, Id, TenantId, Timestamp};

/// The most members that a tenant can have.
pub const MAX_MEMBERS: u32 = 500;
/// The most memberships of an address that [`of_email`] returns.
pub const MAX_MEMBERSHIPS: u32 = 500;

/// The id of a member.
pub type MemberId = Id<Member>;

/// A person who may sign in to the dashboard of an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, Record)]
pub struct Member {
    /// The unique identifier of the member, a UUID of version 7, which is also in the audit log.
    pub id: MemberId,
    /// The `id` of the account.
    pub tenant_id: TenantId,
    /// The email address with which the person signs in, in lower case. An account has an address once.
    pub email: Email,
    /// The role of the person.
    pub role: Role,
    /// When the member was added.
    pub created_at: Timestamp,
}

/// Adds a member.
///
/// # Errors
///
/// Returns [`Error::UnknownTenant`] when there is no such tenant, and [`Error::NotAllowed`] when the address is a member
/// already, the tenant has [`MAX_MEMBERS`], or it is a sandbox.
pub async fn add(tx: &mut dyn Tx, tenant: TenantId, email: &Email, role: Role) -> Result<Member, Error> {
    if !tx.lock_tenant(tenant).await? {
        return Err(Error::UnknownTenant(tenant));
    }
    if tenants::get(tx, tenant).await?.is_sandbox() {
        let reason =
            "The members of an account use its sandbox with the same role. Add the member to the account instead.";
        return Err(Error::NotAllowed(reason.to_owned()));
    }
    let email = lower(email);
    if tx.member_by_email(tenant, &email).await?.is_some() {
        return Err(Error::NotAllowed(format!("{email} is a member already. Change the role of the member instead.")));
    }
    if tx.members(tenant, MAX_MEMBERS).await?.len() >= MAX_MEMBERS as usize {
        return Err(Error::NotAllowed(format!(
            "The account has {MAX_MEMBERS} members. Remove one before you add another."
        )));
    }
    let created_at = tx.env().now();
    let member = Member { id: tx.env().id(created_at), tenant_id: tenant, email, role, created_at };
    tx.insert_member(&member).await?;
    audit_change(tx, AuditAction::Create, None, Some(&member)).await?;
    Ok(member)
}

/// Returns the members of a tenant, in the order of their addresses.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn list(tx: &mut dyn Tx, tenant: TenantId) -> Result<Vec<Member>, Error> {
    Ok(tx.members(tenant, MAX_MEMBERS).await?)
}

/// Returns a member of a tenant.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when the tenant has no such member.
pub async fn get(tx: &mut dyn Tx, tenant: TenantId, id: MemberId) -> Result<Member, Error> {
    tx.member(tenant, id).await?.ok_or(Error::NotFound)
}

/// Returns the member of a tenant with an address, in whatever case it is written.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when the tenant has no such member.
pub async fn get_by_email(tx: &mut dyn Tx, tenant: TenantId, email: &Email) -> Result<Member, Error> {
    tx.member_by_email(tenant, &lower(email)).await?.ok_or(Error::NotFound)
}

/// Returns what an address is a member of, in the order of the tenants' ids, at most [`MAX_MEMBERSHIPS`].
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn of_email(tx: &mut dyn Tx, email: &Email) -> Result<Vec<Member>, Error> {
    Ok(tx.memberships(&lower(email), MAX_MEMBERSHIPS).await?)
}

/// Changes the role of a member and returns the member. A change without effect is not audited.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when the tenant has no such member, and [`Error::NotAllowed`] when a person of the tenant
/// takes the role of the last owner away.
pub async fn set_role(tx: &mut dyn Tx, tenant: TenantId, id: MemberId, role: Role) -> Result<Member, Error> {
    tx.lock_tenant(tenant).await?;
    let before = get(tx, tenant, id).await?;
    if before.role == role {
        return Ok(before);
    }
    keep_an_owner(tx, &before).await?;
    let member = Member { role, ..before.clone() };
    tx.update_member(&member).await?;
    audit_change(tx, AuditAction::Update, Some(&before), Some(&member)).await?;
    Ok(member)
}

/// Removes a member, and ends their sessions that show the tenant or none. Sessions that show another tenant go on, and show
/// nothing of this one.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when the tenant has no such member, and [`Error::NotAllowed`] when a person of the tenant
/// removes the last owner.
pub async fn remove(tx: &mut dyn Tx, tenant: TenantId, id: MemberId) -> Result<Member, Error> {
    tx.lock_tenant(tenant).await?;
    let member = get(tx, tenant, id).await?;
    keep_an_owner(tx, &member).await?;
    tx.delete_member(tenant, id).await?;
    audit_change(tx, AuditAction::Delete, Some(&member), None).await?;
    sessions::end_of_removed_member(tx, tenant, &member).await?;
    Ok(member)
}

/// Refuses a change by a person in the dashboard that leaves a tenant without an owner.
async fn keep_an_owner(tx: &mut dyn Tx, changed: &Member) -> Result<(), Error> {
    if changed.role != Role::Owner || !matches!(tx.actor(), Actor::Dashboard(_)) {
        return Ok(());
    }
    let members = tx.members(changed.tenant_id, MAX_MEMBERS).await?;
    if members.iter().any(|member| member.role == Role::Owner && member.id != changed.id) {
        return Ok(());
    }
    let reason =
        "This is the last owner of the account. Make someone else an owner first, or ask the operator of this service.";
    Err(Error::NotAllowed(reason.to_owned()))
}

fn lower(email: &Email) -> Email {
    Email::from_stored(&email.key())
}

async fn audit_change(
    tx: &mut dyn Tx,
    action: AuditAction,
    before: Option<&Member>,
    after: Option<&Member>,
) -> Result<(), Error> {
    let Some(Member { tenant_id, id, .. }) = after.or(before) else { return Ok(()) };
    audit::record(tx, *tenant_id, action, Object { kind: "member", id: id.uuid() }, before, after).await
}
