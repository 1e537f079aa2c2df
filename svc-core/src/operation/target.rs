//! Where an operation is found: its method, and what its path names.

use std::fmt;

use uuid::Uuid;

use crate::values::{Id, TenantId};

/// The method of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads. The input is in the query.
    Get,
    /// Creates, or does something with a record. The input is in the body, if there is one.
    Post,
    /// Changes the fields that are sent.
    Patch,
    /// Deletes.
    Delete,
}

impl Method {
    /// Returns its name, such as `GET`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The target in the path of an operation: nothing, an account, a record of an account, or one without an account.
pub trait Target: Copy + Send + Sync + 'static {
    /// Whether the path names an account.
    const HAS_ACCOUNT: bool = true;
    /// Whether the path names a record.
    const HAS_ID: bool = false;

    /// Returns what a path with these ids names. The ids that it does not name are ignored.
    fn new(account: TenantId, id: Uuid) -> Self;

    /// Returns the account, if the path names one.
    fn account(self) -> Option<TenantId>;

    /// Returns the id of the record, if the path names one.
    fn id(self) -> Option<Uuid> {
        None
    }
}

impl Target for () {
    const HAS_ACCOUNT: bool = false;

    fn new(_: TenantId, _: Uuid) -> Self {}

    fn account(self) -> Option<TenantId> {
        None
    }
}

impl Target for TenantId {
    fn new(account: TenantId, _: Uuid) -> Self {
        account
    }

    fn account(self) -> Option<TenantId> {
        Some(self)
    }
}

impl<R: 'static> Target for Id<R> {
    const HAS_ACCOUNT: bool = false;
    const HAS_ID: bool = true;

    fn new(_: TenantId, id: Uuid) -> Self {
        id.into()
    }

    fn account(self) -> Option<TenantId> {
        None
    }

    fn id(self) -> Option<Uuid> {
        Some(self.uuid())
    }
}

impl<R: 'static> Target for (TenantId, Id<R>) {
    const HAS_ID: bool = true;

    fn new(account: TenantId, id: Uuid) -> Self {
        (account, id.into())
    }

    fn account(self) -> Option<TenantId> {
        Some(self.0)
    }

    fn id(self) -> Option<Uuid> {
        Some(self.1.uuid())
    }
}
