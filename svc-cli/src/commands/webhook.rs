//! `svc webhook`.

mod send_test;
mod statistics;

use std::time::Duration;

use serde::Serialize;
use svc_core::accounts::tenants;
use svc_core::error::Error;
use svc_core::resources::crud::{self, NoFilter, Resource as _};
use svc_core::resources::pages::{ListQuery, MAX_LIMIT, Order};
use svc_core::store::{Store, Tx};
use svc_core::values::{Patch, TenantId};
use svc_core::webhooks::statistics::backlog;
use svc_core::webhooks::subscriptions::{
    self, SubscriptionId, WebhookSubscription, WebhookSubscriptionWithSecret, WebhookUpdate,
};

use super::lookup::{self, LookupError};
use super::tenant;
use crate::cli::{Owner, WebhookCommand};
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{Outcome, Table, fields, or_dash};
use crate::times::{moment, moment_or_dash};

/// Says how to find the id of a webhook.
pub(super) const HINT: &str = "`svc webhook list --tenant ID` lists the webhooks of a tenant";

/// An enabled subscription in JSON output, with the number of its held deliveries: 10,000 for that many or more, null if they
/// could not be counted.
#[derive(Serialize)]
struct EnabledView<'a> {
    #[serde(flatten)]
    subscription: &'a WebhookSubscription,
    held_deliveries: Option<u64>,
}

pub(super) async fn run(store: &dyn Store, command: WebhookCommand) -> Result<Outcome, Failure> {
    match command {
        WebhookCommand::List { tenant } => list(store, tenant).await,
        WebhookCommand::Show { id, owner } => {
            let subscription: WebhookSubscription =
                lookup::find(store, id, owner).await.or_not_found("webhook", id, HINT)?.record;
            Outcome::new(&subscription, details(&subscription))
        }
        WebhookCommand::Enable { id, owner } => {
            let Enabled { subscription, held_deliveries } =
                enable(store, id, owner).await.or_not_found("webhook", id, HINT)?;
            let text = format!("Enabled webhook {id}. Events are delivered to {}.", subscription.url.as_str());
            let outcome = Outcome::new(&EnabledView { subscription: &subscription, held_deliveries }, text)?;
            Ok(outcome.with_note(held_note(&subscription, held_deliveries)))
        }
        WebhookCommand::Stats { tenant, since } => {
            let since = since.from(store.env().now());
            statistics::run(store, tenant, since).await
        }
        WebhookCommand::Test { id, owner, event, timeout } => send_test::run(store, id, owner, event, timeout).await,
        WebhookCommand::RotateSecret { id, owner, finish: true, .. } => {
            let subscription = finish_rotation(store, id, owner).await.or_not_found("webhook", id, HINT)?;
            Outcome::new(&subscription, format!("Only the newest secret of webhook {id} is used from now on."))
        }
        WebhookCommand::RotateSecret { id, owner, overlap, finish: false } => {
            let rotated = rotate_secret(store, id, owner, overlap).await.or_not_found("webhook", id, HINT)?;
            let old_secret = match rotated.previous_until {
                Some(until) if until > store.env().now() => format!(
                    "The old secret still makes X-SVC-Signature until {}, or until you end the overlap with --finish.",
                    moment(until)
                ),
                _ => "The old secret is no longer used.".to_owned(),
            };
            let secret = ("secret", rotated.secret.reveal().to_owned());
            let text = format!(
                "Replaced the secret of webhook {id}. {old_secret}\n\n{}\n\
                 Store the secret now. It will not be shown again.",
                fields([secret])
            );
            Outcome::new(&WebhookSubscriptionWithSecret::from(rotated), text)
        }
    }
}

async fn list(store: &dyn Store, tenant: TenantId) -> Result<Outcome, Failure> {
    let listed = store.read("webhook.list", move |tx| Box::pin(all(tx, tenant))).await;
    let subscriptions = listed.or_not_found("tenant", tenant, tenant::HINT)?;
    let heading = ["ID", "STATUS", "LAST STATUS", "URL", "EVENTS"];
    let table = Table::new(heading, &subscriptions, |subscription| {
        [
            subscription.id.to_string(),
            status(subscription).to_owned(),
            or_dash(subscription.last_delivery_status),
            subscription.url.as_str().to_owned(),
            events(subscription),
        ]
    });
    Outcome::list(&subscriptions, &table, "The tenant has no webhooks.")
}

/// Reads all subscriptions of a tenant that are not deleted, newest first, page by page.
async fn all(tx: &mut dyn Tx, tenant: TenantId) -> Result<Vec<WebhookSubscription>, Error> {
    tenants::get(tx, tenant).await?;
    let mut rows: Vec<WebhookSubscription> = Vec::new();
    loop {
        let order = Order::NewestFirst { before: rows.last().map(|last| last.created_at) };
        let listing = ListQuery { limit: MAX_LIMIT, order, filter: NoFilter {} };
        let page = WebhookSubscription::repository(tx).list(tenant, &listing).await?;
        let full = page.len() == MAX_LIMIT as usize;
        rows.extend(page);
        if !full {
            return Ok(rows);
        }
    }
}

/// A subscription that was enabled.
struct Enabled {
    subscription: WebhookSubscription,
    /// The number of deliveries that are held for it. `None` when they could not be counted.
    held_deliveries: Option<u64>,
}

/// Enables a subscription and counts its held deliveries.
async fn enable(store: &dyn Store, id: SubscriptionId, owner: Owner) -> Result<Enabled, LookupError> {
    let tenant = lookup::find::<WebhookSubscription>(store, id, owner).await?.tenant_id;
    let subscription = store
        .write("webhook.enable", move |tx| {
            let (url, events, description) = (Patch::Keep, Patch::Keep, Patch::Keep);
            let change = WebhookUpdate { url, events, enabled: Patch::Set(true), description };
            Box::pin(crud::update::<WebhookSubscription>(tx, tenant, id, change))
        })
        .await?;
    // It is enabled, whether or not its deliveries can be counted.
    let backlog = store.read("webhook.held", move |tx| Box::pin(backlog(tx, tenant, id))).await;
    Ok(Enabled { subscription, held_deliveries: backlog.ok().map(|backlog| backlog.held) })
}

async fn rotate_secret(
    store: &dyn Store,
    id: SubscriptionId,
    owner: Owner,
    overlap: Duration,
) -> Result<WebhookSubscription, LookupError> {
    let tenant = lookup::find::<WebhookSubscription>(store, id, owner).await?.tenant_id;
    let rotate =
        store.write("webhook.rotate", move |tx| Box::pin(subscriptions::rotate_secret(tx, tenant, id, overlap)));
    Ok(rotate.await?)
}

async fn finish_rotation(
    store: &dyn Store,
    id: SubscriptionId,
    owner: Owner,
) -> Result<WebhookSubscription, LookupError> {
    let tenant = lookup::find::<WebhookSubscription>(store, id, owner).await?.tenant_id;
    let finish =
        store.write("webhook.finish_rotation", move |tx| Box::pin(subscriptions::finish_rotation(tx, tenant, id)));
    Ok(finish.await?)
}

/// Returns a note that says how to send held deliveries, which are not sent automatically.
fn held_note(subscription: &WebhookSubscription, held: Option<u64>) -> Option<String> {
    let (are, them) = match held {
        Some(0) => return None,
        Some(1) => ("1 delivery is".to_owned(), "it"),
        Some(many) => (format!("{} deliveries are", statistics::count(many)), "them"),
        None => ("The deliveries could not be counted that are".to_owned(), "them"),
    };
    let WebhookSubscription { id, created_at, .. } = subscription;
    Some(format!(
        "{are} held. Run `svc delivery replay --subscription {id} --since {created_at} --status held` to send {them}."
    ))
}

/// Returns `enabled`, `disabled` or the reason why the service disabled it.
fn status(subscription: &WebhookSubscription) -> &'static str {
    match (subscription.enabled, subscription.disabled_reason) {
        (true, _) => "enabled",
        (false, Some(reason)) => reason.as_str(),
        (false, None) => "disabled",
    }
}

fn events(subscription: &WebhookSubscription) -> String {
    subscription.events.names().join(",")
}

fn details(subscription: &WebhookSubscription) -> String {
    fields([
        ("id", subscription.id.to_string()),
        ("url", subscription.url.as_str().to_owned()),
        ("events", events(subscription)),
        ("description", or_dash(subscription.description.as_ref())),
        ("status", status(subscription).to_owned()),
        ("paused at", moment_or_dash(subscription.paused_at)),
        ("consecutive failures", subscription.consecutive_failures.to_string()),
        ("last delivery at", moment_or_dash(subscription.last_delivery_at)),
        ("last delivery status", or_dash(subscription.last_delivery_status)),
        ("created at", moment(subscription.created_at)),
    ])
}
