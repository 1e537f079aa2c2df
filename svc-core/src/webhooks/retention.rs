//! What has had its day: deliveries that are finished, with their attempts, and events that nobody waits for any more.
//!
//! They go in small steps, each a write job of one tenant, so that they delay nobody. A sweep walks over the events of
//! every tenant, oldest first; what is pending or held stays, with its event. Age is that of the event.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;
use uuid::Uuid;

use crate::error::Error;
use crate::store::{Store, Tx};
use crate::values::{TenantId, Timestamp};

/// Rows that one step deletes at most.
pub const STEP: u32 = 500;
/// Events that one step looks at.
const EVENTS: u32 = 100;
/// Tenants that are asked in one read job.
const TENANTS: usize = 64;

/// Events of a tenant: those behind one, up to another. Ids sort like times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRange {
    /// The event before the first.
    pub after: Uuid,
    /// The last event.
    pub until: Uuid,
}

/// What can be left of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiredKind {
    /// The logs of its finished deliveries.
    Attempts,
    /// Its finished deliveries.
    Deliveries,
    /// The event itself, once it has no delivery.
    Event,
}

/// Rows that were deleted, or would be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeletedCounts {
    /// Logs of attempts.
    pub attempts: u64,
    /// Deliveries that had succeeded or failed.
    pub deliveries: u64,
    /// Events without deliveries.
    pub events: u64,
    /// Replays that were finished.
    pub replays: u64,
}

impl DeletedCounts {
    /// All rows together.
    pub fn rows(&self) -> u64 {
        self.attempts + self.deliveries + self.events + self.replays
    }

    fn of(&mut self, remains: ExpiredKind) -> &mut u64 {
        match remains {
            ExpiredKind::Attempts => &mut self.attempts,
            ExpiredKind::Deliveries => &mut self.deliveries,
            ExpiredKind::Event => &mut self.events,
        }
    }
}

impl AddAssign for DeletedCounts {
    fn add_assign(&mut self, other: Self) {
        self.attempts += other.attempts;
        self.deliveries += other.deliveries;
        self.events += other.events;
        self.replays += other.replays;
    }
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Rows that it deleted, or would have.
    pub dropped: DeletedCounts,
    /// The event behind which the next step begins; `None` at the end of the tenant's.
    pub next: Option<Uuid>,
}

/// What comes before its deliveries, deliveries before their event.
const ORDER: [ExpiredKind; 3] = [ExpiredKind::Attempts, ExpiredKind::Deliveries, ExpiredKind::Event];

/// Deletes what is left of a tenant's next events behind `after` that are older than `before`: a write job.
///
/// # Errors
/// [`Error::Store`].
pub async fn step(tx: &mut dyn Tx, tenant: TenantId, after: Uuid, before: Timestamp) -> Result<Step, Error> {
    // A delivery that is replayed meanwhile is not finished any more.
    tx.lock_tenant(tenant).await?;
    let mut dropped = DeletedCounts::default();
    let Some(until) = tx.last_expired_event(tenant, after, before, EVENTS).await? else {
        dropped.replays = tx.delete_finished_replays(tenant, before, STEP).await?;
        return Ok(Step { dropped, next: (dropped.replays == u64::from(STEP)).then_some(after) });
    };
    let mut left = STEP;
    for remains in ORDER {
        let rows = tx.delete_expired(tenant, remains, EventRange { after, until }, left).await?;
        *dropped.of(remains) = rows;
        left = left.saturating_sub(u32::try_from(rows).unwrap_or(u32::MAX));
        if left == 0 {
            return Ok(Step { dropped, next: Some(after) });
        }
    }
    Ok(Step { dropped, next: Some(until) })
}

/// Counts what [`step`] would delete, for a whole run of events: a read job.
///
/// # Errors
/// [`Error::Store`].
pub async fn count(tx: &mut dyn Tx, tenant: TenantId, after: Uuid, before: Timestamp) -> Result<Step, Error> {
    let mut dropped = DeletedCounts::default();
    let Some(until) = tx.last_expired_event(tenant, after, before, EVENTS).await? else {
        dropped.replays = tx.count_finished_replays(tenant, before).await?;
        return Ok(Step { dropped, next: None });
    };
    for remains in ORDER {
        *dropped.of(remains) = tx.count_expired(tenant, remains, EventRange { after, until }).await?;
    }
    Ok(Step { dropped, next: Some(until) })
}

/// How far sweeps have come with each tenant, so that what stays is not looked at each time.
pub type Positions = BTreeMap<TenantId, Uuid>;

/// Sweeps over all tenants, from the positions on, in steps with a pause after each. With `dry` it only counts.
///
/// What was pending or held when a sweep passed it, and finished later, is found by one that begins anew: with empty
/// positions.
///
/// # Errors
/// [`Error::Store`]; the positions tell how far it came.
pub async fn sweep<P, F>(
    store: &dyn Store,
    positions: &mut Positions,
    before: Timestamp,
    dry: bool,
    pause: P,
) -> Result<DeletedCounts, Error>
where
    P: Fn() -> F,
    F: Future<Output = ()>,
{
    let mut dropped = DeletedCounts::default();
    let list = store.read("retention.tenants", |tx| Box::pin(async move { Ok(tx.tenants().await?) }));
    let tenants: Vec<TenantId> = list.await?.into_iter().map(|tenant| tenant.id).collect();
    positions.retain(|tenant, _| tenants.contains(tenant));
    for group in tenants.chunks(TENANTS) {
        let asked: Vec<(TenantId, Uuid)> =
            group.iter().map(|tenant| (*tenant, positions.get(tenant).copied().unwrap_or_default())).collect();
        let due = store.read("retention.look", move |tx| {
            let asked = asked.clone();
            Box::pin(async move { due(tx, &asked, before).await })
        });
        for (tenant, from) in due.await? {
            let mut after = from;
            loop {
                let step = if dry {
                    store.read("retention.count", move |tx| Box::pin(count(tx, tenant, after, before))).await?
                } else {
                    store.write("retention.step", move |tx| Box::pin(step(tx, tenant, after, before))).await?
                };
                dropped += step.dropped;
                let Some(next) = step.next else { break };
                after = next;
                positions.insert(tenant, after);
                pause().await;
            }
        }
    }
    Ok(dropped)
}

/// The tenants that have something to look at.
async fn due(tx: &mut dyn Tx, asked: &[(TenantId, Uuid)], before: Timestamp) -> Result<Vec<(TenantId, Uuid)>, Error> {
    let mut due = Vec::new();
    for (tenant, after) in asked.iter().copied() {
        if tx.last_expired_event(tenant, after, before, 1).await?.is_some()
            || tx.count_finished_replays(tenant, before).await? > 0
        {
            due.push((tenant, after));
        }
    }
    Ok(due)
}
