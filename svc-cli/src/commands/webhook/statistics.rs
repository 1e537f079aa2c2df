//! `svc webhook stats`: delivery statistics of each webhook of an account.

use serde::Serialize;
use svc_core::pages;
use svc_core::platform::operations::{self, Records};
use svc_core::platform::{AttemptListParams, Listing, Statistics as Backlog};
use svc_core::values::{TenantId, Timestamp, WebhookUrl};
use svc_core::webhooks::deliveries::MAX_BACKLOG_COUNT;
use svc_core::webhooks::statistics::{AttemptOutcome, Tally};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};

use super::status;
use crate::commands::account;
use crate::exit::{Failure, OrNotFound as _};
use crate::output::{Outcome, Table, or_dash, state};
use crate::service::{CallResult, Service};

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
    pending: u64,
    held: u64,
}

pub(super) async fn run(service: &Service, account: TenantId, since: Timestamp) -> Result<Outcome, Failure> {
    let listed = service.list(&Records::<WebhookSubscription>::LIST, account, Listing::default(), u32::MAX).await;
    let (subscriptions, _) = listed.or_not_found("account", account, account::HINT)?;
    let mut rows: Vec<Statistics> = Vec::new();
    for subscription in subscriptions {
        let webhook = (account, subscription.id);
        let Backlog { pending, held, .. } = service.call(&operations::GET_WEBHOOK_STATISTICS, webhook, ()).await?;
        let tally = tally(service, webhook, since).await?;
        let [pending, held] = [pending, held].map(|count| u64::from(count.unwrap_or_default()));
        rows.push(Statistics { subscription, tally, pending, held });
    }

    let heading = ["ID", "STATUS", "URL", "SUCCESS", "PENDING", "HELD", "ATTEMPTS", "P50", "P95"];
    let table = Table::new(heading, &rows, |row| {
        let Statistics { subscription, tally, pending, held } = row;
        [
            subscription.id.to_string(),
            state(status(subscription)),
            subscription.url.as_str().to_owned(),
            or_dash(tally.success_rate().map(|rate| format!("{}.{:02} %", rate / 100, rate % 100))),
            count(*pending),
            count(*held),
            tally.attempts().to_string(),
            or_dash(tally.percentile(50).map(|millis| format!("{millis} ms"))),
            or_dash(tally.percentile(95).map(|millis| format!("{millis} ms"))),
        ]
    });
    let views: Vec<View<'_>> = rows.iter().map(|row| view(row, since)).collect();
    Outcome::list(&views, &table, "The account has no webhooks.")
}

/// Formats a number of deliveries, which are counted up to a bound.
pub(super) fn count(deliveries: u64) -> String {
    if deliveries < MAX_BACKLOG_COUNT.into() { deliveries.to_string() } else { "10,000+".to_owned() }
}

/// Counts the attempts at a webhook since a time, page by page.
async fn tally(service: &Service, webhook: (TenantId, SubscriptionId), since: Timestamp) -> CallResult<Tally> {
    let mut tally = Tally::default();
    let mut params = AttemptListParams { since: Some(pages::Since(since)), cursor: None };
    loop {
        let page = service.call(&operations::LIST_WEBHOOK_ATTEMPTS, webhook, params.clone()).await?;
        page.data.iter().for_each(|attempt| tally.add(attempt));
        let Some(next) = page.next_cursor else { return Ok(tally) };
        params.cursor = Some(next.into());
    }
}

fn view(statistics: &Statistics, since: Timestamp) -> View<'_> {
    let Statistics { subscription, tally, pending, held } = statistics;
    View {
        subscription_id: subscription.id,
        url: &subscription.url,
        enabled: subscription.enabled,
        since,
        attempts: tally.attempts(),
        succeeded: tally.count(AttemptOutcome::Succeeded),
        success_rate: tally.success_rate().and_then(|rate| u32::try_from(rate).ok()).map(|rate| f64::from(rate) / 1e4),
        p50_ms: tally.percentile(50),
        p95_ms: tally.percentile(95),
        pending: *pending,
        held: *held,
    }
}
