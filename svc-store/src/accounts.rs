//! Rows of accounts: tenants, their keys, and the audit log.

pub(crate) mod audit;
pub(crate) mod keys;
pub(crate) mod tenants;
