//! `svc webhook stats`: delivery statistics of each webhook of an account.

use serde_json::{Value, json};
use svc_core::operation::Listing;
use svc_core::pages::{ListParams, Since};
use svc_core::platform::operations::{self, Records};
use svc_core::platform::{AttemptListParams, Statistics as Backlog};
use svc_core::resources::NoFilter;
use svc_core::values::TenantId;
use svc_core::webhooks::deliveries::MAX_BACKLOG_COUNT;
use svc_core::webhooks::statistics::{AttemptOutcome, Tally};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookSubscription};
use uuid::Uuid;

use super::status;
use crate::exit::Failure;
use crate::output::{Outcome, Table, or_dash, state};
use crate::service::{CallResult, Service};

/// The statistics of one webhook.
struct Statistics {
    subscription: WebhookSubscription,
    tally: Tally,
    pending: u64,
    held: u64,
}

pub(super) async fn run(service: &Service, account: TenantId, since: Since) -> Result<Outcome, Failure> {
    let query = |limit, cursor: Option<Uuid>| {
        let page = ListParams { limit, cursor: cursor.map(Into::into), updated_since: None };
        Listing { page, filter: NoFilter {} }
    };
    let (subscriptions, _) = service.list(&Records::<WebhookSubscription>::LIST, account, u32::MAX, query).await?;
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
    let views: Vec<Value> = rows.iter().map(|row| view(row, since)).collect();
    Outcome::list(&views, &table, "The account has no webhooks.")
}

/// Formats a number of deliveries, which are counted up to a bound.
pub(super) fn count(deliveries: u64) -> String {
    if deliveries < MAX_BACKLOG_COUNT.into() { deliveries.to_string() } else { "10,000+".to_owned() }
}

/// Counts the attempts at a webhook since a time, page by page.
async fn tally(service: &Service, webhook: (TenantId, SubscriptionId), since: Since) -> CallResult<Tally> {
    let mut tally = Tally::default();
    let mut params = AttemptListParams { since: Some(since), cursor: None };
    loop {
        let page = service.call(&operations::LIST_WEBHOOK_ATTEMPTS, webhook, params.clone()).await?;
        page.data.iter().for_each(|attempt| tally.add(attempt));
        let Some(next) = page.next_cursor else { return Ok(tally) };
        params.cursor = Some(next.into());
    }
}

/// Formats the statistics of a webhook as JSON. `success_rate` is from 0 to 1, and 10,000 deliveries are that many or more.
fn view(statistics: &Statistics, since: Since) -> Value {
    let Statistics { subscription, tally, pending, held } = statistics;
    let rate = tally.success_rate().and_then(|rate| u32::try_from(rate).ok()).map(|rate| f64::from(rate) / 1e4);
    json!({
        "subscription_id": subscription.id,
        "url": subscription.url,
        "enabled": subscription.enabled,
        "since": since,
        "attempts": tally.attempts(),
        "succeeded": tally.count(AttemptOutcome::Succeeded),
        "success_rate": rate,
        "p50_ms": tally.percentile(50),
        "p95_ms": tally.percentile(95),
        "pending": pending,
        "held": held,
    })
}
