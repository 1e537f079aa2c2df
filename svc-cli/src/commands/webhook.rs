//! `svc webhook`.

pub(crate) mod filter_test;
mod send_test;
mod statistics;

use serde::Serialize;
use svc_core::pages::Since;
use svc_core::platform::SecretRotation;
use svc_core::platform::operations::{self, Records};
use svc_core::values::{Patch, TenantId};
use svc_core::webhooks::subscriptions::{
    SubscriptionId, WebhookSubscription, WebhookSubscriptionWithSecret, WebhookUpdate,
};

use super::lookup;
use super::records::{self, CreatedText};
use crate::cli::WebhookCommand;
use crate::cli::records::{CreateRecord, RecordCommand, Target};
use crate::exit::Failure;
use crate::ids::IdArg;
use crate::output::{Outcome, fields};
use crate::service::{Service, local_only};
use crate::times::{moment, seconds};

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
        WebhookCommand::Records(RecordCommand::Create(CreateRecord { stream: Some(stream), account, .. })) => {
            let account = lookup::account(service, &account).await?.id;
            records::create(service, account, &operations::CREATE_STREAM_WEBHOOK, &stream).await
        }
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
            let account = lookup::account(service, &account).await?.id;
            let since = lookup::time_in(service, account, since).await?;
            statistics::run(service, account, Since(since)).await
        }
        WebhookCommand::Test { target, event, timeout } => send_test::run(service, &target, event, timeout).await,
        WebhookCommand::FilterTest { .. } => Err(local_only("svc webhook filter-test")),
        WebhookCommand::RotateSecret { target, finish: true, .. } => {
            let subscription = lookup::call(service, &target, &operations::FINISH_WEBHOOK_ROTATION, ()).await?;
            Outcome::new(
                &subscription,
                format!("Only the newest secret of webhook {} is used from now on.", subscription.id),
            )
        }
        WebhookCommand::RotateSecret { target, overlap, finish: false } => {
            let rotation = SecretRotation { overlap: Some(seconds("overlap", overlap)?) };
            let rotated = lookup::call(service, &target, &operations::ROTATE_WEBHOOK_SECRET, rotation).await?;
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

impl CreatedText for WebhookSubscriptionWithSecret {
    fn text(&self) -> String {
        let WebhookSubscriptionWithSecret { subscription, secret, .. } = self;
        format!(
            "Created webhook {}. Events are delivered to {}.\n\n{}\nStore the secret now. It will not be shown again.",
            subscription.id,
            subscription.url.as_str(),
            fields([("id", subscription.id.to_string()), ("secret", secret.clone())])
        )
    }
}

/// Enables or disables a subscription. Returns it with its account.
async fn set_enabled(
    service: &Service,
    target: &Target,
    enabled: bool,
) -> Result<(TenantId, WebhookSubscription), Failure> {
    let found = lookup::find::<WebhookSubscription>(service, &target.id, &target.account).await?;
    let change = WebhookUpdate { enabled: Patch::Set(enabled), ..WebhookUpdate::default() };
    Ok((found.tenant_id, found.call(service, &Records::<WebhookSubscription>::UPDATE, change).await?))
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
