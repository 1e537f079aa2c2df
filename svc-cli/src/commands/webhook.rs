//! `svc webhook`.

mod send_test;
mod statistics;

use serde::Serialize;
use svc_core::platform::operations::{self, Records};
use svc_core::platform::{Operation, SecretRotation};
use svc_core::values::{Id, Patch, TenantId};
use svc_core::webhooks::subscriptions::{
    SubscriptionId, WebhookSubscription, WebhookSubscriptionWithSecret, WebhookUpdate,
};

use super::lookup::{self, Owned};
use super::records::{self, Managed};
use crate::cli::WebhookCommand;
use crate::cli::records::Target;
use crate::exit::{Failure, OrNotFound as _};
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, or_dash, state};
use crate::service::Service;
use crate::times::{moment, moment_or_dash, seconds};

/// Says how to find the id of a webhook.
pub(super) const HINT: &str = "`svc webhook list` lists the webhooks of an account";

/// An enabled subscription in JSON output, with the number of its held deliveries: 10,000 for that many or more, null if they
/// could not be counted.
#[derive(Serialize)]
struct EnabledView<'a> {
    #[serde(flatten)]
    subscription: &'a WebhookSubscription,
    held_deliveries: Option<u64>,
}

pub(super) async fn run(service: &Service, command: WebhookCommand) -> Result<Outcome, Failure> {
    match command {
        WebhookCommand::Records(command) => records::run(service, command).await,
        WebhookCommand::Enable(target) => {
            let (account, subscription) = set_enabled(service, &target, true).await?;
            let id = subscription.id;
            // It is enabled, whether or not its deliveries can be counted.
            let statistics = service.call(&operations::GET_WEBHOOK_STATISTICS, (account, id), ()).await;
            let held_deliveries = statistics.ok().and_then(|statistics| statistics.held).map(u64::from);
            let text = format!("Enabled webhook {id}. Events are delivered to {}.", subscription.url.as_str());
            let outcome = Outcome::new(&EnabledView { subscription: &subscription, held_deliveries }, text)?;
            Ok(outcome.with_note(held_note(&subscription, held_deliveries)))
        }
        WebhookCommand::Disable(target) => {
            let (_, subscription) = set_enabled(service, &target, false).await?;
            let text = format!("Disabled webhook {}. Nothing is delivered to it from now on.", subscription.id);
            Outcome::new(&subscription, text)
        }
        WebhookCommand::Delete(target) => records::delete::<WebhookSubscription>(service, &target).await,
        WebhookCommand::Stats { account, since } => {
            let since = since.from(service.now());
            statistics::run(service, lookup::account(service, &account).await?.id, since).await
        }
        WebhookCommand::Test { target, event, timeout } => send_test::run(service, &target, event, timeout).await,
        WebhookCommand::RotateSecret { target, finish: true, .. } => {
            let subscription = records::call(service, &target, &operations::FINISH_WEBHOOK_ROTATION, ()).await?;
            Outcome::new(
                &subscription,
                format!("Only the newest secret of webhook {} is used from now on.", subscription.id),
            )
        }
        WebhookCommand::RotateSecret { target, overlap, finish: false } => {
            let rotation = SecretRotation { overlap: Some(seconds("overlap", overlap)?) };
            let rotated = records::call(service, &target, &operations::ROTATE_WEBHOOK_SECRET, rotation).await?;
            let now = service.now();
            let old_secret = match now.checked_add(overlap) {
                Some(until) if until > now => format!(
                    "The old secret still makes X-SVC-Signature until {}, or until you end the overlap with --finish.",
                    moment(until)
                ),
                _ => "The old secret is no longer used.".to_owned(),
            };
            let text = format!(
                "Replaced the secret of webhook {}. {old_secret}\n\n{}\n\
                 Store the secret now. It will not be shown again.",
                rotated.subscription.id,
                fields([("secret", rotated.secret.clone())])
            );
            Outcome::new(&rotated, text)
        }
    }
}

impl Managed for WebhookSubscription {
    type Created = WebhookSubscriptionWithSecret;
    const CREATE: Operation<TenantId, Self::Create, Self::Created> = operations::CREATE_WEBHOOK;
    const UPDATE: Operation<(TenantId, Id<Self>), Self::Update, Self> = Records::<Self>::UPDATE;

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

    fn created(created: WebhookSubscriptionWithSecret) -> Result<Outcome, Failure> {
        let WebhookSubscriptionWithSecret { subscription, secret, .. } = &created;
        let text = format!(
            "Created webhook {}. Events are delivered to {}.\n\n{}\nStore the secret now. It will not be shown again.",
            subscription.id,
            subscription.url.as_str(),
            fields([("id", subscription.id.to_string()), ("secret", secret.clone())])
        );
        Outcome::new(&created, text)
    }
}

/// Enables or disables a subscription. Returns it with its account.
async fn set_enabled(
    service: &Service,
    target: &Target,
    enabled: bool,
) -> Result<(TenantId, WebhookSubscription), Failure> {
    let Owned { tenant_id, record } = lookup::find::<WebhookSubscription>(service, &target.id, &target.account).await?;
    let id = record.id;
    let change = WebhookUpdate { enabled: Patch::Set(enabled), ..WebhookUpdate::default() };
    let changed = service.call(&<WebhookSubscription as Managed>::UPDATE, (tenant_id, id), change).await;
    Ok((tenant_id, changed.or_not_found("webhook", id, HINT)?))
}

/// Returns the whole id of an account's subscription, if one was given.
pub(super) async fn id_in(
    service: &Service,
    account: TenantId,
    id: Option<IdArg>,
) -> Result<Option<SubscriptionId>, Failure> {
    match id {
        Some(id) => Ok(Some(lookup::id_in::<WebhookSubscription>(service, account, &id).await?.into())),
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
