//! `svc webhook`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use svc_core::values::EventKind;
use svc_core::webhooks::filters::Filter;
use svc_core::webhooks::subscriptions::WebhookSubscription;

use super::InAccount;
use super::records::{RecordCommand, Target};
use crate::values::{self, TimeArg};

/// `svc webhook …`
#[derive(Clone, Debug, Subcommand)]
pub enum WebhookCommand {
    /// `list`, `show`, `create` and `update`.
    #[command(flatten)]
    Records(RecordCommand<WebhookSubscription>),
    /// Show delivery statistics for each webhook of an account.
    ///
    /// Shows the number of attempts, the success rate, and the median and 95th percentile of their duration, for events
    /// since --since. Pending and held deliveries are counted regardless of their age.
    #[command(after_help = "Examples:\n  svc webhook stats\n  \
                      svc webhook stats --since 7d --json")]
    Stats {
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// Count attempts for events since this time, such as 2026-03-14T15:09:26Z, or this long ago, such as 2h or 7d.
        /// A date, such as 2026-03-14, is its start in the account's time zone.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, default_value = "24h", value_name = "TIME")]
        since: TimeArg,
    },
    /// Enable a webhook that was disabled, or paused after ten failed attempts in a row.
    ///
    /// New events are delivered from now on. Deliveries that are held stay held; send them with `svc delivery replay`.
    /// Enabling an enabled webhook changes nothing.
    #[command(after_help = "Example:\n  svc webhook enable 0195a3c5")]
    Enable(Target),
    /// Disable a webhook, so that nothing is delivered to it until it is enabled.
    ///
    /// Pending deliveries are held, and no deliveries are made for further events. A webhook that was paused is disabled as
    /// well, so nothing more is held for it.
    #[command(after_help = "Example:
  svc webhook disable 0195a3c5")]
    Disable(Target),
    /// Delete a webhook.
    ///
    /// Its pending and held deliveries fail. Its log stays as long as that of any delivery.
    #[command(after_help = "Example:
  svc webhook delete 0195a3c5")]
    Delete(Target),
    /// Send a test event to a webhook and show the result of the first attempt.
    ///
    /// The server that runs on this database delivers the event like any other, but to this webhook only. The event
    /// carries a sample record of its kind and the header `X-SVC-Test: true`. A failed attempt counts as a failure of
    /// the webhook and is retried as usual.
    #[command(after_help = "Examples:\n  svc webhook test 0195a3c5\n  \
                      svc webhook test 0195a3c5 --event invoice.paid --timeout 1m")]
    Test {
        /// The webhook, which must be enabled.
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
    #[command(after_help = "Examples:\n  svc webhook rotate-secret 0195a3c5\n  \
                      svc webhook rotate-secret 0195a3c5 --overlap 7d\n  \
                      svc webhook rotate-secret 0195a3c5 --finish")]
    RotateSecret {
        /// The webhook.
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
