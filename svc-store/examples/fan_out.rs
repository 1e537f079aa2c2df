//! Prints how long a write on SQLite takes, by the number of webhook subscriptions that want its event.
//!
//! ```text
//! cargo run --profile dist -p svc-store --example fan_out
//! ```

use std::io::Write as _;
use std::time::{Duration, Instant};

use svc_core::accounts::tenants::{self, TenantCreate};
use svc_core::env::Env;
use svc_core::error::Error;
use svc_core::resources::crud::{self, advance_clock};
use svc_core::store::Store;
use svc_core::values::{EventKind, EventSet, TenantId, WebhookUrl};
use svc_core::webhooks::events;
use svc_core::webhooks::subscriptions::{WebhookCreate, WebhookSubscription};
use svc_store::SqliteStore;

const SUBSCRIPTIONS: [u32; 4] = [0, 10, 100, 1_000];
/// Writes for each number of subscriptions, of which the median is printed.
const WRITES: u32 = 101;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let folder = tempfile::tempdir()?;
    let mut env = Env::system();
    env.max_webhooks = SUBSCRIPTIONS.into_iter().max().unwrap_or_default();
    let store = SqliteStore::open(&folder.path().join("svc.db"), env)?;
    let mut alone = Duration::ZERO;
    for subscriptions in SUBSCRIPTIONS {
        let tenant = runtime.block_on(tenant_with(&store, subscriptions))?;
        let mut times = Vec::new();
        for number in 0..WRITES {
            let started = Instant::now();
            runtime.block_on(write_event(&store, tenant, number))?;
            times.push(started.elapsed());
        }
        times.sort_unstable();
        let median = times[times.len() / 2];
        if subscriptions == 0 {
            alone = median;
        }
        let added = median.saturating_sub(alone);
        writeln!(std::io::stdout(), "{subscriptions:>5} subscriptions: {median:>9.2?} a write, {added:>9.2?} more")?;
    }
    Ok(())
}

/// Creates a tenant with this many subscriptions for all events.
async fn tenant_with(store: &dyn Store, subscriptions: u32) -> Result<TenantId, Error> {
    let create = store.write("example.create", move |tx| {
        Box::pin(async move {
            let tenant = tenants::create(tx, TenantCreate::named("Example")).await?.id;
            for number in 0..subscriptions {
                let url =
                    WebhookUrl::parse(&format!("https://example.com/{number}")).map_err(|error| error.on("url"))?;
                let input = WebhookCreate { url, events: EventSet::All, description: None };
                crud::create::<WebhookSubscription>(tx, tenant, input).await?;
            }
            Ok(tenant)
        })
    });
    create.await
}

/// Writes an event and its deliveries, in a commit of its own.
async fn write_event(store: &dyn Store, tenant: TenantId, number: u32) -> Result<(), Error> {
    let write = store.write("example.write", move |tx| {
        Box::pin(async move {
            let now = advance_clock(tx, tenant).await?;
            let stay = serde_json::json!({ "id": number });
            events::emit(tx, tenant, now, &[EventKind::StayCreated], &stay).await
        })
    });
    write.await
}
