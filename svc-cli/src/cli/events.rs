//! `svc delivery`, `svc event`, `svc trigger` and `svc listen`.

use std::path::PathBuf;

use clap::{Args, Subcommand, value_parser};
use hyper::{StatusCode, Uri};
use svc_core::values::EventKind;
use svc_core::values::Secret;
use svc_core::webhooks::deliveries::DeliveryStatus;

use super::InAccount;
use crate::ids::IdArg;
use crate::values::{self, TimeArg};

/// `svc delivery …`
#[derive(Clone, Debug, Subcommand)]
pub enum DeliveryCommand {
    /// List the deliveries of an account, newest first.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  svc delivery list\n  \
                      svc delivery list --status failed --event invoice.paid --since 7d"
    )]
    List {
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// List only deliveries to the webhook subscription with this id.
        #[arg(long, value_name = "ID")]
        subscription: Option<IdArg>,
        /// List only deliveries with this status.
        #[arg(long, value_parser = values::delivery_statuses())]
        status: Option<DeliveryStatus>,
        /// List only deliveries of events of this kind, also of one that is no longer in the file of --event-kinds.
        #[arg(long, value_parser = values::kind_of_event(), value_name = "KIND")]
        event: Option<EventKind>,
        /// List only deliveries of events since this time, such as 2026-03-14T15:09:26Z, or this long ago, such as 2h
        /// or 7d. A date, such as 2026-03-14, is its start in the account's time zone.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
        since: Option<TimeArg>,
        /// List only deliveries of events before this time, or before this long ago. A date is its start in the account's time
        /// zone.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
        #[arg(conflicts_with = "follow")]
        until: Option<TimeArg>,
        /// Maximum number of deliveries to list.
        #[arg(long, value_parser = value_parser!(u32).range(1..), default_value = "50", value_name = "N")]
        limit: u32,
        /// Print a line whenever a delivery is created or makes progress, until Ctrl-C.
        ///
        /// Starts now, or at --since. With --json, each line is a JSON document.
        #[arg(long, short, conflicts_with = "limit")]
        follow: bool,
    },
    /// Show a delivery, the log of its attempts and its body.
    ///
    /// The log has the newest 20 attempts, or all with --all-attempts. The body is that of the last attempt. Each attempt has its
    /// own `delivered_at` and its own signature.
    #[command(after_help = "Examples:\n  svc delivery show 0195a3c6\n  svc delivery show 0195a3c6 --all-attempts")]
    Show {
        /// Id of the delivery, which each attempt sends in the X-SVC-Delivery header.
        id: IdArg,
        /// Show all attempts of a delivery that was replayed often.
        #[arg(long)]
        all_attempts: bool,
        /// The account that owns the delivery.
        #[command(flatten)]
        account: InAccount,
    },
    /// Replay one delivery, or many deliveries of one webhook.
    ///
    /// A replay sends the same delivery again: its id stays the same and its attempts continue to be counted, but its
    /// retry schedule starts over. A running server makes the attempts immediately; otherwise they are made when a
    /// server starts. A delivery can be replayed in any status, as long as its webhook is enabled and no attempt is in
    /// progress.
    ///
    /// With --subscription, the server replays all selected deliveries at the pace of the endpoint and continues after
    /// a restart.
    #[command(after_help = "Examples:\n  svc delivery replay 0195a3c6\n  \
                      svc delivery replay --subscription 0195a3c5 --since 2d\n  \
                      svc delivery replay --subscription 0195a3c5 \\\n    \
                      --since 2026-03-01T00:00:00Z --until 2026-03-02T00:00:00Z --status failed,held --missed --wait")]
    Replay {
        /// Id of the delivery to replay.
        #[arg(required_unless_present = "subscription", conflicts_with = "subscription")]
        id: Option<IdArg>,
        /// The account that owns the delivery.
        #[command(flatten)]
        account: InAccount,
        /// Replay deliveries of the webhook subscription with this id, instead of one delivery.
        #[arg(long, value_name = "ID", requires = "since")]
        subscription: Option<IdArg>,
        /// Replay deliveries of events since this time, such as 2026-03-14T15:09:26Z, or this long ago, such as 2h or
        /// 7d. A date, such as 2026-03-14, is its start in the account's time zone.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "id")]
        since: Option<TimeArg>,
        /// Replay deliveries of events before this time. A date is its start in the account's time zone. The default is now.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "id")]
        until: Option<TimeArg>,
        /// Replay deliveries with these statuses, separated by commas. The default is failed,held.
        #[arg(long, value_parser = values::delivery_statuses(), value_delimiter = ',', value_name = "STATUS", conflicts_with = "id")]
        status: Vec<DeliveryStatus>,
        /// Also send events that the webhook missed because it was disabled or did not exist yet.
        #[arg(long, conflicts_with = "id")]
        missed: bool,
        /// Wait until the server has scheduled all selected deliveries.
        ///
        /// The attempts themselves follow at the pace of the endpoint. Ctrl-C stops the waiting, not the replay.
        #[arg(long, conflicts_with = "id")]
        wait: bool,
    },
    /// List the bulk replays of an account and their progress, newest first.
    ///
    /// The progress is a share of what was to be replayed when it was requested, such as `1,234 of 5,678 (21%)`. It is
    /// counted up to 10,000; with more, shown as `10,000+`, the percentage is that of the time span.
    ///
    /// A replay that finished below 100% was stopped early: its webhook was disabled or paused meanwhile, or a
    /// delivery cannot be read. The deliveries that it did not reach are unchanged.
    #[command(after_help = "Example:\n  svc delivery replays")]
    Replays {
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// Maximum number of replays to list.
        #[arg(long, value_parser = value_parser!(u32).range(1..), default_value = "50", value_name = "N")]
        limit: u32,
    },
}

/// `svc event …`
#[derive(Clone, Debug, Subcommand)]
pub enum EventCommand {
    /// List the events of an account, newest first.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  svc event list\n  svc event list --kind invoice.paid --since 2026-11-01"
    )]
    List {
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// List only events of this kind.
        #[arg(long, value_parser = values::kind_of_event(), hide_possible_values = true, value_name = "KIND")]
        kind: Option<EventKind>,
        /// List only events since this time, such as 2026-03-14T15:09:26Z, or this long ago, such as 2h or 7d. A date, such as
        /// 2026-03-14, is its start in the account's time zone.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME")]
        since: Option<TimeArg>,
        /// Maximum number of events to list.
        #[arg(long, value_parser = value_parser!(u32).range(1..=2000), default_value = "50", value_name = "N")]
        limit: u32,
    },
    /// Show an event, the record in it and its deliveries.
    #[command(after_help = "Example:\n  svc event show 0195a3c8")]
    Show {
        /// Id of the event, or a part of it that no other one has.
        id: IdArg,
        /// The account that owns the event.
        #[command(flatten)]
        account: InAccount,
    },
    /// Emit an event about a stay or a cohort, or of a kind of --event-kinds.
    ///
    /// The event is delivered to the account's webhooks that subscribe to its kind. Events of all other kinds are
    /// emitted only by the operations that they report.
    #[command(after_help = "Examples:\n  svc event emit --kind stay.created --data stay.json\n  \
                      echo '{\"id\": \"stay-1\"}' | svc event emit --kind stay.checked_in --data -")]
    Emit {
        /// The account.
        #[command(flatten)]
        account: InAccount,
        /// Kind of the event.
        #[arg(long, value_parser = values::KindToEmit)]
        kind: EventKind,
        /// File with the record that the event is about, or - for stdin: a JSON object, at most 1 MiB. It fits the
        /// schema of its kind in the file of --event-kinds; that of a stay or a cohort has an `id`.
        #[arg(long, value_name = "FILE|-")]
        data: PathBuf,
    },
}

/// `svc trigger`
#[derive(Args, Clone, Debug)]
pub struct Trigger {
    /// Kind of the event.
    #[arg(value_parser = values::kind_of_event(), hide_possible_values = true)]
    pub kind: EventKind,
    /// The account.
    #[command(flatten)]
    pub account: InAccount,
}

/// `svc listen`
#[derive(Args, Clone, Debug)]
pub struct Listen {
    /// Port to listen on; 0 picks a free port. The default is 9000, or a free port without --secret.
    #[arg(long)]
    pub port: Option<u16>,
    /// The account whose events are received, without --secret.
    #[command(flatten)]
    pub account: InAccount,
    /// Kinds of events to receive, separated by commas. The default is all of them.
    #[arg(
        long,
        value_parser = values::kind_of_event(),
        hide_possible_values = true,
        value_delimiter = ',',
        conflicts_with = "secrets",
        value_name = "KIND,…"
    )]
    pub events: Vec<EventKind>,
    /// Signing secret of a webhook that exists, including whsec_. Repeat the option while the secret is being rotated.
    #[arg(
        long = "secret",
        env = "SVC_WEBHOOK_SECRET",
        hide_env_values = true,
        value_parser = values::secret,
        value_name = "whsec_…"
    )]
    pub secrets: Vec<Secret>,
    /// Accept deliveries that were sent more than five minutes ago, such as recorded ones.
    #[arg(long)]
    pub any_age: bool,
    /// Respond to every request with this status, from 300 to 599.
    #[arg(long, value_parser = values::failing_status, conflicts_with = "forward_to", value_name = "STATUS")]
    pub fail: Option<StatusCode>,
    /// Forward every POST request to this http:// URL, verified or not, and return its response. The scheme can be
    /// omitted, and a number is a port of this machine: 3000, or localhost:3000/webhooks.
    #[arg(long, value_parser = values::http_url, value_name = "URL")]
    pub forward_to: Option<Uri>,
    /// Print one JSON object per line, as --json does.
    #[arg(long)]
    pub print_json: bool,
}
