//! `svc webhook`.

mod send_test;
mod statistics;

use serde::Serialize;
use svc_core::accounts::tenants;
use svc_core::error::Error;
use svc_core::resources::crud::{self, NoFilter, Resource as _};
use svc_core::resources::pages::{ListQuery, MAX_LIMIT, Order};
use svc_core::store::{Store, Tx};
use svc_core::values::{Id, Patch, TenantId};
use svc_core::webhooks::statistics::backlog;
use svc_core::webhooks::subscriptions::{
    self, SubscriptionId, WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret, WebhookUpdate,
};

use super::lookup::{self, Lookup, Owned};
use super::records::{self, Managed, change};
use crate::cli::WebhookCommand;
use crate::cli::records::Target;
use crate::exit::{Failure, OrNotFound as _};
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, or_dash, state};
use crate::times::{moment, moment_or_dash};

/// Says how to find the id of a webhook.
pub(super) const HINT: &str = "`svc webhook list` lists the webhooks of a tenant";

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
        WebhookCommand::Records(command) => records::run(store, command).await,
        WebhookCommand::Enable(target) => {
            let (tenant, subscription) = set_enabled(store, &target, true).await?;
            let id = subscription.id;
            // It is enabled, whether or not its deliveries can be counted.
            let backlog = store.read("webhook.held", move |tx| Box::pin(backlog(tx, tenant, id))).await;
            let held_deliveries = backlog.ok().map(|backlog| backlog.held);
            let text = format!("Enabled webhook {id}. Events are delivered to {}.", subscription.url.as_str());
            let outcome = Outcome::new(&EnabledView { subscription: &subscription, held_deliveries }, text)?;
            Ok(outcome.with_note(held_note(&subscription, held_deliveries)))
        }
        WebhookCommand::Disable(target) => {
            let (_, subscription) = set_enabled(store, &target, false).await?;
            let text = format!("Disabled webhook {}. Nothing is delivered to it from now on.", subscription.id);
            Outcome::new(&subscription, text)
        }
        WebhookCommand::Delete(target) => records::delete::<WebhookSubscription>(store, &target).await,
        WebhookCommand::Stats { tenant, since } => {
            let since = since.from(store.env().now());
            statistics::run(store, lookup::tenant(store, &tenant).await?.id, since).await
        }
        WebhookCommand::Test { target, event, timeout } => send_test::run(store, &target, event, timeout).await,
        WebhookCommand::RotateSecret { target, finish: true, .. } => {
            let finish = change(store, &target, "webhook.finish_rotation", |tx, tenant, id| {
                Box::pin(subscriptions::finish_rotation(tx, tenant, id))
            });
            let subscription: WebhookSubscription = finish.await?;
            Outcome::new(
                &subscription,
                format!("Only the newest secret of webhook {} is used from now on.", subscription.id),
            )
        }
        WebhookCommand::RotateSecret { target, overlap, finish: false } => {
            let rotate = change(store, &target, "webhook.rotate", move |tx, tenant, id| {
                Box::pin(subscriptions::rotate_secret(tx, tenant, id, overlap))
            });
            let rotated: WebhookSubscription = rotate.await?;
            let old_secret = match rotated.previous_until {
                Some(until) if until > store.env().now() => format!(
                    "The old secret still makes X-SVC-Signature until {}, or until you end the overlap with --finish.",
                    moment(until)
                ),
                _ => "The old secret is no longer used.".to_owned(),
            };
            let secret = ("secret", rotated.secret.reveal().to_owned());
            let text = format!(
                "Replaced the secret of webhook {}. {old_secret}\n\n{}\n\
                 Store the secret now. It will not be shown again.",
                rotated.id,
                fields([secret])
            );
            Outcome::new(&WebhookSubscriptionWithSecret::from(rotated), text)
        }
    }
}

impl Managed for WebhookSubscription {
    fn create(tx: &mut dyn Tx, tenant: TenantId, input: WebhookCreate) -> Lookup<'_, Self> {
        Box::pin(crud::create::<Self>(tx, tenant, input))
    }

    fn update(tx: &mut dyn Tx, tenant: TenantId, id: Id<Self>, change: WebhookUpdate) -> Lookup<'_, Self> {
        Box::pin(crud::update::<Self>(tx, tenant, id, change))
    }

    fn table(subscriptions: &[Self]) -> Table {
        Table::new(["ID", "STATUS", "URL", "EVENTS", "LAST STATUS"], subscriptions, |subscription| {
            [
                subscription.id.to_string(),
                state(status(subscription)),
                subscription.url.as_str().to_owned(),
                events(subscription),
                or_dash(subscription.last_delivery_status),
            ]
        })
    }

    fn details(&self) -> String {
        details(self)
    }

    fn created(&self) -> Result<Outcome, Failure> {
        let text = format!(
            "Created webhook {}. Events are delivered to {}.\n\n{}\nStore the secret now. It will not be shown again.",
            self.id,
            self.url.as_str(),
            fields([("id", self.id.to_string()), ("secret", self.secret.reveal().to_owned())])
        );
        Outcome::new(&WebhookSubscriptionWithSecret::from(self.clone()), text)
    }
}

/// Enables or disables a subscription. Returns it with its tenant.
async fn set_enabled(
    store: &dyn Store,
    target: &Target,
    enabled: bool,
) -> Result<(TenantId, WebhookSubscription), Failure> {
    let Owned { tenant_id, record } = lookup::find::<WebhookSubscription>(store, &target.id, &target.tenant).await?;
    let id = record.id;
    let changed = store.write("webhook.enable", move |tx| {
        let (url, events, description) = (Patch::Keep, Patch::Keep, Patch::Keep);
        let change = WebhookUpdate { url, events, enabled: Patch::Set(enabled), description };
        Box::pin(crud::update::<WebhookSubscription>(tx, tenant_id, id, change))
    });
    Ok((tenant_id, changed.await.or_not_found("webhook", id, HINT)?))
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

/// Returns the whole id of a tenant's subscription, if one was given.
pub(super) async fn id_in(
    store: &dyn Store,
    tenant: TenantId,
    id: Option<IdArg>,
) -> Result<Option<SubscriptionId>, Failure> {
    match id {
        Some(id) => lookup::id_in::<WebhookSubscription>(store, tenant, &id).await.map(Some),
        None => Ok(None),
    }
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
