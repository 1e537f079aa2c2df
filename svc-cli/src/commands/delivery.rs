//! `svc delivery`.

mod bulk;
mod follow;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Subcommand, value_parser};
use serde::Serialize;
use serde_json::Value;
use svc_core::pages::Since;
use svc_core::platform::operations::{self, LIST_DELIVERIES, Records};
use svc_core::platform::{
    Delivery, DeliveryAttemptListParams, DeliveryDetails, DeliveryListFilter, ReplayCreate, ReplaySelection, Statuses,
    WebhookDeliveryListFilter,
};
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryId, DeliveryStatus, FailureReason};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use super::lookup;
use crate::document::Document;
use crate::exit::{Exit, Failure};
use crate::ids::{IdArg, InAccount};
use crate::output::{Outcome, Table, or_dash, plain, pretty};
use crate::record::{Property, details, json_without, optional, state, table, text, time};
use crate::service::{CallResult, Service, cut};
use crate::session::Session;
use crate::times::{self, precise};
use crate::values::{self, TimeArg};

/// Inspect and replay deliveries, each of which sends one event to one webhook.
#[derive(Clone, Debug, Subcommand)]
#[command(after_help = "Example:\n  svc delivery list --status failed")]
pub(crate) enum DeliveryCommand {
    /// List the deliveries of an account, newest first.
    #[command(
        visible_alias = "ls",
        after_help = "Examples:\n  svc delivery list\n  \
                      svc delivery list --status failed --event invoice.paid --since 7d"
    )]
    List {
        #[command(flatten)]
        account: InAccount,
        /// List only deliveries to the webhook subscription with this id.
        #[arg(long, value_name = "ID")]
        subscription: Option<IdArg>,
        /// List only deliveries with this status.
        #[arg(long, value_parser = statuses())]
        status: Option<DeliveryStatus>,
        /// List only deliveries of events of this kind, also of one that is no longer in the file of --event-kinds.
        #[arg(long, value_parser = values::kind_of_event(), value_name = "KIND")]
        event: Option<EventKind>,
        /// List only deliveries of events since this time, such as '2026-03-14 15:09' in the account's time zone, or this
        /// long ago, such as 2h or 7d. A date is its start.
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
    #[command(
        after_help = "Examples:\n  svc delivery show 91fb3a6d08e4\n  svc delivery show 91fb3a6d08e4 --all-attempts"
    )]
    Show {
        /// Id of the delivery, which each attempt sends in the X-SVC-Delivery header.
        id: IdArg,
        /// Show all attempts of a delivery that was replayed often.
        #[arg(long)]
        all_attempts: bool,
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
    #[command(after_help = "Examples:\n  svc delivery replay 91fb3a6d08e4\n  \
                      svc delivery replay --subscription 4e80d7135c2b --since 2d\n  \
                      svc delivery replay --subscription 4e80d7135c2b \\\n    \
                      --since 2026-03-01 --until '2026-03-02 12:00' --status failed,held --missed --wait")]
    Replay {
        /// Id of the delivery to replay.
        #[arg(required_unless_present = "subscription", conflicts_with = "subscription")]
        id: Option<IdArg>,
        #[command(flatten)]
        account: InAccount,
        /// Replay deliveries of the webhook subscription with this id, instead of one delivery.
        #[arg(long, value_name = "ID", requires = "since")]
        subscription: Option<IdArg>,
        /// Replay deliveries of events since this time, such as '2026-03-14 15:09' in the account's time zone, or this long
        /// ago, such as 2h or 7d. A date is its start.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "id")]
        since: Option<TimeArg>,
        /// Replay deliveries of events before this time. A date is its start in the account's time zone. The default is now.
        #[arg(long, value_parser = values::since, allow_hyphen_values = true, value_name = "TIME", conflicts_with = "id")]
        until: Option<TimeArg>,
        /// Replay deliveries with these statuses, separated by commas. The default is failed,held.
        #[arg(long, value_parser = statuses(), value_delimiter = ',', value_name = "STATUS", conflicts_with = "id")]
        status: Vec<DeliveryStatus>,
        /// Include events that the webhook missed because it was disabled or did not exist yet.
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
        #[command(flatten)]
        account: InAccount,
        /// Maximum number of replays to list.
        #[arg(long, value_parser = value_parser!(u32).range(1..), default_value = "50", value_name = "N")]
        limit: u32,
    },
}

/// The JSON output of `svc delivery show`.
#[derive(Serialize)]
struct DetailView<'a> {
    #[serde(flatten)]
    delivery: Value,
    failure_reason: Option<FailureReason>,
    log: &'a [AttemptLog],
    body: Envelope,
}

/// The body that is sent to the webhook.
#[derive(Serialize)]
struct Envelope {
    event: EventKind,
    data: Document,
    delivered_at: Option<Timestamp>,
    tenant_id: TenantId,
}

/// Returns a parser for the status of a delivery.
fn statuses() -> impl TypedValueParser<Value = DeliveryStatus> {
    PossibleValuesParser::new(DeliveryStatus::ALL.iter().map(|status| status.as_str()))
        .try_map(|text| DeliveryStatus::from_text(&text).ok_or("must be the status of a delivery"))
}

pub(crate) async fn run(session: &Session, command: DeliveryCommand) -> Result<Outcome, Failure> {
    if let DeliveryCommand::List { follow: true, .. } = command {
        session.refuse_csv("--follow; use --output json, or omit it")?;
    }
    let service = &session.service().await?;
    match command {
        DeliveryCommand::List { account, subscription, status, event, since, until, limit, follow } => {
            let account =
                lookup::account_with::<WebhookSubscription>(service, &account, subscription.as_ref()).await?.id;
            let subscription_id = lookup::optional_id::<WebhookSubscription>(service, account, subscription).await?;
            let since = times::since(since.as_ref())?;
            let until = times::since(until.as_ref())?;
            let of_webhook = WebhookDeliveryListFilter { status, kind: event, since, until };
            let filter = DeliveryListFilter { subscription_id, of_webhook };
            if follow {
                let since = since.or(Some(Since(service.now())));
                let of_webhook = WebhookDeliveryListFilter { since, until: None, ..of_webhook };
                let filter = DeliveryListFilter { of_webhook, ..filter };
                return follow::run(service, account, filter, session.is_json()).await;
            }
            list(service, account, filter, limit).await
        }
        DeliveryCommand::Show { id, all_attempts, account } => {
            let found = lookup::find::<DeliveryDetails>(service, &id, &account).await?;
            let mut record = found.record;
            if all_attempts {
                record.log = all_attempts_of(service, (found.tenant_id, record.delivery.id)).await?;
            }
            report(&record, "")
        }
        DeliveryCommand::Replay { id: Some(id), account, .. } => {
            let found = lookup::find::<DeliveryDetails>(service, &id, &account).await?;
            let delivery = found.call(service, &operations::REPLAY_DELIVERY, ()).await?;
            let text = format!(
                "Replayed delivery {}. Its next attempt is due now.\n\n{}",
                delivery.id,
                details(describe(&delivery))
            );
            Outcome::new(&view(&delivery), text)
        }
        DeliveryCommand::Replay { id: None, account, subscription, since, until, status, missed, wait } => {
            // clap requires both options when there is no id.
            let subscription = subscription.unwrap_or(IdArg::Whole(Uuid::nil()));
            let found = lookup::find::<WebhookSubscription>(service, &subscription, &account).await?;
            session.confirm(&format!(
                "Replay deliveries of the webhook to {}? Its receiver may get events a second time.",
                found.record.url.as_str()
            ))?;
            let since = times::since(since.as_ref())?;
            let until = times::since(until.as_ref())?;
            let selection = ReplaySelection {
                since: since.map_or(service.now(), |since| since.0),
                until: until.map(|until| until.0),
                statuses: Some(Statuses(status)),
                missed: Some(missed),
            };
            let input = ReplayCreate { subscription_id: found.record.id, selection };
            bulk::replay(service, found.tenant_id, input, wait).await
        }
        DeliveryCommand::Replays { account, limit } => {
            bulk::list(service, lookup::account(service, &account).await?.id, limit).await
        }
    }
}

async fn list(
    service: &Service,
    account: TenantId,
    filter: DeliveryListFilter,
    limit: u32,
) -> Result<Outcome, Failure> {
    // One delivery more than the limit tells whether there are more.
    let (mut deliveries, is_incomplete) =
        service.newest(&LIST_DELIVERIES, account, &filter, limit.saturating_add(1)).await?;
    // A webhook that was deleted can have deliveries.
    if let Some(id) = filter.subscription_id.filter(|_| deliveries.is_empty()) {
        match service.call(&Records::<WebhookSubscription>::GET, (account, id), ()).await {
            Err(error) if error.is_not_found() => {
                let message =
                    format!("The account has no webhook {id}; `svc webhook list` lists the webhooks of an account.");
                return Err(Failure::new(Exit::NotFound, message));
            }
            found => found.map(drop)?,
        }
    }
    let more = cut(&mut deliveries, limit);
    let views: Vec<Value> = deliveries.iter().map(view).collect();
    let note = if more {
        Some("There are more deliveries; raise --limit to see them.".to_owned())
    } else if is_incomplete {
        Some("Not all deliveries were searched. Name a time with --until to search what is older.".to_owned())
    } else {
        // It may have been registered once, so its deliveries can be listed.
        let unknown = filter.of_webhook.kind.filter(|kind| deliveries.is_empty() && !service.knows(*kind));
        unknown.map(|kind| {
            format!("There is no event kind {kind} now. If it is one of your own, name its file with --event-kinds.")
        })
    };
    Ok(Outcome::list(&views, &table(&deliveries, describe), "No deliveries match.")?.with_note(note))
}

/// Returns all attempts at a delivery, the first one first.
async fn all_attempts_of(service: &Service, delivery: (TenantId, DeliveryId)) -> CallResult<Vec<AttemptLog>> {
    let (mut log, mut params) = (Vec::new(), DeliveryAttemptListParams::default());
    loop {
        let page = service.call(&operations::LIST_DELIVERY_ATTEMPTS, delivery, params).await?;
        log.extend(page.data);
        let Some(next) = page.next_cursor else { break };
        params = DeliveryAttemptListParams { cursor: Some(next.into()) };
    }
    log.reverse();
    Ok(log)
}

/// Returns the detailed view of a delivery as the result of a command. For people, `introduction` comes first.
pub(super) fn report(record: &DeliveryDetails, introduction: &str) -> Result<Outcome, Failure> {
    let DeliveryDetails { delivery, event, log } = record;
    let last = log.last();
    let body = Envelope {
        event: event.kind,
        data: Document::parse(event.data.0.get().as_bytes()),
        delivered_at: last.map(|last| last.started_at),
        tenant_id: event.tenant_id,
    };

    let mut text = format!("{introduction}{}", details(describe(delivery)));
    if let Some(last) = last {
        text.push('\n');
        text.push_str(&attempts(log).to_text());
        if log.len() >= 20 && log.first().is_some_and(|first| first.attempt > 1) {
            text.push_str("\nThere may be earlier attempts; --all-attempts shows them.\n");
        }
        if let Some(response) = last.response_body.as_deref().filter(|body| !body.is_empty()) {
            let truncated = if last.response_truncated { " (truncated)" } else { "" };
            text.push_str(&format!(
                "\nResponse to attempt {}{truncated}:\n{}\n",
                last.attempt,
                plain(response).trim_end()
            ));
        }
    }
    text.push_str(&format!("\nBody:\n{}\n", pretty(&body)));
    let failure_reason = delivery.failure_reason;
    Outcome::new(&DetailView { delivery: view(delivery), failure_reason, log, body }, text)
}

/// Formats a delivery as JSON.
pub(super) fn view(delivery: &Delivery) -> Value {
    json_without(delivery, &["failure_reason"])
}

fn attempts(log: &[AttemptLog]) -> Table {
    Table::new(["ATTEMPT", "STARTED", "DURATION", "STATUS", "ERROR", "ADDRESS"], log, |log| {
        [
            log.attempt.to_string(),
            precise(log.started_at),
            format!("{} ms", log.duration_ms),
            log.status.to_string(),
            or_dash(log.error.as_deref().map(plain)),
            or_dash(log.remote_addr.as_deref()),
        ]
    })
}

fn describe(delivery: &Delivery) -> Vec<Property> {
    let reason = delivery.failure_reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    vec![
        text("id", delivery.id).column(1, "ID"),
        text("event", delivery.event).column(2, "EVENT"),
        text("event id", delivery.event_id),
        text("webhook", delivery.subscription_id).column(8, "WEBHOOK"),
        state("", delivery.status).column(3, "STATUS"),
        text("status", format!("{}{reason}", delivery.status)),
        text("attempts", delivery.attempts).column(5, "ATTEMPTS"),
        optional("last status", delivery.last_status).column(4, "LAST STATUS"),
        time("next attempt at", delivery.next_attempt_at).column(7, "NEXT ATTEMPT"),
        time("created at", delivery.created_at).column(6, "CREATED"),
    ]
}
