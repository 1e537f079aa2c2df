//! The pages, in the order of the navigation. The table of all of them is [`super::routes`].

pub(super) mod accounts;
pub(super) mod apps;
pub(super) mod attempts;
pub(super) mod audit;
pub(super) mod deliveries;
pub(super) mod delivery;
pub(super) mod developer_apps;
pub(super) mod endpoint_forms;
mod endpoint_options;
pub(super) mod events;
mod filters;
pub(super) mod find;
pub(super) mod keys;
mod made;
pub(super) mod members;
pub(super) mod overview;
#[cfg(feature = "oidc")]
pub(super) mod provider;
pub(super) mod record_actions;
pub(super) mod record_forms;
pub(super) mod records;
#[cfg(feature = "docs")]
pub(super) mod reference;
pub(super) mod replays;
pub(super) mod requests;
pub(super) mod sandbox;
mod sent_request;
pub(super) mod settings;
pub(super) mod sign_in;
pub(super) mod system;
pub(super) mod webhooks;
