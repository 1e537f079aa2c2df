//! `svc delivery`.

mod bulk;
mod follow;

use serde::Serialize;
use svc_core::accounts::tenants;
use svc_core::error::{Error, StoreError};
use svc_core::store::{DeliveryFilter, Repository, Store};
use svc_core::values::EventKind;
use svc_core::values::{TenantId, Timestamp};
use svc_core::webhooks::deliveries::{
    self, AttemptLog, Delivery, DeliveryId, DeliveryStatus, FailureReason, SearchResult,
};
use svc_core::webhooks::events::{Event, EventId};
use svc_core::webhooks::replays::{self, ReplayCreate};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};
use uuid::Uuid;

use super::{lookup, tenant, webhook};
use crate::cli::{DeliveryCommand, InTenant};
use crate::document::{Document, pretty};
use crate::exit::{Exit, Failure, OrNotFound as _};
use crate::ids::IdArg;
use crate::output::{Outcome, Table, fields, or_dash, plain, state};
use crate::times::{full, full_or_dash, moment, moment_or_dash, precise};

/// Says how to find the id of a delivery.
const HINT: &str = "`svc delivery list` lists the deliveries of a tenant";

/// The highest number of searches of one `svc delivery list`, each of which reads 10,000 deliveries.
const MAX_SEARCHES: u32 = 50;

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

/// A delivery with its event and the log of its attempts.
pub(super) struct Record {
    pub(super) delivery: Delivery,
    event: Event,
    pub(super) log: Vec<AttemptLog>,
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

pub(super) async fn run(store: &dyn Store, command: DeliveryCommand, json: bool) -> Result<Outcome, Failure> {
    match command {
        DeliveryCommand::List { tenant, subscription, status, event, since, until: _, limit: _, follow: true } => {
            let tenant = lookup::tenant(store, &tenant).await?.id;
            let subscription = webhook::id_in(store, tenant, subscription).await?;
            let now = store.env().now();
            let since = Some(since.map_or(now, |since| since.from(now)));
            let filter =
                DeliveryFilter { subscription_id: subscription, status, kind: event, since, ..Default::default() };
            follow::run(store, tenant, filter, json).await
        }
        DeliveryCommand::List { tenant, subscription, status, event, since, until, limit, follow: false } => {
            let tenant = lookup::tenant(store, &tenant).await?.id;
            let subscription = webhook::id_in(store, tenant, subscription).await?;
            let [since, until] = [since, until].map(|time| time.map(|time| time.from(store.env().now())));
            let filter = DeliveryFilter {
                subscription_id: subscription,
                status,
                kind: event,
                since,
                until,
                limit,
                ..Default::default()
            };
            list(store, tenant, filter).await
        }
        DeliveryCommand::Show { id, tenant } => {
            let Delivery { tenant_id, id, .. } = lookup::find::<Delivery>(store, &id, &tenant).await?.record;
            report(&read(store, tenant_id, id).await.or_not_found("delivery", id, HINT)?, "")
        }
        DeliveryCommand::Replay { id: Some(id), tenant, .. } => {
            let delivery = replay(store, &id, &tenant).await?;
            let text =
                format!("Replayed delivery {}. Its next attempt is due now.\n\n{}", delivery.id, details(&delivery));
            Outcome::new(&view(&delivery), text)
        }
        DeliveryCommand::Replay { id: None, tenant, subscription, since, until, status, missed, wait } => {
            let now = store.env().now();
            // clap requires both options when there is no id.
            let subscription = subscription.unwrap_or(IdArg::Whole(Uuid::nil()));
            let found = lookup::find::<WebhookSubscription>(store, &subscription, &tenant).await?;
            let (tenant, subscription) = (found.tenant_id, found.record.id);
            let since = since.map_or(now, |since| since.from(now));
            let until = until.map(|until| until.from(now));
            let input = ReplayCreate { subscription, since, until, statuses: status, missed };
            bulk::replay(store, tenant, input, wait).await
        }
        DeliveryCommand::Replays { tenant, limit } => {
            bulk::list(store, lookup::tenant(store, &tenant).await?.id, limit).await
        }
    }
}

async fn list(store: &dyn Store, tenant: TenantId, filter: DeliveryFilter) -> Result<Outcome, Failure> {
    let (subscription_id, limit) = (filter.subscription_id, filter.limit);
    // It may have been registered once, so its deliveries can be listed.
    let unknown_kind = filter.kind.filter(|kind| !store.env().event_kinds.contains(*kind));
    let known = store.read("delivery.list", move |tx| {
        Box::pin(async move {
            tenants::get(tx, tenant).await?;
            match subscription_id {
                Some(id) => Ok(Repository::<WebhookSubscription>::get(tx, tenant, id).await?.is_some()),
                None => Ok(true),
            }
        })
    });
    if !known.await.or_not_found("tenant", tenant, tenant::HINT)? {
        let message = format!("The tenant has no webhook {}; {}.", or_dash(subscription_id), webhook::HINT);
        return Err(Failure::new(Exit::NotFound, message));
    }
    // One delivery more than the limit tells whether there are more.
    let wanted = DeliveryFilter { limit: limit.saturating_add(1), ..filter };
    let (mut deliveries, not_searched) = find(store, tenant, wanted).await?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = deliveries.len() > limit;
    deliveries.truncate(limit);

    let heading = ["ID", "EVENT", "STATUS", "LAST STATUS", "ATTEMPTS", "CREATED", "NEXT ATTEMPT", "WEBHOOK"];
    let table = Table::new(heading, &deliveries, |delivery| {
        [
            delivery.id.to_string(),
            delivery.kind.to_string(),
            state(delivery.status),
            or_dash(delivery.last_status),
            delivery.attempts.to_string(),
            full(delivery.created_at),
            full_or_dash(delivery.next_attempt_at),
            delivery.subscription_id.to_string(),
        ]
    });
    let views: Vec<View> = deliveries.iter().map(view).collect();
    let note = match not_searched {
        _ if more => Some("There are more deliveries; raise --limit to see them.".to_owned()),
        Some(until) => Some(format!(
            "Deliveries of events before {until} were not searched. Run the command with --until {until} to go on."
        )),
        None => unknown_kind.filter(|_| deliveries.is_empty()).map(|kind| {
            format!("There is no event kind {kind} now. If it is one of your own, name its file with --event-kinds.")
        }),
    };
    Ok(Outcome::list(&views, &table, "No deliveries match.")?.with_note(note))
}

/// Finds the newest deliveries that match a filter, up to its limit, in short transactions. Stops after
/// [`MAX_SEARCHES`], and then returns the time before which it did not search as well.
async fn find(
    store: &dyn Store,
    tenant: TenantId,
    mut filter: DeliveryFilter,
) -> Result<(Vec<Delivery>, Option<Timestamp>), Error> {
    let limit = filter.limit;
    let mut found: Vec<Delivery> = Vec::new();
    for _ in 0..MAX_SEARCHES {
        filter.limit = limit.saturating_sub(u32::try_from(found.len()).unwrap_or(u32::MAX));
        if filter.limit == 0 {
            break;
        }
        let next = filter.clone();
        let searched = store.read("delivery.list", move |tx| {
            let filter = next.clone();
            Box::pin(async move { deliveries::search(tx, tenant, &filter).await })
        });
        let SearchResult { deliveries, next_until, .. } = searched.await?;
        found.extend(deliveries);
        filter.until = next_until;
        if next_until.is_none() {
            break;
        }
    }
    Ok((found, filter.until.filter(|_| filter.limit > 0)))
}

/// Returns the detailed view of a delivery as the result of a command. For people, `introduction` comes first.
pub(super) fn report(record: &Record, introduction: &str) -> Result<Outcome, Failure> {
    let Record { delivery, event, log } = record;
    let last = log.last();
    let body = Envelope {
        event: event.kind,
        data: Document::parse(event.data.get().as_bytes()),
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

/// Reads a delivery with its event and attempts.
pub(super) async fn read(store: &dyn Store, tenant: TenantId, id: DeliveryId) -> Result<Record, Error> {
    store
        .read("delivery.show", move |tx| {
            Box::pin(async move {
                let delivery = tx.delivery(tenant, id).await?.ok_or(Error::NotFound)?;
                let event = tx.event(tenant, delivery.event_id).await?;
                let event = event.ok_or_else(|| StoreError::Internal(format!("delivery {id} has no event")))?;
                let log = tx.attempts(tenant, id).await?;
                Ok(Record { delivery, event, log })
            })
        })
        .await
}

async fn replay(store: &dyn Store, id: &IdArg, named: &InTenant) -> Result<Delivery, Failure> {
    let Delivery { tenant_id, id, .. } = lookup::find::<Delivery>(store, id, named).await?.record;
    let replay = store.write("delivery.replay", move |tx| Box::pin(replays::replay_delivery(tx, tenant_id, id)));
    replay.await.or_not_found("delivery", id, HINT)
}

fn view(delivery: &Delivery) -> View {
    View {
        id: delivery.id,
        event_id: delivery.event_id,
        event: delivery.kind,
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
        ("event", delivery.kind.to_string()),
        ("event id", delivery.event_id.to_string()),
        ("webhook", delivery.subscription_id.to_string()),
        ("status", status),
        ("attempts", delivery.attempts.to_string()),
        ("last status", or_dash(delivery.last_status)),
        ("next attempt at", moment_or_dash(delivery.next_attempt_at)),
        ("created at", moment(delivery.created_at)),
    ])
}
