//! Tenants, which are the accounts of businesses, and what controls access to their data.
//!
//! - [`tenants`] has the accounts with their settings, and the numbers of their invoices, quotes and jobs.
//! - [`clocks`] orders the writes of an account, and sets back clocks that are ahead of now.
//! - [`keys`] creates, checks, rotates and revokes API keys. [`signing`] checks the signatures of requests.
//! - [`platform_keys`] has the keys of the platform API, which belong to no tenant.
//! - [`apps`] has the third-party programs that can ask for access, [`grants`] the permissions of accounts for them, with tokens.
//! - [`limits`] has the rate limits that an operator sets for one tenant.
//! - [`idempotency`] stores responses, so that a repeated POST creates nothing twice.
//! - [`dashboard_links`] and [`sessions`] sign people in to the dashboard. [`members`] has the people of an account.
//! - [`shared_links`] are secret addresses at which people see one thing of an account without signing in.
//! - [`uploads`] are the files of imports.
//! - [`audit`] records what was changed and by which [`actor`]. [`changes`](crate::changes) says which fields were set.
//! - [`operational`] records what the operator wants to know of all accounts.

pub mod actor;
pub mod apps;
pub mod audit;
pub mod clocks;
pub mod dashboard_links;
pub mod grants;
pub mod idempotency;
pub mod keys;
pub mod limits;
pub mod members;
pub mod operational;
pub mod platform_keys;
mod scopes;
pub mod sessions;
pub mod shared_links;
pub mod signing;
pub mod tenants;
pub mod uploads;
