//! The scopes of keys: reading or writing, in an area of the platform API or on the public API.

use crate::values::TextEnum;

/// A right of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum Scope {
    /// Read records with GET and HEAD.
    Read,
    /// Change records with POST, PATCH and DELETE. A key with this scope also has `read`.
    Write,
}

/// A part of the platform API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum Area {
    /// Accounts with their settings, approval and limits.
    Accounts,
    /// API keys of accounts.
    Keys,
    /// Members and links of the dashboard.
    Members,
    /// Contacts, invoices, quotes, bookings and jobs.
    Records,
    /// Events.
    Events,
    /// Webhook subscriptions.
    Webhooks,
    /// Deliveries, their attempts and replays.
    Deliveries,
    /// Third-party apps, and the grants of accounts to them.
    Apps,
    /// The audit log, which is only read.
    Audit,
    /// The export, which is only read.
    Export,
    /// The import, which only writes.
    Import,
    /// Links that sign operators in to the dashboard. Only a scope that names this area allows them.
    Operators,
}

impl Area {
    /// Returns the scopes that the area has.
    pub fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Audit | Self::Export => &[Scope::Read],
            Self::Import | Self::Operators => &[Scope::Write],
            _ => &[Scope::Read, Scope::Write],
        }
    }
}
