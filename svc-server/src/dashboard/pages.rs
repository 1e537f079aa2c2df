//! The pages, in the order of the navigation. The table of all of them is [`super::routes`].

pub(super) mod accounts;
pub(super) mod audit;
pub(super) mod deliveries;
pub(super) mod events;
mod filters;
pub(super) mod find;
pub(super) mod keys;
pub(super) mod members;
pub(super) mod overview;
#[cfg(feature = "oidc")]
pub(super) mod provider;
pub(super) mod records;
pub(super) mod requests;
pub(super) mod settings;
pub(super) mod sign_in;
pub(super) mod system;
pub(super) mod webhooks;
