//! The dashboard as a browser sees it: every page in every role, sessions and forms, two accounts side by side.

#![cfg(feature = "dashboard")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail by a panic, in its helpers as well")]

#[path = "dashboard/apps.rs"]
mod apps;
#[path = "dashboard/audit.rs"]
mod audit;
#[path = "dashboard/bars.rs"]
mod bars;
#[path = "dashboard/browser.rs"]
mod browser;
#[path = "dashboard/consent.rs"]
mod consent;
#[path = "dashboard/deliveries.rs"]
mod deliveries;
#[path = "dashboard/developer_apps.rs"]
mod developer_apps;
#[path = "dashboard/endpoint_forms.rs"]
mod endpoint_forms;
#[path = "dashboard/find.rs"]
mod find;
#[path = "dashboard/forms.rs"]
mod forms;
#[path = "dashboard/history.rs"]
mod history;
#[path = "dashboard/identity.rs"]
mod identity;
#[path = "dashboard/invoice_actions.rs"]
mod invoice_actions;
#[path = "dashboard/live.rs"]
mod live;
#[path = "dashboard/members.rs"]
mod members;
#[cfg(feature = "oidc")]
#[path = "dashboard/oidc.rs"]
mod oidc;
#[path = "dashboard/overview.rs"]
mod overview;
#[path = "dashboard/record_forms.rs"]
mod record_forms;
#[path = "dashboard/records.rs"]
mod records;
#[cfg(feature = "docs")]
#[path = "dashboard/reference.rs"]
mod reference;
#[path = "dashboard/roles.rs"]
mod roles;
#[path = "dashboard/sandbox.rs"]
mod sandbox;
#[path = "dashboard/sessions.rs"]
mod sessions;
#[path = "dashboard/webhooks.rs"]
mod webhooks;
