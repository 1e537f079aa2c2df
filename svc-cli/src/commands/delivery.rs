//! `svc delivery`.

mod bulk;
mod follow;

use serde::Serialize;
use serde_json::{Value, json};
use svc_core::operation::Listing;
use svc_core::pages::Since;
use svc_core::platform::operations::{self, Records};
use svc_core::platform::{
    Delivery, DeliveryAttemptListParams, DeliveryDetails, DeliveryListFilter, LogParams, ReplayCreate, ReplaySelection,
    Statuses, WebhookDeliveryListFilter,
};
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryId, FailureReason};
use svc_core::webhooks::subscriptions::WebhookSubscription;
use uuid::Uuid;

use super::{lookup, webhook};
use crate::cli::DeliveryCommand;
use crate::document::{Document, pretty};
use crate::exit::{Exit, Failure};
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, or_dash, plain, state};
use crate::service::{CallResult, Service, cut};
use crate::times::{full, full_or_dash, moment, moment_or_dash, precise};

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

pub(super) async fn run(service: &Service, command: DeliveryCommand, json: bool) -> Result<Outcome, Failure> {
    match command {
        DeliveryCommand::List { account, subscription, status, event, since, until, limit, follow } => {
            let account = lookup::account(service, &account).await?.id;
            let subscription_id = webhook::id_in(service, account, subscription).await?;
            let since = lookup::since_in(service, account, since).await?;
            let until = lookup::since_in(service, account, until).await?;
            let of_webhook = WebhookDeliveryListFilter { status, kind: event, since, until };
            let filter = DeliveryListFilter { subscription_id, of_webhook };
            if follow {
                let since = since.or(Some(Since(service.now())));
                let of_webhook = WebhookDeliveryListFilter { since, until: None, ..of_webhook };
                let filter = DeliveryListFilter { of_webhook, ..filter };
                return follow::run(service, account, filter, json).await;
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
            let text =
                format!("Replayed delivery {}. Its next attempt is due now.\n\n{}", delivery.id, details(&delivery));
            Outcome::new(&view(&delivery), text)
        }
        DeliveryCommand::Replay { id: None, account, subscription, since, until, status, missed, wait } => {
            // clap requires both options when there is no id.
            let subscription = subscription.unwrap_or(IdArg::Whole(Uuid::nil()));
            let found = lookup::find::<WebhookSubscription>(service, &subscription, &account).await?;
            let since = lookup::since_in(service, found.tenant_id, since).await?;
            let until = lookup::since_in(service, found.tenant_id, until).await?;
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
    let (mut deliveries, is_incomplete) = newest(service, account, &filter, limit.saturating_add(1)).await?;
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

    let heading = ["ID", "EVENT", "STATUS", "LAST STATUS", "ATTEMPTS", "CREATED", "NEXT ATTEMPT", "WEBHOOK"];
    let table = Table::new(heading, &deliveries, |delivery| {
        [
            delivery.id.to_string(),
            delivery.event.to_string(),
            state(delivery.status),
            or_dash(delivery.last_status),
            delivery.attempts.to_string(),
            full(delivery.created_at),
            full_or_dash(delivery.next_attempt_at),
            delivery.subscription_id.to_string(),
        ]
    });
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
    Ok(Outcome::list(&views, &table, "No deliveries match.")?.with_note(note))
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

/// Returns the newest deliveries that match a filter, and whether there may be others.
pub(super) async fn newest(
    service: &Service,
    account: TenantId,
    filter: &DeliveryListFilter,
    wanted: u32,
) -> CallResult<(Vec<Delivery>, bool)> {
    let query = |limit, cursor: Option<Uuid>| {
        let page = LogParams { limit, cursor: cursor.map(Into::into) };
        Listing { page, filter: filter.clone() }
    };
    service.list(&operations::LIST_DELIVERIES, account, wanted, query).await
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

    let mut text = format!("{introduction}{}", details(delivery));
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
    json!({
        "id": delivery.id,
        "event_id": delivery.event_id,
        "event": delivery.event,
        "subscription_id": delivery.subscription_id,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "last_status": delivery.last_status,
        "next_attempt_at": delivery.next_attempt_at,
        "created_at": delivery.created_at,
    })
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

fn details(delivery: &Delivery) -> String {
    let status = match delivery.failure_reason {
        Some(reason) => format!("{}: {reason}", delivery.status),
        None => delivery.status.to_string(),
    };
    fields([
        ("id", delivery.id.to_string()),
        ("event", delivery.event.to_string()),
        ("event id", delivery.event_id.to_string()),
        ("webhook", delivery.subscription_id.to_string()),
        ("status", status),
        ("attempts", delivery.attempts.to_string()),
        ("last status", or_dash(delivery.last_status)),
        ("next attempt at", moment_or_dash(delivery.next_attempt_at)),
        ("created at", moment(delivery.created_at)),
    ])
}
