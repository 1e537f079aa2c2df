//! The dashboard as a browser sees it: every page in every role, sessions and forms, two accounts side by side.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail by a panic, in its helpers as well")]

mod apps;
mod audit;
mod bars;
mod browser;
mod calendar;
mod calendar_feed;
mod consent;
mod deliveries;
mod developer_apps;
mod endpoint_forms;
mod find;
mod forms;
mod history;
mod identity;
mod imports;
mod invoice_actions;
mod live;
mod members;
mod names;
mod oidc;
mod overview;
mod record_forms;
mod records;
mod reference;
mod roles;
mod sandbox;
mod selected;
mod sessions;
mod share;
mod webhooks;
mod worklists;
