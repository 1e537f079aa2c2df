//! A write whose event many subscriptions want.

use std::time::Duration;

use super::{emit, median, open, tenant_with_subscriptions};
use crate::error::Result;
use crate::table;

const SUBSCRIPTIONS: [u32; 4] = [0, 10, 100, super::MAX_SUBSCRIPTIONS];
/// Writes for each number of subscriptions.
const WRITES: usize = 101;

/// Measures how long a write takes, each in a commit of its own.
pub(super) async fn run() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let svc = open(&folder.path().join("svc.db"))?;
    let mut alone = Duration::ZERO;
    for subscriptions in SUBSCRIPTIONS {
        let tenant = tenant_with_subscriptions(&svc, subscriptions).await?;
        let taken = median(WRITES, async || emit(&svc, tenant, 1).await).await?;
        if subscriptions == 0 {
            alone = taken;
        }
        let added = taken.saturating_sub(alone);
        table::print_line(&format!(
            "fan-out: {subscriptions:>5} subscriptions: {taken:>7.2?} a write, {added:>7.2?} more"
        ))?;
    }
    Ok(())
}
