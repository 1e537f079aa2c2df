//! Block `filters`: what the options of webhook subscriptions cost: filters, and an order. Each is printed as a line.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use svc_core::env::Env;
use svc_core::input::Input as _;
use svc_core::prelude::*;
use svc_core::store::DeliveryFilter;
use svc_core::webhooks::deliveries::{AttemptLog, DeliveryStatus};
use svc_core::webhooks::engine::{Attempt, AttemptResult, Policy};
use svc_core::webhooks::filters::Filter;
use svc_server::deliver::{self, WebhookClient};
use svc_store::SqliteStore;
use tokio::sync::oneshot;

use crate::error::Result;
use crate::table;

/// The filters that are tried on one event.
const FILTERS: u32 = 100_000;
/// How often all of them are tried.
const TIMES: usize = 21;
/// The subscriptions of one account, as many as it can have.
const SUBSCRIPTIONS: u32 = 1_000;
/// The events that are delivered with and without an order.
const EVENTS: u32 = 20_000;

/// Measures all figures.
pub(crate) fn run() -> Result<()> {
    let runtime = crate::child::runtime()?;
    matching()?;
    runtime.block_on(writes())?;
    for _ in 0..3 {
        for ordering in ["none", "record"] {
            runtime.block_on(ordered(ordering))?;
        }
    }
    Ok(())
}

/// Tries different filters on an event of a contact, of which one in a thousand passes.
fn matching() -> Result<()> {
    let parse = |number| format!("data.city == \"City {number}\" and data.state != \"WA\"").parse::<Filter>();
    let filters: Vec<Filter> = (0..FILTERS)
        .map(|number| parse(number % 1000))
        .collect::<std::result::Result<_, _>>()
        .map_err(|issue| issue.on("filter"))?;
    let data = json!({
        "id": "0195a3c8-0000-7000-8000-000000000001", "email": "ada@example.com", "first_name": "Ada", "last_name": "Nguyen",
        "phone": "+61 2 5550 1234", "company_name": null, "city": "City 7", "state": "NSW", "postcode": "2000",
    })
    .to_string();
    let (mut taken, mut passed) = (Vec::new(), 0);
    for _ in 0..TIMES {
        let started = Instant::now();
        let data = serde_json::from_str(&data)?;
        passed = filters.iter().filter(|filter| filter.matches(EventKind::ContactCreated, &data)).count();
        taken.push(started.elapsed());
    }
    taken.sort_unstable();
    let median = taken[TIMES / 2];
    table::print_line(&format!(
        "{FILTERS} filters on one event: {:.2} ms, {passed} pass; one: {} ns",
        median.as_secs_f64() * 1e3,
        median.as_nanos() / u128::from(FILTERS)
    ))
}

/// Measures writes of an account with subscriptions, none of which wants the event.
async fn writes() -> Result<()> {
    for filter in [None, Some("data.id == \"another\"")] {
        let folder = tempfile::tempdir()?;
        let mut env = Env::system();
        env.max_webhooks = SUBSCRIPTIONS;
        let svc = Svc::new(SqliteStore::open(&folder.path().join("svc.db"), env)?);
        let tenant = svc.accounts().create(TenantCreate::named("Example")).await?.id;
        for _ in 0..SUBSCRIPTIONS {
            // Without a filter they want another kind.
            let events = if filter.is_some() { "stay.created" } else { "job.created" };
            let input = json!({ "url": "https://example.com/", "events": [events], "filter": filter });
            svc.account(tenant).webhooks().create(WebhookCreate::from_body(input.to_string().as_bytes())?).await?;
        }
        let mut taken = Vec::new();
        for number in 0..201 {
            let started = Instant::now();
            svc.account(tenant).events().emit(EventKind::StayCreated, json!({ "id": number.to_string() })).await?;
            taken.push(started.elapsed());
        }
        taken.sort_unstable();
        let of = if filter.is_some() { "filters that no event passes" } else { "no filters, for another kind" };
        table::print_line(&format!(
            "a write of an account with {SUBSCRIPTIONS} subscriptions, {of}: {:.2} ms",
            taken[100].as_secs_f64() * 1e3
        ))?;
    }
    Ok(())
}

/// A client whose attempts all succeed at once, so that the claims and outcomes alone are measured.
struct Succeeds;

impl WebhookClient for Succeeds {
    fn attempt(&self, Attempt { delivery, .. }: Attempt) -> Pin<Box<dyn Future<Output = AttemptResult> + Send>> {
        let log = AttemptLog {
            attempt: delivery.attempts,
            started_at: delivery.created_at,
            duration_ms: 0,
            status: 204,
            error: None,
            cause: None,
            response_body: None,
            response_truncated: false,
            remote_addr: None,
        };
        Box::pin(async { AttemptResult { delivery, log, retry_after: None } })
    }
}

/// Delivers events of different records to one subscription.
async fn ordered(ordering: &str) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let store: Arc<dyn svc_core::store::Store> =
        Arc::new(SqliteStore::open(&folder.path().join("svc.db"), Env::system())?);
    let svc = Svc::new(Arc::clone(&store));
    let tenant = svc.accounts().create(TenantCreate::named("Example")).await?.id;
    let input = json!({ "url": "https://example.com/", "events": ["*"], "ordering": ordering });
    svc.account(tenant).webhooks().create(WebhookCreate::from_body(input.to_string().as_bytes())?).await?;
    for batch in 0..EVENTS / 1_000 {
        let emit = svc.transaction("bench.events", (tenant, batch), async |tx, (tenant, batch)| {
            for number in 0..1_000 {
                let data = json!({ "id": batch * 1_000 + number });
                tx.account(*tenant).events().emit(EventKind::StayCreated, data).await?;
            }
            Ok(())
        });
        emit.await?;
    }
    let (stop, stopped) = oneshot::channel::<()>();
    let started = Instant::now();
    let sender = deliver::run(
        store,
        Policy::default(),
        Arc::new(Succeeds),
        Arc::default(),
        async { drop(stopped.await) },
        Duration::from_secs(5),
    );
    let sender = tokio::spawn(sender);
    let pending = DeliveryFilter { status: Some(DeliveryStatus::Pending), limit: 1, ..DeliveryFilter::default() };
    while !svc.account(tenant).deliveries().list(pending.clone()).await?.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let per_second = f64::from(EVENTS) / started.elapsed().as_secs_f64();
    drop(stop);
    sender.await?;
    table::print_line(&format!("claims and outcomes with the order {ordering}: {per_second:.0} deliveries a second"))
}
