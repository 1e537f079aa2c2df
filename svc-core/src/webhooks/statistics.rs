//! Statistics of a subscription: the success rate and the durations of its attempts, and its backlog.
//!
//! For charts, the sender adds attempts up in memory, by endpoint, hour, outcome and duration, and adds the sums to the stored
//! counts every ten seconds and when it ends. A crash loses ten seconds of the charts and nothing else. Durations are rounded
//! up to four for each power of two, so an endpoint has a dozen rows for an hour however many attempts there were, and the
//! account has its own sums beside them. The hour comes first in the key: what is written at a time is side by side, a chart
//! is 24 searches, and what has expired is the beginning of the table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::store::{DeliveryFilter, Store, Tx};
use crate::values::{TenantId, TextEnum, Timestamp};
use crate::webhooks::deliveries::{AttemptLog, AttemptSummary, DeliveryStatus};
use crate::webhooks::subscriptions::SubscriptionId;

/// The number of deliveries whose attempts one transaction reads, so that no snapshot is held for long.
const PAGE: u32 = 1000;

/// How many attempts there were, by how they ended and how long they took.
///
/// # Examples
///
/// ```
/// use svc_core::webhooks::deliveries::AttemptSummary;
/// use svc_core::webhooks::statistics::{AttemptOutcome, Tally};
/// let mut tally = Tally::default();
/// (1..=40).for_each(|duration_ms| tally.add(&AttemptSummary { status: 200, failed: false, duration_ms }));
/// assert_eq!((tally.attempts(), tally.count(AttemptOutcome::Refused)), (40, 0));
/// assert_eq!((tally.percentile(50), tally.percentile(95)), (Some(20), Some(38)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally(BTreeMap<(AttemptOutcome, u32), u64>);

impl Tally {
    /// Adds an attempt.
    pub fn add(&mut self, attempt: &AttemptSummary) {
        self.add_many(AttemptOutcome::of(attempt), attempt.duration_ms, 1);
    }

    fn add_many(&mut self, outcome: AttemptOutcome, duration_ms: u32, attempts: u64) {
        *self.0.entry((outcome, duration_ms)).or_default() += attempts;
    }

    /// Adds the attempts of another tally.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(&(outcome, duration_ms), attempts)| self.add_many(outcome, duration_ms, *attempts));
    }

    /// Returns the number of attempts.
    pub fn attempts(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the number of attempts that ended in this way.
    pub fn count(&self, outcome: AttemptOutcome) -> u64 {
        self.0.iter().filter(|((ended, _), _)| *ended == outcome).map(|(_, attempts)| attempts).sum()
    }

    /// Returns the share of attempts that succeeded, in hundredths of a percent: 10,000 for all. `None` without attempts.
    pub fn success_rate(&self) -> Option<u64> {
        (self.count(AttemptOutcome::Succeeded) * 10_000).checked_div(self.attempts())
    }

    /// Returns the duration in milliseconds that `percent` of the attempts do not exceed, by the nearest-rank method.
    /// `None` without attempts.
    pub fn percentile(&self, percent: u8) -> Option<u32> {
        let mut durations: Vec<(u32, u64)> =
            self.0.iter().map(|((_, duration), attempts)| (*duration, *attempts)).collect();
        durations.sort_unstable();
        let rank = (self.attempts() * u64::from(percent)).div_ceil(100).max(1);
        let mut seen = 0;
        let reached = durations.into_iter().find(|(_, attempts)| {
            seen += attempts;
            seen >= rank
        });
        reached.map(|(duration, _)| duration)
    }
}

/// How an attempt ended, as the charts of attempts tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, TextEnum)]
pub enum AttemptOutcome {
    /// The endpoint responded with a status of 2xx.
    Succeeded,
    /// The endpoint responded with another status.
    Refused,
    /// There was no response: a timeout, a failure of the network, or an address that is not allowed.
    NoResponse,
}

impl AttemptOutcome {
    fn of(attempt: &AttemptSummary) -> Self {
        if attempt.succeeded() {
            Self::Succeeded
        } else if attempt.status > 0 {
            Self::Refused
        } else {
            Self::NoResponse
        }
    }
}

/// How many attempts of one endpoint began in one hour, ended in one way and took about as long.
///
/// The sender adds them up in memory and writes them every ten seconds, so that charts cost the deliveries next to nothing.
/// A crash loses what was not written yet; the deliveries and their logs do not depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptCount {
    /// The beginning of the hour.
    pub hour: Timestamp,
    /// The tenant.
    pub tenant_id: TenantId,
    /// The endpoint, or [`ALL_ENDPOINTS`] for the sum of all endpoints of the tenant.
    pub subscription_id: SubscriptionId,
    /// How the attempts ended.
    pub outcome: AttemptOutcome,
    /// How long the attempts took at most, in milliseconds: their durations, [rounded up](round_up).
    pub duration_ms: u32,
    /// The number of attempts.
    pub attempts: u64,
}

/// The key by which attempts are counted: hour, tenant, endpoint, outcome and rounded duration.
pub(crate) type CountKey = (Timestamp, TenantId, SubscriptionId, AttemptOutcome, u32);

impl AttemptCount {
    pub(crate) fn new(key: CountKey, attempts: u64) -> Self {
        let (hour, tenant_id, subscription_id, outcome, duration_ms) = key;
        Self { hour, tenant_id, subscription_id, outcome, duration_ms, attempts }
    }
}

/// Stands for all endpoints of a tenant in [`AttemptCount::subscription_id`].
pub const ALL_ENDPOINTS: SubscriptionId = SubscriptionId::nil();

/// The number of hours that charts show, the current one included.
pub const CHART_HOURS: usize = 24;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// Returns a duration rounded up to one of four per power of two, so that an hour has few different ones. It is at most a
/// quarter too long.
///
/// # Examples
///
/// ```
/// use svc_core::webhooks::statistics::round_up;
/// assert_eq!([0, 7, 8, 9, 100, 1_000].map(round_up), [0, 7, 8, 10, 112, 1_024]);
/// ```
pub fn round_up(duration_ms: u32) -> u32 {
    let shift = (u32::BITS - duration_ms.leading_zeros()).saturating_sub(3);
    duration_ms.div_ceil(1 << shift).saturating_mul(1 << shift)
}

/// Returns the beginning of the hour of a time.
fn hour_of(at: Timestamp) -> Timestamp {
    let micros = at.as_micros();
    Timestamp::from_micros(micros - micros.rem_euclid(HOUR.as_micros() as i64))
}

/// Adds up attempts in memory.
#[derive(Debug, Default)]
pub struct AttemptCounter(BTreeMap<(Timestamp, TenantId, SubscriptionId), Tally>);

impl AttemptCounter {
    /// Adds an attempt, to its endpoint and to the sum of its tenant.
    pub fn add(&mut self, tenant: TenantId, subscription: SubscriptionId, log: &AttemptLog) {
        let attempt = AttemptSummary { duration_ms: round_up(log.duration_ms), ..log.summary() };
        for subscription in [subscription, ALL_ENDPOINTS] {
            self.0.entry((hour_of(log.started_at), tenant, subscription)).or_default().add(&attempt);
        }
    }

    /// Returns what was added since the last call. The order is the same in all processes, so that they never deadlock.
    pub fn take(&mut self) -> Vec<AttemptCount> {
        let counts = std::mem::take(&mut self.0).into_iter().flat_map(|((hour, tenant, subscription), tally)| {
            tally.0.into_iter().map(move |((outcome, duration), attempts)| {
                AttemptCount::new((hour, tenant, subscription, outcome, duration), attempts)
            })
        });
        counts.collect()
    }
}

/// The number of rows that one transaction writes or deletes at most, so that other writes do not wait long.
const COUNT_BATCH: u32 = 250;

/// Adds these counts to those that are stored.
///
/// # Errors
/// [`Error::Store`]. Some of them may have been added.
pub async fn record(store: &dyn Store, counts: &[AttemptCount]) -> Result<(), Error> {
    for batch in counts.chunks(COUNT_BATCH as usize) {
        let batch: Arc<[AttemptCount]> = batch.into();
        let write = store.write("statistics.record", batch, async |tx, batch| Ok(tx.add_attempt_counts(batch).await?));
        write.await?;
    }
    Ok(())
}

/// Deletes the counts of all tenants that charts no longer show, in small transactions. Returns how many.
///
/// # Errors
/// [`Error::Store`]. The next call continues.
pub async fn delete_expired(store: &dyn Store) -> Result<u64, Error> {
    let delete = store.delete_in_steps("statistics.delete_expired", COUNT_BATCH, (), async |tx, ()| {
        let [oldest, ..] = chart_hours(tx.env().now());
        Ok(tx.delete_attempt_counts_before(oldest, COUNT_BATCH).await?)
    });
    delete.await
}

/// Deletes the counts of a tenant that charts show.
///
/// # Errors
/// [`Error::Store`].
pub(crate) async fn delete_of_tenant(tx: &mut dyn Tx, tenant: TenantId) -> Result<(), Error> {
    let hours = chart_hours(tx.env().now());
    Ok(tx.delete_attempt_counts(tenant, &hours).await?)
}

/// Returns the hours of a chart, oldest first.
pub fn chart_hours(now: Timestamp) -> [Timestamp; CHART_HOURS] {
    let current = hour_of(now);
    std::array::from_fn(|n| current.minus(HOUR * (CHART_HOURS - 1 - n) as u32))
}

/// The attempts that began in one hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HourOfAttempts {
    /// The beginning of the hour.
    pub begins_at: Timestamp,
    /// The attempts. Their durations are [rounded up](round_up).
    pub tally: Tally,
}

/// Returns the attempts of the last [`CHART_HOURS`] hours, oldest first, at one endpoint or at all of a tenant. The cost
/// does not depend on the number of attempts.
///
/// # Errors
/// [`Error::Store`].
pub async fn attempts_by_hour(
    tx: &mut dyn Tx,
    tenant: TenantId,
    subscription: Option<SubscriptionId>,
) -> Result<Vec<HourOfAttempts>, Error> {
    let hours = chart_hours(tx.env().now());
    let counts = tx.attempt_counts(tenant, subscription.unwrap_or(ALL_ENDPOINTS), &hours).await?;
    let mut chart = hours.map(|begins_at| HourOfAttempts { begins_at, tally: Tally::default() });
    for AttemptCount { hour, outcome, duration_ms, attempts, .. } in counts {
        if let Some(hour) = chart.iter_mut().find(|chart| chart.begins_at == hour) {
            hour.tally.add_many(outcome, duration_ms, attempts);
        }
    }
    Ok(chart.into())
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
    fn a_rounded_duration_is_at_most_a_quarter_too_long() {
        for duration in (0..100_000).chain([u32::MAX - 1, u32::MAX]) {
            let rounded = round_up(duration);
            assert!(rounded >= duration && u64::from(rounded) * 4 <= u64::from(duration) * 5, "{duration} {rounded}");
            assert_eq!(round_up(rounded), rounded, "{duration}");
        }
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
        assert_eq!((some.attempts(), some.count(AttemptOutcome::Succeeded), some.success_rate()), (6, 2, Some(3_333)));
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
