//! Statistics of a subscription: the success rate and the durations of its attempts, and its backlog.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::store::{DeliveryFilter, Tx};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::deliveries::{AttemptSummary, DeliveryStatus};
use crate::webhooks::subscriptions::SubscriptionId;

/// The number of deliveries whose attempts one transaction reads, so that no snapshot is held for long.
const PAGE: u32 = 1000;

/// The counts and durations of attempts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    succeeded: u64,
    /// The number of attempts by duration in milliseconds. The timeout of an attempt bounds the number of entries.
    durations: BTreeMap<u32, u64>,
}

impl Tally {
    /// Adds an attempt.
    pub fn add(&mut self, attempt: &AttemptSummary) {
        self.succeeded += u64::from(attempt.succeeded());
        *self.durations.entry(attempt.duration_ms).or_default() += 1;
    }

    /// Returns the number of attempts.
    pub fn attempts(&self) -> u64 {
        self.durations.values().sum()
    }

    /// Returns the number of attempts that succeeded.
    pub fn succeeded(&self) -> u64 {
        self.succeeded
    }

    /// Returns the share of attempts that succeeded, in hundredths of a percent: 10,000 for all. `None` without attempts.
    pub fn success_rate(&self) -> Option<u64> {
        (self.succeeded * 10_000).checked_div(self.attempts())
    }

    /// Returns the duration in milliseconds that `percent` of the attempts do not exceed, by the nearest-rank method.
    /// `None` without attempts.
    ///
    /// # Examples
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

/// The unfinished deliveries of a subscription.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Backlog {
    /// The number of deliveries with an attempt due now or later, or in progress. Both numbers are counted up to
    /// [`MAX_BACKLOG_COUNT`](crate::webhooks::deliveries::MAX_BACKLOG_COUNT).
    pub pending: u64,
    /// The number of deliveries that are held for a replay.
    pub held: u64,
}

/// Returns the unfinished deliveries of a subscription.
///
/// # Errors
/// [`Error::Store`].
pub async fn backlog(tx: &mut dyn Tx, tenant: TenantId, subscription: SubscriptionId) -> Result<Backlog, Error> {
    Ok(Backlog {
        pending: tx.count_deliveries(tenant, subscription, DeliveryStatus::Pending).await?,
        held: tx.count_deliveries(tenant, subscription, DeliveryStatus::Held).await?,
    })
}

/// Returns one page of the attempts at a subscription's deliveries of events at or after `since`, and the `since` of the
/// next page, if there is one.
///
/// Read each page in a transaction of its own, so that a long history does not hold one snapshot.
///
/// # Errors
/// [`Error::Store`].
pub async fn attempts(
    tx: &mut dyn Tx,
    tenant: TenantId,
    subscription: SubscriptionId,
    since: Timestamp,
) -> Result<(Vec<AttemptSummary>, Option<Timestamp>), Error> {
    let filter = DeliveryFilter {
        subscription_id: Some(subscription),
        since: Some(since),
        oldest_first: true,
        limit: PAGE,
        ..DeliveryFilter::default()
    };
    let deliveries = tx.list_deliveries(tenant, &filter).await?;
    // The times of deliveries are those of their events, which are unique within the tenant.
    let Some(until) = deliveries.last().map(|last| last.created_at.next()) else { return Ok((Vec::new(), None)) };
    let attempts = tx.attempt_summaries(tenant, subscription, since, until).await?;
    Ok((attempts, (deliveries.len() == PAGE as usize).then_some(until)))
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
    fn an_empty_tally_has_no_rate() {
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
