//! `svc db repair-clock`.

use serde::Serialize;
use svc_core::accounts::clocks::{self, ClockRepair};
use svc_core::error::Error;
use svc_core::store::Store;
use svc_core::values::{TenantId, Timestamp};

use crate::commands::lookup;
use crate::exit::Failure;
use crate::ids::IdArg;
use crate::output::{Outcome, Table};
use crate::service::Service;
use crate::times::full;

/// The number of accounts that one transaction finds.
const PAGE: u32 = 1_000;

/// An account whose clock was ahead.
#[derive(Serialize)]
struct View {
    tenant_id: TenantId,
    before: Timestamp,
    after: Timestamp,
    /// Whether the clock is still ahead, as the account has a record of that time.
    ahead: bool,
}

/// Sets back the clock of one account or of all accounts, each in a transaction of its own.
pub(super) async fn run(service: &Service, account: Option<&IdArg>) -> Result<Outcome, Failure> {
    let store = service.database("svc db repair-clock")?;
    let mut views = Vec::new();
    if let Some(id) = account {
        let account = lookup::account_by_id(service, id).await?;
        views.extend(repair(store, account.id).await?);
    } else {
        let mut after = None;
        loop {
            let page =
                store.read("clocks.ahead", after, async |tx, &after| clocks::ahead(tx, after, PAGE).await).await?;
            for id in &page {
                views.extend(repair(store, *id).await?);
            }
            match page.last() {
                Some(last) if page.len() == PAGE as usize => after = Some(*last),
                _ => break,
            }
        }
    }
    let table = Table::new(["ACCOUNT", "CLOCK WAS", "CLOCK IS", "STILL AHEAD"], &views, |view| {
        let ahead = if view.ahead { "yes" } else { "no" };
        [view.tenant_id.to_string(), full(view.before), full(view.after), ahead.to_owned()]
    });
    let note = views.iter().any(|view| view.ahead).then(|| {
        "A clock that is still ahead has the time of the account's latest record, and counts on from there until that time \
         has come. Order and synchronisation stay right."
            .to_owned()
    });
    Ok(Outcome::list(&views, &table, "No clock is ahead of now.")?.with_note(note))
}

async fn repair(store: &dyn Store, id: TenantId) -> Result<Option<View>, Error> {
    let repaired = store.write("clocks.repair", id, async |tx, &id| clocks::repair(tx, id).await).await?;
    let now = store.env().now();
    Ok(repaired.map(|ClockRepair { before, after }| View { tenant_id: id, before, after, ahead: after > now }))
}
