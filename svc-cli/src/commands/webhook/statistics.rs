//! `svc webhook stats`: delivery statistics of each webhook of a tenant.

use serde::Serialize;
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::{TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::MAX_BACKLOG_COUNT;
use svc_core::webhooks::statistics::{self, Backlog, Tally};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

use super::status;
use crate::commands::tenant;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{Outcome, Table, or_dash, state};

/// The statistics of one webhook in JSON output.
#[derive(Serialize)]
struct View<'a> {
    subscription_id: SubscriptionId,
    url: &'a WebhookUrl,
    enabled: bool,
    since: Timestamp,
    attempts: u64,
    succeeded: u64,
    /// The share of attempts that succeeded, from 0 to 1.
    success_rate: Option<f64>,
    p50_ms: Option<u32>,
    p95_ms: Option<u32>,
    /// The numbers of deliveries; 10,000 means that many or more.
    pending: u64,
    held: u64,
}

/// The statistics of one webhook.
struct Statistics {
    subscription: WebhookSubscription,
    tally: Tally,
    backlog: Backlog,
}

pub(super) async fn run(store: &dyn Store, tenant: TenantId, since: Timestamp) -> Result<Outcome, Failure> {
    let listed = store.read("webhook.list", move |tx| Box::pin(super::all(tx, tenant))).await;
    let subscriptions = listed.or_not_found("tenant", tenant, tenant::HINT)?;
    let mut rows: Vec<Statistics> = Vec::new();
    for subscription in subscriptions {
        let id = subscription.id;
        let backlog = store.read("webhook.stats", move |tx| Box::pin(statistics::backlog(tx, tenant, id))).await?;
        let tally = tally(store, tenant, id, since).await?;
        rows.push(Statistics { subscription, tally, backlog });
    }

    let heading = ["ID", "STATUS", "URL", "SUCCESS", "PENDING", "HELD", "ATTEMPTS", "P50", "P95"];
    let table = Table::new(heading, &rows, |row| {
        let Statistics { subscription, tally, backlog } = row;
        [
            subscription.id.to_string(),
            state(status(subscription)),
            subscription.url.as_str().to_owned(),
            or_dash(tally.success_rate().map(|rate| format!("{}.{:02} %", rate / 100, rate % 100))),
            count(backlog.pending),
            count(backlog.held),
            tally.attempts().to_string(),
            or_dash(tally.percentile(50).map(|millis| format!("{millis} ms"))),
            or_dash(tally.percentile(95).map(|millis| format!("{millis} ms"))),
        ]
    });
    let views: Vec<View<'_>> = rows.iter().map(|row| view(row, since)).collect();
    Outcome::list(&views, &table, "The tenant has no webhooks.")
}

/// Formats a number of deliveries, which are counted up to a bound.
pub(super) fn count(deliveries: u64) -> String {
    if deliveries < MAX_BACKLOG_COUNT.into() { deliveries.to_string() } else { "10,000+".to_owned() }
}

/// Counts the attempts of a webhook since a time, in one short transaction per page.
async fn tally(store: &dyn Store, tenant: TenantId, id: SubscriptionId, since: Timestamp) -> Result<Tally, Error> {
    let mut tally = Tally::default();
    let mut next = Some(since);
    while let Some(since) = next {
        let read = store.read("webhook.stats", move |tx| Box::pin(statistics::attempts(tx, tenant, id, since)));
        let (attempts, more) = read.await?;
        attempts.iter().for_each(|attempt| tally.add(attempt));
        next = more;
    }
    Ok(tally)
}

fn view(statistics: &Statistics, since: Timestamp) -> View<'_> {
    let Statistics { subscription, tally, backlog } = statistics;
    View {
        subscription_id: subscription.id,
        url: &subscription.url,
        enabled: subscription.enabled,
        since,
        attempts: tally.attempts(),
        succeeded: tally.succeeded(),
        success_rate: tally.success_rate().and_then(|rate| u32::try_from(rate).ok()).map(|rate| f64::from(rate) / 1e4),
        p50_ms: tally.percentile(50),
        p95_ms: tally.percentile(95),
        pending: backlog.pending,
        held: backlog.held,
    }
}
