//! Prints what 100,000 tenants cost on SQLite: a sweep of the retention, lookups by id, and a page of tenants.
//!
//! ```text
//! cargo run --profile dist -p svc-store --example many_tenants
//! ```

use std::io::Write as _;
use std::time::{Duration, Instant};

use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::resources::crud::{self, advance_clock};
use svc_core::store::{OwnedKind, Store};
use svc_core::values::{EventKind, EventSet, WebhookUrl};
use svc_core::webhooks::events;
use svc_core::webhooks::retention::{self, Positions};
use svc_core::webhooks::subscriptions::{SubscriptionId, WebhookCreate, WebhookSubscription};
use svc_store::SqliteStore;

const TENANTS: u32 = 100_000;
/// Tenants that one transaction creates.
const GROUP: u32 = 1_000;
/// Lookups, of which the median is printed.
const LOOKUPS: u32 = 101;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let folder = tempfile::tempdir()?;
    let store = SqliteStore::open(&folder.path().join("svc.db"), Env::system())?;
    runtime.block_on(measure(&store))
}

async fn measure(store: &dyn Store) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout();
    let mut subscription = SubscriptionId::nil();
    for _ in 0..TENANTS / GROUP {
        subscription = create(store).await?;
    }

    let hour = Duration::from_secs(3600);
    for (what, before) in [
        ("a sweep that finds nothing", store.env().now().minus(hour)),
        ("the same, while each tenant has an event that stays", store.env().now()),
    ] {
        let mut positions = Positions::new();
        // The first sweep finds where the second one starts.
        retention::sweep(store, &mut positions, before, true, || async {}).await?;
        let started = Instant::now();
        retention::sweep(store, &mut positions, before, true, || async {}).await?;
        writeln!(out, "{:>9.2?}  {what}", started.elapsed())?;
    }

    let mut times = Vec::new();
    for _ in 0..LOOKUPS {
        let started = Instant::now();
        let lookup = store.read("example.owners", move |tx| {
            Box::pin(async move { Ok(tx.owners(OwnedKind::Subscription, subscription.into()).await?) })
        });
        let owners = lookup.await?;
        times.push(started.elapsed());
        if owners.len() != 1 {
            return Err("the subscription has one tenant".into());
        }
    }
    times.sort_unstable();
    writeln!(out, "{:>9.2?}  a lookup by id", times[times.len() / 2])?;

    let started = Instant::now();
    let page = store.read("example.tenants", |tx| Box::pin(async move { Ok(tx.tenants(None, 1_000).await?.len()) }));
    page.await?;
    writeln!(out, "{:>9.2?}  a page of 1,000 tenants", started.elapsed())?;
    Ok(())
}

/// Creates tenants, each with a subscription and an event with a delivery. Returns the last subscription.
async fn create(store: &dyn Store) -> Result<SubscriptionId, Error> {
    let create = store.write("example.create", move |tx| {
        Box::pin(async move {
            let mut last = SubscriptionId::nil();
            for _ in 0..GROUP {
                let tenant = tenants::create(tx, TenantCreate::named("Example")).await?.id;
                let url = WebhookUrl::parse("https://example.com/").map_err(|error| error.on("url"))?;
                let input = WebhookCreate { url, events: EventSet::All, description: None };
                last = crud::create::<WebhookSubscription>(tx, tenant, input).await?.id;
                let now = advance_clock(tx, tenant).await?;
                let stay = serde_json::json!({ "id": 1 });
                events::emit(tx, tenant, now, &[EventKind::StayCreated], &stay).await?;
            }
            Ok(last)
        })
    });
    create.await
}
