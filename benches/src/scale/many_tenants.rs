//! What 100,000 tenants cost: a sweep of the retention, a look-up by id, and a page of tenants.

use std::time::{Duration, Instant};

use svc_core::prelude::*;
use svc_core::store::OwnedKind;
use svc_core::webhooks::retention::{self, Positions};
use svc_core::webhooks::subscriptions::SubscriptionId;

use super::{median, open};
use crate::error::Result;
use crate::table;

const TENANTS: u32 = 100_000;
/// Tenants that one transaction creates.
const GROUP: u32 = 1_000;
/// Look-ups and pages.
const READS: usize = 101;
const HOUR: Duration = Duration::from_secs(3600);

/// Measures all of them.
pub(super) async fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let svc = open(&folder.path().join("svc.db"))?;
    let mut subscription = SubscriptionId::nil();
    for _ in 0..TENANTS / GROUP {
        subscription = create_group(&svc).await?;
    }
    let store = &**svc.store();

    for (what, before) in [
        ("a sweep that finds nothing", store.env().now().minus(HOUR)),
        ("the same, while each tenant has an event that stays", store.env().now()),
    ] {
        let mut positions = Positions::new();
        // The first sweep finds where the second one starts.
        retention::sweep(store, &mut positions, before, true, || async {}).await?;
        let started = Instant::now();
        retention::sweep(store, &mut positions, before, true, || async {}).await?;
        print(started.elapsed(), what)?;
    }

    let look_up = async || {
        let owners = store.read("bench.owners", subscription, async |tx, &subscription| {
            Ok(tx.owners(OwnedKind::Subscription, subscription.into()).await?)
        });
        if owners.await?.len() == 1 { Ok(()) } else { Err("the subscription has one tenant".into()) }
    };
    print(median(READS, look_up).await?, "a look-up by id")?;
    print(median(READS, async || Ok(svc.accounts().list(None, 1_000).await?)).await?, "a page of 1,000 tenants")
}

fn print(taken: Duration, what: &str) -> Result<()> {
    table::print_line(&format!("tenants: {TENANTS}: {taken:>7.2?} for {what}"))
}

/// Creates tenants, each with a subscription and an event with a delivery. Returns the last subscription.
async fn create_group(svc: &Svc) -> Result<SubscriptionId> {
    let create = svc.transaction("bench.tenants", (), async |tx, ()| {
        let mut last = SubscriptionId::nil();
        for _ in 0..GROUP {
            let tenant = tx.accounts().create(TenantCreate::named("Example")).await?.id;
            let url = WebhookUrl::parse("https://example.com/").map_err(|issue| issue.on("url"))?;
            let input = WebhookCreate::new(url, EventSet::All);
            last = tx.account(tenant).webhooks().create(input).await?.id;
            tx.account(tenant).events().emit(EventKind::StayCreated, serde_json::json!({ "id": 1 })).await?;
        }
        Ok(last)
    });
    Ok(create.await?)
}
