//! Shared links: secret addresses at which people see one thing of an account without signing in.
//!
//! A link has a [purpose](SharedLinkPurpose), and a record where the purpose is about one. There is at most one for each purpose and
//! record of an account: [`share`] makes, returns or renews it, and [`revoke`] ends it. A secret has 256 random bits. It is found by its
//! SHA-256, and stored encrypted besides, since people send the same address again.
//!
//! [`find`] is the only way from a secret to an account. The caller reads the record next, which may be gone: that is not found
//! either. A change by somebody who has the address is made by [`Actor::SharedLink`], so the audit log says so.

use serde::Serialize;
use uuid::Uuid;

use crate::accounts::actor::Actor;
use crate::accounts::audit::{self, AuditAction, Object, SHARED_LINK};
use crate::accounts::tenants::{self, DeveloperAccess, Tenant};
use crate::crypto::{new_token, sha256};
use crate::error::Error;
use crate::store::Tx;
use crate::values::{Id, Secret, TenantId, TextEnum, Timestamp};

/// The folder of the pages that links show, below the mount of the API.
pub const PAGES: &str = "/share/";

/// The file of the calendar that a link shows, up to its secret.
const CALENDAR: &str = "/dashboard/calendar.ics?secret=";

/// The thing that a link shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum SharedLinkPurpose {
    /// An invoice, for its customer.
    Invoice,
    /// A quote, for its customer, who can accept or decline it.
    Quote,
    /// The calendar of the account. It has no record.
    Calendar,
}

/// The id of a shared link.
pub type SharedLinkId = Id<SharedLink>;

/// A shared link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SharedLink {
    /// The id of the link, for the audit log. It stays the same at a renewal.
    pub id: SharedLinkId,
    /// The tenant whose link it is.
    pub tenant_id: TenantId,
    /// The thing that the link shows.
    pub purpose: SharedLinkPurpose,
    /// The record that the link shows. `None` where the purpose is about none.
    pub record_id: Option<Uuid>,
    /// The secret of the link, which can be part of a URL. Not part of its JSON.
    #[serde(skip)]
    pub secret: Secret,
    /// When the link was made or renewed.
    pub created_at: Timestamp,
}

impl SharedLink {
    /// Returns the path of the link below the mount of the API.
    pub fn path(&self) -> String {
        let folder = match self.purpose {
            SharedLinkPurpose::Invoice | SharedLinkPurpose::Quote => PAGES,
            SharedLinkPurpose::Calendar => CALENDAR,
        };
        format!("{folder}{}", self.secret.reveal())
    }

    /// Returns the actor of what is done with the link.
    pub fn actor(&self) -> Actor {
        Actor::SharedLink(self.id.uuid())
    }
}

/// Returns the link for a purpose and record, which the caller has found. It is made if there is none. With `renews`, one that there is
/// gets another secret, so that its address ends.
///
/// # Errors
///
/// Returns [`Error::NotFound`] when the tenant does not exist.
pub async fn share(
    tx: &mut dyn Tx,
    tenant: TenantId,
    purpose: SharedLinkPurpose,
    record_id: Option<Uuid>,
    renews: bool,
) -> Result<SharedLink, Error> {
    tx.lock_tenant(tenant).await?;
    tenants::get(tx, tenant).await?;
    let before = match get(tx, tenant, purpose, record_id).await? {
        Some(link) if !renews => return Ok(link),
        before => before,
    };
    if let Some(before) = &before {
        tx.delete_shared_link(tenant, before.id).await?;
    }
    let created_at = tx.env().now();
    let id = before.as_ref().map_or_else(|| tx.env().id(created_at), |before| before.id);
    let secret = new_token(tx.env());
    let link = SharedLink { id, tenant_id: tenant, purpose, record_id, secret, created_at };
    tx.insert_shared_link(&link, &sha256(link.secret.reveal().as_bytes())).await?;
    let action = if before.is_some() { AuditAction::Rotate } else { AuditAction::Create };
    audit_change(tx, action, before.as_ref(), Some(&link)).await?;
    Ok(link)
}

/// Returns the link for a purpose and record, if there is one.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn get(
    tx: &mut dyn Tx,
    tenant: TenantId,
    purpose: SharedLinkPurpose,
    record_id: Option<Uuid>,
) -> Result<Option<SharedLink>, Error> {
    Ok(tx.shared_link(tenant, purpose, record_id).await?)
}

/// Returns the link for a purpose with this secret, and its tenant, also one that is [suspended](is_available).
///
/// # Errors
///
/// Returns [`Error::NotFound`] when there is none: the secret was never one, or its link was renewed or revoked.
pub async fn find(
    tx: &mut dyn Tx,
    secret: &str,
    purposes: &[SharedLinkPurpose],
) -> Result<(SharedLink, Tenant), Error> {
    let link = tx.shared_link_by_secret(&sha256(secret.as_bytes())).await?;
    let link = link.filter(|link| purposes.contains(&link.purpose)).ok_or(Error::NotFound)?;
    let tenant = tenants::get(tx, link.tenant_id).await?;
    Ok((link, tenant))
}

/// Returns whether the links of a tenant show anything: those of a suspended one do not, until it is approved again.
pub fn is_available(tenant: &Tenant) -> bool {
    tenant.developer_access != DeveloperAccess::Suspended
}

/// Ends the link for a purpose and record, and returns it. There may be none, which is no error: the address is gone either way.
///
/// # Errors
///
/// Returns [`Error::Store`] when the store fails.
pub async fn revoke(
    tx: &mut dyn Tx,
    tenant: TenantId,
    purpose: SharedLinkPurpose,
    record_id: Option<Uuid>,
) -> Result<Option<SharedLink>, Error> {
    tx.lock_tenant(tenant).await?;
    let link = get(tx, tenant, purpose, record_id).await?;
    if let Some(link) = &link {
        tx.delete_shared_link(tenant, link.id).await?;
        audit_change(tx, AuditAction::Revoke, Some(link), None).await?;
    }
    Ok(link)
}

async fn audit_change(
    tx: &mut dyn Tx,
    action: AuditAction,
    before: Option<&SharedLink>,
    after: Option<&SharedLink>,
) -> Result<(), Error> {
    let Some(SharedLink { id, tenant_id, .. }) = after.or(before) else { return Ok(()) };
    audit::record(tx, *tenant_id, action, Object { kind: SHARED_LINK, id: id.uuid() }, before, after).await
}
