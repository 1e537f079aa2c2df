//! `svc webhook`.

mod filter_test;
mod send_test;
mod statistics;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Command, Subcommand};
use serde::Serialize;
use svc_core::lookup::KindInAccount;
use svc_core::pages::Since;
use svc_core::platform::SecretRotation;
use svc_core::platform::operations::{self, Records};
use svc_core::resources::NoFilter;
use svc_core::values::{EventKind, Patch, TenantId};
use svc_core::webhooks::filters::Filter;
use svc_core::webhooks::subscriptions::{
    WebhookCreate, WebhookSubscription, WebhookSubscriptionWithSecret, WebhookUpdate,
};

use super::lookup;
use super::records::{self, CreateRecord, CreationText, RecordCommand};
use super::resource::{CreateOperation, ListOperation, ResourceCommands, UpdateOperation};
use crate::exit::Failure;
use crate::fields::with_stream;
use crate::ids::{InAccount, Target};
use crate::output::{Outcome, fields};
use crate::service::Service;
use crate::session::Session;
use crate::times::{self, moment, seconds};
use crate::values::{self, TimeArg};

/// Manage webhook subscriptions, the endpoints that events are delivered to.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc webhook list")]
pub(crate) enum WebhookCommand {
    #[command(flatten)]
    Records(RecordCommand<WebhookSubscription>),
    /// Show delivery statistics for each webhook of an account.
    ///
    /// Shows the number of attempts, the success rate, and the median and 95th percentile of their duration, for events
    /// since --since. Pending and held deliveries are counted regardless of their age.
    #[command(after_help = "Examples:\n  svc webhook stats\n  \
                      svc webhook stats --since 7d --json")]
    Stats {
        #[command(flatten)]
        account: InAccount,
        /// Count attempts for events since this time, such as '2026-03-14 15:09' in the account's time zone, or this long
        /// ago, such as 2h or 7d. A date is its start.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, default_value = "24h", value_name = "TIME")]
        since: TimeArg,
    },
    /// Enable a webhook that was disabled, or paused after ten failed attempts in a row.
    ///
    /// New events are delivered from now on. Deliveries that are held stay held; send them with `svc delivery replay`.
    /// Enabling an enabled webhook only ends a wait between its attempts.
    #[command(after_help = "Example:\n  svc webhook enable 4e80d7135c2b")]
    Enable(Target),
    /// Disable a webhook, so that nothing is delivered to it until it is enabled.
    ///
    /// Pending deliveries are held, and no deliveries are made for further events. A webhook that was paused is disabled as
    /// well, so nothing more is held for it.
    #[command(after_help = "Example:
  svc webhook disable 4e80d7135c2b")]
    Disable(Target),
    /// Delete a webhook.
    ///
    /// Its pending and held deliveries fail. Its log stays as long as that of any delivery.
    #[command(after_help = "Example:
  svc webhook delete 4e80d7135c2b")]
    Delete(Target),
    /// Send a test event to a webhook and show the result of the first attempt.
    ///
    /// The server that runs on this database delivers the event like any other, but to this webhook only. The event
    /// carries a sample record of its kind and the header `X-SVC-Test: true`. A failed attempt counts as a failure of
    /// the webhook and is retried as usual.
    #[command(after_help = "Examples:\n  svc webhook test 4e80d7135c2b\n  \
                      svc webhook test 4e80d7135c2b --event invoice.paid --timeout 1m")]
    Test {
        #[command(flatten)]
        target: Target,
        /// Kind of the event. The default is the first kind that the webhook subscribes to, or contact.created for all
        /// kinds.
        #[arg(long, value_parser = values::kind_of_event(), value_name = "KIND")]
        event: Option<EventKind>,
        /// How long to wait for the first attempt to finish.
        #[arg(long, value_parser = values::lifetime, allow_hyphen_values = true, default_value = "30s", value_name = "DURATION")]
        timeout: Duration,
    },
    /// Try the filter of a webhook on an event, and print whether it passes.
    ///
    /// The filter is that of --filter, and the event has the data of a file, or else a sample of its kind. Nothing is sent,
    /// and no database is needed.
    #[command(
        after_help = "Examples:\n  svc webhook filter-test --filter 'data.city == \"Perth\"' --event contact.created\n  \
                      echo '{\"total\": 250}' | svc webhook filter-test --filter 'data.total >= 100' --data -"
    )]
    FilterTest {
        /// The filter.
        #[arg(long, value_name = "EXPR")]
        filter: Filter,
        /// Kind of the event.
        #[arg(long, value_parser = values::kind_of_event(), value_name = "KIND", default_value = "contact.created")]
        event: EventKind,
        /// File with the data of the event as JSON, or - for stdin. Without it, the data is a sample.
        #[arg(long, value_name = "FILE|-")]
        data: Option<PathBuf>,
    },
    /// Replace the signing secret of a webhook.
    ///
    /// The new secret is printed once and cannot be shown again. During the overlap, `webhook-signature` contains a
    /// signature for each of the two secrets, and `X-SVC-Signature` still uses the old one, so that receivers keep
    /// working. Give the receivers the new secret, then run the command again with --finish, or wait for the end of the
    /// overlap.
    #[command(after_help = "Examples:\n  svc webhook rotate-secret 4e80d7135c2b\n  \
                      svc webhook rotate-secret 4e80d7135c2b --overlap 7d\n  \
                      svc webhook rotate-secret 4e80d7135c2b --finish")]
    RotateSecret {
        #[command(flatten)]
        target: Target,
        /// How long the old secret is used as well; 0s retires it immediately.
        #[arg(long, value_parser = values::duration, allow_hyphen_values = true, default_value = "24h", value_name = "DURATION")]
        overlap: Duration,
        /// End the overlap now: only the secret of the last rotation is used from now on.
        #[arg(long, conflicts_with = "overlap")]
        finish: bool,
    },
}

/// An enabled subscription in JSON output, with the number of its held deliveries: 10,000 for that many or more, null if they
/// could not be counted.
#[derive(Serialize)]
struct EnabledView<'a> {
    #[serde(flatten)]
    subscription: &'a WebhookSubscription,
    held_deliveries: Option<u64>,
}

impl ResourceCommands for WebhookSubscription {
    type ListFilter = NoFilter;
    type Create = WebhookCreate;
    type Update = WebhookUpdate;
    type Creation = WebhookSubscriptionWithSecret;
    const KIND: KindInAccount = KindInAccount::Webhook;
    const LIST: ListOperation<Self> = Records::<Self>::LIST;
    const CREATE: CreateOperation<Self> = operations::CREATE_WEBHOOK;
    const UPDATE: UpdateOperation<Self> = Records::<Self>::UPDATE;
    const CREATE_EXAMPLE: &'static str = "--url https://example.com/hooks --events invoice.paid,invoice.sent";
    const UPDATE_EXAMPLE: &'static str = "--events '*'";
    const COLUMNS: &'static [(&'static str, &'static str)] = &[
        ("ID", "id"),
        ("STATUS", "status"),
        ("URL", "url"),
        ("EVENTS", "events"),
        ("LAST STATUS", "last_delivery_status"),
    ];
    const DETAILS: &'static str = "id url events description status paused_at consecutive_failures last_delivery_at \
        last_delivery_status headers authentication filter payload max_per_second max_in_flight timeout retry_schedule \
        ordering signature signing_keys client_certificate certificate_authority created_at";
    /// As many as an account can have.
    const DEFAULT_LIMIT: &'static str = "1000";

    fn with_own_options(create: Command) -> Command {
        with_stream::<WebhookCreate>(create)
    }

    fn shown(&self) -> Vec<(&'static str, String)> {
        vec![("status", status(self).to_owned())]
    }
}

/// Returns `enabled`, `disabled` or the reason why the service disabled it.
fn status(subscription: &WebhookSubscription) -> &'static str {
    match (subscription.enabled, subscription.disabled_reason) {
        (true, _) => "enabled",
        (false, Some(reason)) => reason.as_str(),
        (false, None) => "disabled",
    }
}

pub(crate) async fn run(session: &Session, command: WebhookCommand) -> Result<Outcome, Failure> {
    match command {
        WebhookCommand::Records(RecordCommand::Create(CreateRecord { stream: Some(stream), account, .. })) => {
            let service = &session.service().await?;
            let account = lookup::account(service, &account).await?.id;
            records::create(service, account, &operations::CREATE_STREAM_WEBHOOK, &stream).await
        }
        WebhookCommand::Records(command) => records::run(session, &session.service().await?, command).await,
        WebhookCommand::Enable(target) => {
            let service = &session.service().await?;
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
            let (_, subscription) = set_enabled(&session.service().await?, &target, false).await?;
            let text = format!("Disabled webhook {}. Nothing is delivered to it from now on.", subscription.id);
            Outcome::new(&subscription, text)
        }
        WebhookCommand::Delete(target) => {
            let question = |webhook: &WebhookSubscription| {
                let url = webhook.url.as_str();
                format!("Delete the webhook to {url}? Its pending and held deliveries fail, and this cannot be undone.")
            };
            records::delete(session, &session.service().await?, &target, question).await
        }
        WebhookCommand::Stats { account, since } => {
            let service = &session.service().await?;
            let account = lookup::account(service, &account).await?.id;
            let since = times::instant(&since)?;
            statistics::run(service, account, Since(since)).await
        }
        WebhookCommand::Test { target, event, timeout } => {
            send_test::run(&session.service().await?, &target, event, timeout).await
        }
        WebhookCommand::FilterTest { filter, event, data } => {
            filter_test::run(&filter, event, data.as_deref(), &session.env.event_kinds)
        }
        WebhookCommand::RotateSecret { target, finish: true, .. } => {
            let service = &session.service().await?;
            let subscription = lookup::call(service, &target, &operations::FINISH_WEBHOOK_ROTATION, ()).await?;
            Outcome::new(
                &subscription,
                format!("Only the newest secret of webhook {} is used from now on.", subscription.id),
            )
        }
        WebhookCommand::RotateSecret { target, overlap, finish: false } => {
            let service = &session.service().await?;
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

impl CreationText for WebhookSubscriptionWithSecret {
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
