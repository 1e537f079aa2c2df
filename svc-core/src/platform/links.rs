//! The links that sign people in to the dashboard, and the addresses of what people see without signing in.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::accounts::dashboard_links::NewDashboardLink;
use crate::accounts::sessions::Role;
use crate::accounts::shared_links::SharedLink;
use crate::input::Record;
use crate::values::{TenantId, Timestamp};

/// A new link that signs a person in to the dashboard of an account.
#[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
pub struct DashboardLink {
    /// The path of the link on the public listener, with its secret token. Put the address of the service before it.
    pub path: String,
    /// The `id` of the account.
    pub tenant_id: TenantId,
    /// The role of the person: `viewer`, `developer` or `owner`.
    pub role: Role,
    /// The name of the person in the audit log.
    pub identity: String,
    /// When the link stops working.
    pub expires_at: Timestamp,
}

impl fmt::Debug for DashboardLink {
    /// Does not show the path, which signs in everybody who has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tenant_id, role, identity, expires_at, path: _ } = self;
        f.debug_struct("DashboardLink")
            .field("tenant_id", tenant_id)
            .field("role", role)
            .field("identity", identity)
            .field("expires_at", expires_at)
            .finish_non_exhaustive()
    }
}

impl DashboardLink {
    /// Returns the record of a new link to an account.
    pub fn new(tenant_id: TenantId, new: NewDashboardLink) -> Self {
        let path = new.url("");
        let link = new.link;
        Self { path, tenant_id, role: link.role, identity: link.identity, expires_at: link.expires_at }
    }
}

/// A link that signs an operator in to the dashboard, once.
#[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
pub struct OperatorLink {
    /// The path of the link on the public listener, with its secret token. Put the address of the service before it.
    pub path: String,
    /// The name of the person in the audit log.
    pub identity: String,
    /// When the link stops working.
    pub expires_at: Timestamp,
}

impl fmt::Debug for OperatorLink {
    /// Does not show the path, which signs in everybody who has it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { identity, expires_at, path: _ } = self;
        f.debug_struct("OperatorLink")
            .field("identity", identity)
            .field("expires_at", expires_at)
            .finish_non_exhaustive()
    }
}

impl From<NewDashboardLink> for OperatorLink {
    fn from(new: NewDashboardLink) -> Self {
        Self { path: new.url(""), identity: new.link.identity, expires_at: new.link.expires_at }
    }
}

/// The address at which everybody who has it sees an invoice, a quote or the calendar of an account, without signing in.
#[derive(Clone, PartialEq, Serialize, Deserialize, Record)]
pub struct SharedAddress {
    /// The path of the address on the public listener, with its secret. Put the address of the service before it.
    pub path: String,
    /// When the address was made.
    pub created_at: Timestamp,
}

impl fmt::Debug for SharedAddress {
    /// Does not show the path, which is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { created_at, path: _ } = self;
        f.debug_struct("SharedAddress").field("created_at", created_at).finish_non_exhaustive()
    }
}

impl From<SharedLink> for SharedAddress {
    fn from(link: SharedLink) -> Self {
        Self { path: link.path(), created_at: link.created_at }
    }
}
