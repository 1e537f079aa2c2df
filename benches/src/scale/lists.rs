//! Lists of deliveries and of contacts, as what they are taken from grows.

use std::time::Duration;

use rusqlite::Connection;
use svc_core::pages::Since;
use svc_core::prelude::*;
use tokio::runtime::Runtime;

use super::{median, open};
use crate::error::Result;
use crate::{pending, seed, table};

/// Each list is read this many times.
const READS: usize = 101;
/// The size of a page.
const LIMIT: u32 = 50;

/// Measures lists of a hundredth of `deliveries`, then of all of them.
pub(super) fn run(runtime: &Runtime, deliveries: u32) -> Result<()> {
    for deliveries in [deliveries / 100, deliveries] {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("scale.db");
        seed::seed(&file, 1, deliveries)?;
        pending::add_backlog(&file, deliveries)?;
        // One in a thousand failed, and all contacts share one address.
        Connection::open(&file)?.execute_batch(
            "UPDATE deliveries SET status = iif(rowid % 1000 = 0, 'failed', 'succeeded'), next_attempt_at = NULL;
             UPDATE contacts SET email = 'office@example.com';",
        )?;
        let svc = open(&file)?;
        let measured = runtime.block_on(measure(&svc))?;
        let measured: Vec<String> = measured.iter().map(|(what, taken)| format!("{what} {taken:.2?}")).collect();
        table::print_line(&format!("lists: of {deliveries:>8}: {}", measured.join(", ")))?;
    }
    Ok(())
}

async fn measure(svc: &Svc) -> Result<Vec<(&'static str, Duration)>> {
    let tenant = svc.accounts().list(None, 1).await?.pop().ok_or("the database has no tenant")?.id;
    let account = svc.account(tenant);
    let subscription =
        account.webhooks().list(NoFilter {}, ListParams::default()).await?.data.pop().ok_or("no subscription")?;
    let all = DeliveryFilter { limit: LIMIT, ..DeliveryFilter::default() };
    let of_webhook = DeliveryFilter { subscription_id: Some(subscription.id), ..all.clone() };
    let failed = DeliveryFilter { status: Some(DeliveryStatus::Failed), ..all.clone() };
    let since =
        DeliveryFilter { since: Some(subscription.created_at.minus(Duration::from_secs(86_400))), ..all.clone() };
    let mut measured = Vec::new();
    for (what, filter) in [("deliveries", all), ("of a webhook", of_webhook), ("failed", failed), ("of a day", since)] {
        let taken = median(READS, async || Ok(account.deliveries().list(filter.clone()).await?)).await?;
        measured.push((what, taken));
    }
    let one_address = ContactFilter { email: Some("office@example.com".parse()?), ..ContactFilter::default() };
    let changed = ListParams { updated_since: Some(Since(Timestamp::from_micros(0))), ..ListParams::default() };
    let list = async || Ok(account.contacts().list(one_address.clone(), changed.clone()).await?);
    measured.push(("contacts of one address by change", median(READS, list).await?));
    Ok(measured)
}
