//! Tenants, which are the accounts of businesses, and what controls access to their data.
//!
//! - [`tenants`] has the accounts with their settings, and the numbers of their invoices, quotes and jobs.
//! - [`clocks`] sets back the clocks of accounts that are ahead of now.
//! - [`keys`] creates, checks, rotates and revokes API keys. [`signing`] checks the signatures of requests.
//! - [`platform_keys`] has the keys of the platform API, which belong to no tenant.
//! - [`limits`] has the rate limits that an operator sets for one tenant.
//! - [`idempotency`] stores responses, so that a repeated POST creates nothing twice.
//! - [`dashboard_links`] and [`sessions`] sign people in to the dashboard. [`members`] has the people of an account.
//! - [`audit`] records who changed what, and [`requests`] which API requests there were.

pub mod audit;
pub mod clocks;
pub mod dashboard_links;
pub mod idempotency;
pub mod keys;
pub mod limits;
pub mod members;
pub mod platform_keys;
pub mod requests;
pub mod sessions;
pub mod signing;
pub mod tenants;
