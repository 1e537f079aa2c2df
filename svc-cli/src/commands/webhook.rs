//! `svc webhook`.

use svc_core::error::Error;
use svc_core::page::{Listing, MAX_LIMIT, Order};
use svc_core::resource::{NoFilter, Resource as _};
use svc_core::store::{Store, Tx};
use svc_core::tenants;
use svc_core::types::TenantId;
use svc_core::webhooks::Subscription;

use super::{lookup, tenant};
use crate::cli::WebhookCommand;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{Outcome, Table, fields, or_dash};

/// Where the ids of subscriptions come from.
const HINT: &str = "`svc webhook list --tenant ID` shows those of a tenant";

pub(super) async fn run(store: &dyn Store, command: WebhookCommand) -> Result<Outcome, Failure> {
    match command {
        WebhookCommand::List { tenant } => list(store, tenant).await,
        WebhookCommand::Show { id } => {
            let (_, subscription) = lookup::find(store, id).await.or_not_found("webhook", id, HINT)?;
            Outcome::new(&subscription, details(&subscription))
        }
    }
}

async fn list(store: &dyn Store, tenant: TenantId) -> Result<Outcome, Failure> {
    let listed = store.read("webhook.list", move |tx| Box::pin(all(tx, tenant))).await;
    let subscriptions = listed.or_not_found("tenant", tenant, tenant::HINT)?;
    let heading = ["ID", "STATE", "LAST STATUS", "URL", "EVENTS"];
    let table = Table::new(heading, &subscriptions, |subscription| {
        [
            subscription.id.to_string(),
            state(subscription).to_owned(),
            or_dash(subscription.last_delivery_status),
            subscription.url.as_str().to_owned(),
            events(subscription),
        ]
    });
    Outcome::list(&subscriptions, &table, "The tenant has no webhooks.")
}

/// Every live subscription of a tenant, newest first, a page at a time.
async fn all(tx: &mut dyn Tx, tenant: TenantId) -> Result<Vec<Subscription>, Error> {
    tenants::get(tx, tenant).await?;
    let mut rows: Vec<Subscription> = Vec::new();
    loop {
        let order = Order::NewestFirst { before: rows.last().map(|last| last.created_at) };
        let listing = Listing { limit: MAX_LIMIT, order, filter: NoFilter {} };
        let page = Subscription::rows(tx).list(tenant, &listing).await?;
        let full = page.len() == MAX_LIMIT as usize;
        rows.extend(page);
        if !full {
            return Ok(rows);
        }
    }
}

fn state(subscription: &Subscription) -> &'static str {
    match (subscription.enabled, subscription.disabled_reason) {
        (true, _) => "enabled",
        (false, Some(reason)) => reason.as_str(),
        (false, None) => "disabled",
    }
}

fn events(subscription: &Subscription) -> String {
    subscription.events.names().join(",")
}

fn details(subscription: &Subscription) -> String {
    fields([
        ("id", subscription.id.to_string()),
        ("url", subscription.url.as_str().to_owned()),
        ("events", events(subscription)),
        ("description", or_dash(subscription.description.as_ref())),
        ("state", state(subscription).to_owned()),
        ("paused at", or_dash(subscription.paused_at)),
        ("consecutive failures", subscription.consecutive_failures.to_string()),
        ("last delivery at", or_dash(subscription.last_delivery_at)),
        ("last delivery status", or_dash(subscription.last_delivery_status)),
        ("created at", subscription.created_at.to_string()),
    ])
}
