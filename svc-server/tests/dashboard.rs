//! The dashboard as a browser sees it: every page in every role, sessions and forms, two accounts side by side.

#![cfg(feature = "dashboard")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail by a panic, in its helpers as well")]

#[path = "dashboard/bars.rs"]
mod bars;
#[path = "dashboard/browser.rs"]
mod browser;
#[path = "dashboard/deliveries.rs"]
mod deliveries;
#[path = "dashboard/endpoint_forms.rs"]
mod endpoint_forms;
#[path = "dashboard/forms.rs"]
mod forms;
#[path = "dashboard/identity.rs"]
mod identity;
#[path = "dashboard/live.rs"]
mod live;
#[path = "dashboard/members.rs"]
mod members;
#[cfg(feature = "oidc")]
#[path = "dashboard/oidc.rs"]
mod oidc;
#[path = "dashboard/overview.rs"]
mod overview;
#[cfg(feature = "docs")]
#[path = "dashboard/reference.rs"]
mod reference;
#[path = "dashboard/roles.rs"]
mod roles;
#[path = "dashboard/sessions.rs"]
mod sessions;
#[path = "dashboard/webhooks.rs"]
mod webhooks;
