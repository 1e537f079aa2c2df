//! How well an endpoint takes its deliveries: how many attempts succeed, how long they take, and what waits.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::error::Error;
use crate::store::{DeliveryFilter, Tx};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptSummary, DeliveryStatus};

/// Deliveries whose attempts are read at a time, so that no snapshot is held for long.
const AT_A_TIME: u32 = 1000;

/// Attempts, counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    succeeded: u64,
    /// How many took so many milliseconds. A deadline bounds what can occur, so this stays small.
    durations: BTreeMap<u32, u64>,
}

impl Tally {
    /// Counts an attempt.
    pub fn add(&mut self, attempt: &AttemptSummary) {
        self.succeeded += u64::from(attempt.succeeded());
        *self.durations.entry(attempt.duration_ms).or_default() += 1;
    }

    /// Attempts that have ended.
    pub fn attempts(&self) -> u64 {
        self.durations.values().sum()
    }

    /// Those that the endpoint took.
    pub fn succeeded(&self) -> u64 {
        self.succeeded
    }

    /// The share of those, in hundredths of a percent: 10,000 for all. `None` without attempts.
    pub fn success_rate(&self) -> Option<u64> {
        (self.succeeded * 10_000).checked_div(self.attempts())
    }

    /// The duration in milliseconds that `percent` of the attempts do not exceed, by the nearest rank. `None` without
    /// attempts.
    ///
    /// ```
    /// use svc_core::webhooks::deliveries::AttemptSummary;
    /// use svc_core::webhooks::statistics::Tally;
    /// let mut tally = Tally::default();
    /// (1..=40).for_each(|duration_ms| tally.add(&AttemptSummary { status: 200, failed: false, duration_ms }));
    /// assert_eq!((tally.percentile(50), tally.percentile(95)), (Some(20), Some(38)));
    /// ```
    pub fn percentile(&self, percent: u8) -> Option<u32> {
        let rank = (self.attempts() * u64::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = self.durations.iter().find(|(_, count)| {
            seen += **count;
            seen >= rank
        });
        reached.map(|(duration, _)| *duration)
    }
}

/// What waits for an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Deliveries of which an attempt is due or being made.
    pub pending: u64,
    /// Deliveries that go out on replay.
    pub held: u64,
}

/// What waits for an endpoint now.
///
/// # Errors
/// [`Error::Store`].
pub async fn backlog(tx: &mut dyn Tx, tenant: TenantId, subscription: Uuid) -> Result<Backlog, Error> {
    Ok(Backlog {
        pending: tx.count_deliveries(tenant, subscription, DeliveryStatus::Pending).await?,
        held: tx.count_deliveries(tenant, subscription, DeliveryStatus::Held).await?,
    })
}

/// Attempts at an endpoint's deliveries of events at or after `since`: some of them, and from when on to ask for
/// more. One call per job, so that a long history holds nobody up.
///
/// # Errors
/// [`Error::Store`].
pub async fn attempts(
    tx: &mut dyn Tx,
    tenant: TenantId,
    subscription: Uuid,
    since: Timestamp,
) -> Result<(Vec<AttemptSummary>, Option<Timestamp>), Error> {
    let filter = DeliveryFilter {
        subscription_id: Some(subscription),
        since: Some(since),
        oldest_first: true,
        limit: AT_A_TIME,
        ..DeliveryFilter::default()
    };
    let deliveries = tx.list_deliveries(tenant, &filter).await?;
    // Each has a time of its own, that of its event.
    let Some(until) = deliveries.last().map(|last| last.created_at.next()) else { return Ok((Vec::new(), None)) };
    let attempts = tx.attempt_summaries(tenant, subscription, since, until).await?;
    Ok((attempts, (deliveries.len() == AT_A_TIME as usize).then_some(until)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(attempts: &[(i32, bool, u32)]) -> Tally {
        let mut tally = Tally::default();
        for (status, failed, duration_ms) in attempts.iter().copied() {
            tally.add(&AttemptSummary { status, failed, duration_ms });
        }
        tally
    }

    #[test]
    fn nothing_has_no_rate() {
        let nothing = tally(&[]);
        assert_eq!((nothing.attempts(), nothing.success_rate(), nothing.percentile(50)), (0, None, None));
    }

    #[test]
    fn success_is_2xx_without_an_error() {
        let some =
            tally(&[(200, false, 1), (299, false, 1), (200, true, 1), (302, true, 1), (0, true, 1), (-1, true, 1)]);
        assert_eq!((some.attempts(), some.succeeded(), some.success_rate()), (6, 2, Some(3_333)));
        assert_eq!(tally(&[(204, false, 1)]).success_rate(), Some(10_000));
    }

    #[test]
    fn percentiles_are_durations_that_occurred() {
        let one = tally(&[(200, false, 7)]);
        assert_eq!([0, 1, 50, 95, 100].map(|percent| one.percentile(percent)), [Some(7); 5]);
        let mut many: Vec<(i32, bool, u32)> = (0..99).map(|_| (200, false, 5)).collect();
        many.push((0, true, 10_000));
        let many = tally(&many);
        assert_eq!([50, 99, 100].map(|percent| many.percentile(percent)), [Some(5), Some(5), Some(10_000)]);
        let two = tally(&[(200, false, 1), (200, false, 9)]);
        assert_eq!([50, 51].map(|percent| two.percentile(percent)), [Some(1), Some(9)]);
    }
}
