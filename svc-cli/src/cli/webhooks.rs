//! `svc webhook`.

use std::time::Duration;

use clap::Subcommand;
use svc_core::values::EventKind;
use svc_core::values::{TenantId, parse_uuid};
use uuid::Uuid;

use crate::values::{self, Since};

/// `svc webhook …`
#[derive(Clone, Debug, Subcommand)]
pub enum WebhookCommand {
    /// List the webhooks of a tenant, newest first.
    #[command(after_help = "Example:\n  svc webhook list --tenant 0195a3c8-0000-7000-8000-000000000001")]
    List {
        /// Id of the tenant.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: TenantId,
    },
    /// Show a webhook.
    #[command(after_help = "Example:\n  svc webhook show 0195a3c8-0000-7000-8000-000000000005")]
    Show {
        /// Id of the webhook.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Tell how well the webhooks of a tenant take their deliveries.
    ///
    /// Counts the attempts at deliveries of events since a time: how many succeeded, and how long half of them and 95
    /// in 100 took at most. What is pending or held is counted whenever it happened.
    #[command(after_help = "Examples:\n  svc webhook stats --tenant 0195a3c8-0000-7000-8000-000000000001\n  \
                      svc webhook stats --tenant 0195a3c8-0000-7000-8000-000000000001 --since 7d --json")]
    Stats {
        /// Id of the tenant.
        #[arg(long, value_parser = values::tenant_id, value_name = "ID")]
        tenant: TenantId,
        /// Events since then: a time such as 2026-03-14T15:09:26Z, or back from now such as 2h or 7d.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, default_value = "24h", value_name = "TIME")]
        since: Since,
    },
    /// Send a webhook its events again.
    ///
    /// For one that was disabled, or paused after ten failed attempts in a row. What was held until now stays
    /// held: `svc delivery replay` sends it. Enabling it again changes nothing.
    #[command(after_help = "Example:\n  svc webhook enable 0195a3c8-0000-7000-8000-000000000005")]
    Enable {
        /// Id of the webhook.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
    },
    /// Send a webhook a test, and tell what came of it.
    ///
    /// The event goes the way of all events, from the server that runs on this database, but to this webhook alone.
    /// Its data is an id and `"test": true`. An attempt that fails counts and is tried again like any other.
    #[command(after_help = "Examples:\n  svc webhook test 0195a3c8-0000-7000-8000-000000000005\n  \
                      svc webhook test 0195a3c8-0000-7000-8000-000000000005 --event invoice.paid --timeout 1m")]
    Test {
        /// Id of the webhook, which must be enabled.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
        /// Kind of the event; the first that the webhook takes when left out, contact.created if it takes all.
        #[arg(long, value_parser = values::event_kinds(), value_name = "KIND")]
        event: Option<EventKind>,
        /// How long to wait for the end of the first attempt.
        #[arg(long, value_parser = values::lifetime, allow_hyphen_values = true, default_value = "30s", value_name = "DURATION")]
        timeout: Duration,
    },
    /// Replace the signing secret of a webhook.
    ///
    /// The new secret is printed once. While they overlap, `webhook-signature` carries a signature of each;
    /// `X-SVC-Signature` is made with the new one at once.
    #[command(after_help = "Examples:\n  svc webhook rotate-secret 0195a3c8-0000-7000-8000-000000000005\n  \
                      svc webhook rotate-secret 0195a3c8-0000-7000-8000-000000000005 --overlap 7d")]
    RotateSecret {
        /// Id of the webhook.
        #[arg(value_parser = parse_uuid)]
        id: Uuid,
        /// For how long the old secret signs as well; 0s ends it at once.
        #[arg(long, value_parser = values::duration, allow_hyphen_values = true, default_value = "24h", value_name = "DURATION")]
        overlap: Duration,
    },
}
