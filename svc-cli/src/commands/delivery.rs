//! `svc delivery`.

mod bulk;
mod follow;

use serde::Serialize;
use svc_core::pages;
use svc_core::platform::operations::{self, Records};
use svc_core::platform::{Delivery, DeliveryDetails, DeliveryListFilter, Listing, LogParams, ReplayCreate, Statuses};
use svc_core::values::{EventKind, TenantId, Timestamp};
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryId, DeliveryStatus, FailureReason};
use svc_core::webhooks::events::EventId;
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};
use uuid::Uuid;

use super::lookup::{self, Owned};
use super::{account, webhook};
use crate::cli::{DeliveryCommand, InAccount};
use crate::document::{Document, pretty};
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, or_dash, plain, state};
use crate::service::{CallResult, Paged as _, Service};
use crate::times::{full, full_or_dash, moment, moment_or_dash, precise};

/// Says how to find the id of a delivery.
const HINT: &str = "`svc delivery list` lists the deliveries of an account";

/// The highest number of pages of one `svc delivery list` in a row that have no delivery, each of which reads 10,000
/// deliveries.
const MAX_EMPTY_PAGES: u32 = 50;

/// A delivery in JSON output.
#[derive(Serialize)]
struct View {
    id: DeliveryId,
    event_id: EventId,
    event: EventKind,
    subscription_id: SubscriptionId,
    status: DeliveryStatus,
    attempts: u32,
    last_status: Option<i32>,
    next_attempt_at: Option<Timestamp>,
    created_at: Timestamp,
}

/// The JSON output of `svc delivery show`.
#[derive(Serialize)]
struct DetailView<'a> {
    #[serde(flatten)]
    delivery: View,
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
            let now = service.now();
            let [since, until] = [since, until].map(|time| time.map(|time| pages::Since(time.from(now))));
            let filter = DeliveryListFilter { subscription_id, status, kind: event, since, until };
            if follow {
                let since = since.or(Some(pages::Since(now)));
                let filter = DeliveryListFilter { since, until: None, ..filter };
                return follow::run(service, account, filter, json).await;
            }
            list(service, account, filter, limit).await
        }
        DeliveryCommand::Show { id, account } => {
            let found = lookup::find(service, &id, &account).await?.record;
            report(&found, "")
        }
        DeliveryCommand::Replay { id: Some(id), account, .. } => {
            let delivery = replay(service, &id, &account).await?;
            let text =
                format!("Replayed delivery {}. Its next attempt is due now.\n\n{}", delivery.id, details(&delivery));
            Outcome::new(&view(&delivery), text)
        }
        DeliveryCommand::Replay { id: None, account, subscription, since, until, status, missed, wait } => {
            let now = service.now();
            // clap requires both options when there is no id.
            let subscription = subscription.unwrap_or(IdArg::Whole(Uuid::nil()));
            let found = lookup::find::<WebhookSubscription>(service, &subscription, &account).await?;
            let input = ReplayCreate {
                subscription_id: found.record.id,
                since: since.map_or(now, |since| since.from(now)),
                until: until.map(|until| until.from(now)),
                statuses: Some(Statuses(status)),
                missed: Some(missed),
            };
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
    let found = find(service, account, filter.clone(), limit.saturating_add(1)).await;
    let (mut deliveries, is_complete) = found.or_not_found("account", account, account::HINT)?;
    // A webhook that was deleted can have deliveries.
    if let Some(id) = filter.subscription_id.filter(|_| deliveries.is_empty()) {
        match service.call(&Records::<WebhookSubscription>::GET, (account, id), ()).await {
            Err(error) if error.is_not_found() => {
                let message = format!("The account has no webhook {id}; {}.", webhook::HINT);
                return Err(Failure::new(Exit::NotFound, message));
            }
            found => found.map(drop)?,
        }
    }
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = deliveries.len() > limit;
    deliveries.truncate(limit);

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
    let views: Vec<View> = deliveries.iter().map(view).collect();
    let note = if more {
        Some("There are more deliveries; raise --limit to see them.".to_owned())
    } else if !is_complete {
        Some("Not all deliveries were searched. Name a time with --until to search what is older.".to_owned())
    } else {
        // It may have been registered once, so its deliveries can be listed.
        let unknown = filter.kind.filter(|kind| deliveries.is_empty() && !service.knows(*kind));
        unknown.map(|kind| {
            format!("There is no event kind {kind} now. If it is one of your own, name its file with --event-kinds.")
        })
    };
    Ok(Outcome::list(&views, &table, "No deliveries match.")?.with_note(note))
}

/// Finds the newest deliveries that match a filter. Stops after [`MAX_EMPTY_PAGES`]. Returns whether it did not.
async fn find(
    service: &Service,
    account: TenantId,
    filter: DeliveryListFilter,
    wanted: u32,
) -> CallResult<(Vec<Delivery>, bool)> {
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    let (mut found, mut empty) = (Vec::new(), 0);
    let mut query = Listing { page: LogParams::default(), filter };
    loop {
        query.set_limit(wanted - found.len());
        let page = service.call(&operations::LIST_DELIVERIES, account, query.clone()).await?;
        empty = if page.data.is_empty() { empty + 1 } else { 0 };
        found.extend(page.data);
        match page.next_cursor {
            Some(cursor) if found.len() < wanted && empty < MAX_EMPTY_PAGES => query.set_cursor(cursor),
            next => return Ok((found, next.is_none())),
        }
    }
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

async fn replay(service: &Service, id: &IdArg, named: &InAccount) -> Result<Delivery, Failure> {
    let Owned { tenant_id, record } = lookup::find::<DeliveryDetails>(service, id, named).await?;
    let id = record.delivery.id;
    let replayed = service.call(&operations::REPLAY_DELIVERY, (tenant_id, id), ()).await;
    replayed.or_not_found("delivery", id, HINT)
}

fn view(delivery: &Delivery) -> View {
    View {
        id: delivery.id,
        event_id: delivery.event_id,
        event: delivery.event,
        subscription_id: delivery.subscription_id,
        status: delivery.status,
        attempts: delivery.attempts,
        last_status: delivery.last_status,
        next_attempt_at: delivery.next_attempt_at,
        created_at: delivery.created_at,
    }
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
