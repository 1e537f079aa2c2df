//! Retention: deletes finished deliveries with their attempts, and events without deliveries, once they are older than
//! the retention period (`docs/contract.md`, "Replays and retention").
//!
//! Age is that of the event. Pending and held deliveries stay, and so do their events. A sweep walks over the events of
//! every tenant, oldest first, in small steps. Each step is a write transaction of one tenant, so that it delays no other
//! work.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;
use uuid::Uuid;

use crate::error::Error;
use crate::store::{Store, Tx};
use crate::values::{TenantId, Timestamp};

/// The highest number of rows that one step deletes.
pub const STEP: u32 = 500;
/// The number of events that one step covers.
const EVENTS: u32 = 100;
/// The number of tenants with old events or replays that one read transaction checks.
const TENANTS: usize = 64;
/// The number of tenants that one read transaction asks for old events or replays, with one statement.
const PAGE: u32 = 1_000;

/// A range of events of a tenant, by id. Ids sort like the times of the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRange {
    /// The event before the first of the range; the range does not contain it.
    pub after: Uuid,
    /// The last event of the range.
    pub until: Uuid,
}

/// A kind of rows that belong to an expired event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiredKind {
    /// The logged attempts of its finished deliveries.
    Attempts,
    /// Its finished deliveries.
    Deliveries,
    /// The event itself, once it has no deliveries.
    Event,
}

/// The numbers of rows that were deleted, or would be deleted by a sweep that only counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeletedCounts {
    /// Logged attempts.
    pub attempts: u64,
    /// Deliveries that had succeeded or failed.
    pub deliveries: u64,
    /// Events without deliveries.
    pub events: u64,
    /// Finished bulk replays.
    pub replays: u64,
}

impl DeletedCounts {
    /// Returns the total number of rows.
    pub fn rows(&self) -> u64 {
        self.attempts + self.deliveries + self.events + self.replays
    }

    fn of(&mut self, kind: ExpiredKind) -> &mut u64 {
        match kind {
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

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rows that were deleted, or would be.
    pub dropped: DeletedCounts,
    /// The event after which the next step starts. `None` when all events of the tenant are done.
    pub next: Option<Uuid>,
}

/// The order of deletion: attempts before their deliveries, deliveries before their event.
const ORDER: [ExpiredKind; 3] = [ExpiredKind::Attempts, ExpiredKind::Deliveries, ExpiredKind::Event];

/// Deletes the expired rows of a tenant's next events after `after` that are older than `before`, in a write transaction.
/// After the last event, it deletes bulk replays that were finished before `before`.
///
/// # Errors
/// [`Error::Store`].
pub async fn step(tx: &mut dyn Tx, tenant: TenantId, after: Uuid, before: Timestamp) -> Result<Step, Error> {
    // The lock keeps a replay from restarting a finished delivery while it is deleted.
    tx.lock_tenant(tenant).await?;
    let mut dropped = DeletedCounts::default();
    let Some(until) = tx.last_expired_event(tenant, after, before, EVENTS).await? else {
        dropped.replays = tx.delete_finished_replays(tenant, before, STEP).await?;
        return Ok(Step { dropped, next: (dropped.replays == u64::from(STEP)).then_some(after) });
    };
    let mut left = STEP;
    for kind in ORDER {
        let rows = tx.delete_expired(tenant, kind, EventRange { after, until }, left).await?;
        *dropped.of(kind) = rows;
        left = left.saturating_sub(u32::try_from(rows).unwrap_or(u32::MAX));
        if left == 0 {
            return Ok(Step { dropped, next: Some(after) });
        }
    }
    Ok(Step { dropped, next: Some(until) })
}

/// Counts the rows that [`step`] would delete of the next events, without its limit of rows, in a read transaction.
///
/// # Errors
/// [`Error::Store`].
pub async fn count(tx: &mut dyn Tx, tenant: TenantId, after: Uuid, before: Timestamp) -> Result<Step, Error> {
    let mut dropped = DeletedCounts::default();
    let Some(until) = tx.last_expired_event(tenant, after, before, EVENTS).await? else {
        dropped.replays = tx.count_finished_replays(tenant, before).await?;
        return Ok(Step { dropped, next: None });
    };
    for kind in ORDER {
        *dropped.of(kind) = tx.count_expired(tenant, kind, EventRange { after, until }).await?;
    }
    Ok(Step { dropped, next: Some(until) })
}

/// The position of the sweeps within each tenant, so that a sweep does not read the events again that stay.
pub type Positions = BTreeMap<TenantId, Uuid>;

/// Sweeps over all tenants from `positions` on, in steps with a `pause` after each. With `dry` it only counts.
///
/// A delivery that was pending or held when a sweep passed it, and finished later, is deleted by a later sweep that starts
/// with empty positions.
///
/// # Errors
/// [`Error::Store`]; `positions` then holds what was done until the failure.
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
    let mut after = TenantId(Uuid::nil());
    loop {
        let page = store.read("retention.tenants", move |tx| {
            Box::pin(async move { Ok(tx.tenants_by_history(after, before, PAGE).await?) })
        });
        let page = page.await?;
        let with_history: Vec<TenantId> =
            page.iter().filter(|(_, has_history)| *has_history).map(|(tenant, _)| *tenant).collect();
        for group in with_history.chunks(TENANTS) {
            dropped += sweep_group(store, group, positions, before, dry, &pause).await?;
        }
        match page.last() {
            Some((last, _)) if page.len() == PAGE as usize => after = *last,
            _ => return Ok(dropped),
        }
    }
}

/// Sweeps over tenants that have old events or replays. Some of them may have nothing to delete, as the rest stays.
async fn sweep_group<P, F>(
    store: &dyn Store,
    tenants: &[TenantId],
    positions: &mut Positions,
    before: Timestamp,
    dry: bool,
    pause: &P,
) -> Result<DeletedCounts, Error>
where
    P: Fn() -> F,
    F: Future<Output = ()>,
{
    let mut dropped = DeletedCounts::default();
    let asked: Vec<(TenantId, Uuid)> =
        tenants.iter().map(|tenant| (*tenant, positions.get(tenant).copied().unwrap_or_default())).collect();
    let due = store.read("retention.due", move |tx| {
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
    Ok(dropped)
}

/// Returns the tenants that have something to delete.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use async_trait::async_trait;
    use futures_util::FutureExt as _;

    use super::*;
    use crate::accounts::tenants::{self, TenantCreate};
    use crate::env::{Env, ManualClock, SeededEntropy};
    use crate::input::Input as _;
    use crate::resources::contacts::{Contact, ContactCreate};
    use crate::resources::crud;
    use crate::store::memory::MemoryStore;
    use crate::store::{Access, StoreWrapper, UnitOfWork};

    /// A store that counts its transactions.
    struct Counted {
        inner: MemoryStore,
        transactions: AtomicUsize,
    }

    #[async_trait]
    impl StoreWrapper for Counted {
        fn inner(&self) -> &dyn Store {
            &self.inner
        }

        async fn run_wrapped(&self, access: Access, name: &'static str, work: UnitOfWork) -> Result<(), Error> {
            self.transactions.fetch_add(1, Ordering::Relaxed);
            self.inner.run(access, name, work).await
        }
    }

    /// Most tenants have nothing to delete, and are asked together.
    #[test]
    fn a_sweep_of_many_tenants_takes_few_transactions() {
        let start = Timestamp::from_micros(1_000_000_000_000_000);
        let clock = ManualClock::at(start);
        let inner = MemoryStore::new(Env::new(clock.clone(), SeededEntropy::new(1)));
        let store = Counted { inner, transactions: AtomicUsize::new(0) };
        let store_dyn: &dyn Store = &store;
        let made = store_dyn.write("test", |tx| {
            Box::pin(async move {
                for number in 0..=2 * PAGE {
                    let tenant = tenants::create(tx, TenantCreate::named("X")).await?.id;
                    if number % PAGE == 0 {
                        let input = ContactCreate::from_body(br#"{"email": "ada@example.com"}"#)?;
                        crud::create::<Contact>(tx, tenant, input).await?;
                    }
                }
                Ok(())
            })
        });
        made.now_or_never().unwrap().unwrap();
        clock.advance(Duration::from_secs(60));
        let (before, mut positions) = (store.inner.env().now(), Positions::new());
        for (events, most) in [(3, 3 + 3 + 3 * 2), (0, 3)] {
            store.transactions.store(0, Ordering::Relaxed);
            let swept = sweep(store_dyn, &mut positions, before, false, || async {}).now_or_never().unwrap();
            assert_eq!(swept.unwrap(), DeletedCounts { events, ..DeletedCounts::default() });
            let transactions = store.transactions.load(Ordering::Relaxed);
            assert!(transactions <= most, "{transactions} for {events} events");
        }
    }
}
