//! The pages, in the order of the navigation. The table of all of them is [`super::routes`].

pub(super) mod accounts;
pub(super) mod deliveries;
pub(super) mod events;
mod filters;
pub(super) mod keys;
pub(super) mod overview;
pub(super) mod requests;
pub(super) mod sign_in;
pub(super) mod webhooks;
