//! The tables of accounts: tenants, their API keys and members, idempotency keys, the dashboard's sessions, shared links and the audit log.

pub(crate) mod api_keys;
pub(crate) mod apps;
pub(crate) mod audit;
pub(crate) mod idempotency;
pub(crate) mod members;
pub(crate) mod owners;
pub(crate) mod platform_keys;
pub(crate) mod request_log;
pub(crate) mod sandboxes;
pub(crate) mod shared_links;
pub(crate) mod sign_in;
pub(crate) mod signatures;
pub(crate) mod tenants;
pub(crate) mod uploads;
