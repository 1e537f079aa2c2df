//! Retention: deletes deliveries that are not pending with their attempts, and events without deliveries, once they are
//! older than the retention period (`docs/contract.md`, "Replays and retention").
//!
//! On PostgreSQL, events, deliveries and attempts are in partitions by time, and those that have expired as a whole are dropped
//! (`svc-store`, `migrations/postgres/`). Only what is kept for a pending delivery is deleted row by row there.
//!
//! Age is that of the event. Pending deliveries stay, and so do their events. Events that a stream has still to send stay with
//! their deliveries, unless the stream was not used for the whole retention period. A sweep walks over the events of
//! every tenant, oldest first, in small steps. Each step is a write transaction of one tenant, so that it delays no other
//! work.
//!
//! Events and deliveries have ids that sort like the times of the events, so one id says how far a sweep came, also
//! between the deliveries of one event. A step therefore looks at a bounded number of deliveries, and a sweep at each
//! delivery a few times at most, however many deliveries an event has.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use serde::Serialize;
use uuid::Uuid;

use crate::env;
use crate::error::Error;
use crate::store::{Store, Tx};
use crate::values::{TenantId, Timestamp};
use crate::webhooks::streams::{Stream, StreamKey};

/// The highest number of rows that one step deletes.
pub const STEP: u32 = 500;
/// The highest number of events that one step covers.
const EVENTS: u32 = 100;
/// The highest number of deliveries that one step covers. With an attempt each, they fit into [`STEP`].
const DELIVERIES: u32 = 200;
/// The number of tenants with old events or replays that one read transaction checks.
const TENANTS: usize = 64;
/// The number of tenants that one read transaction asks for old events or replays, with one statement.
const PAGE: u32 = 1_000;
/// The highest number of steps in which one sweep makes and drops partitions. The next sweep goes on.
const PARTITION_STEPS: u32 = 64;

/// A range of the ids of a tenant's events and deliveries, all of which sort like the times of the events. It may begin
/// and end between the deliveries of one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// The smallest id of the range.
    pub first: Uuid,
    /// The smallest id after the range.
    pub end: Uuid,
}

impl IdRange {
    /// Returns whether the range contains an id.
    pub fn contains(&self, id: Uuid) -> bool {
        self.first <= id && id < self.end
    }

    /// Returns the range of the events whose last deliveries are in this range, with all of their deliveries.
    fn ended_events(self) -> Self {
        Self { first: first_id_of_event(self.first), end: first_id_of_event(self.end) }
    }
}

/// Returns the first id that an event and its deliveries can have, one of which has the id `id`. No two events of a tenant
/// share a microsecond.
fn first_id_of_event(id: Uuid) -> Uuid {
    env::first_id_at(env::time_of_id(id))
}

/// A kind of rows that belong to an expired event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiredKind {
    /// The logged attempts of its deliveries that are not pending.
    Attempts,
    /// Its deliveries that are not pending.
    Deliveries,
    /// The event itself, once it has no deliveries.
    Event,
}

/// The rows that a store has dropped at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedHistory {
    /// The time from which on all rows are in partitions that are dropped as a whole. `None` where there are none.
    pub partitions_from: Option<Timestamp>,
    /// How many partitions of events were dropped, after those of their deliveries and attempts.
    pub partitions: u64,
    /// Whether there may be more to do, in another transaction.
    pub has_more: bool,
}

/// The numbers of rows that were deleted, or would be deleted by a sweep that only counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeletedCounts {
    /// Logged attempts.
    pub attempts: u64,
    /// Deliveries that had succeeded or failed, or were held.
    pub deliveries: u64,
    /// Events without deliveries.
    pub events: u64,
    /// Finished bulk replays.
    pub replays: u64,
    /// Partitions of PostgreSQL that were dropped with all their rows, which are not among the others.
    pub partitions: u64,
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
        self.partitions += other.partitions;
    }
}

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rows that were deleted, or would be.
    pub dropped: DeletedCounts,
    /// The id that the next step starts with. `None` when all events of the tenant are done.
    pub next: Option<Uuid>,
}

/// The order of deletion: attempts before their deliveries, deliveries before their event.
const ORDER: [ExpiredKind; 3] = [ExpiredKind::Attempts, ExpiredKind::Deliveries, ExpiredKind::Event];

impl ExpiredKind {
    /// Returns the part of a step's range in which rows of this kind are deleted. An event is deleted after its last
    /// delivery.
    fn part_of(self, range: IdRange) -> IdRange {
        match self {
            Self::Attempts | Self::Deliveries => range,
            Self::Event => range.ended_events(),
        }
    }
}

/// Deletes the next expired rows of a tenant from the id `from` on, of events older than `before`, in a write transaction.
/// After the last event, it deletes bulk replays that were finished before `before`.
///
/// # Errors
/// [`Error::Store`].
pub async fn step(tx: &mut dyn Tx, tenant: TenantId, from: Uuid, before: Timestamp) -> Result<Step, Error> {
    // The lock keeps a replay from restarting a finished delivery while it is deleted.
    tx.lock_tenant(tenant).await?;
    let mut dropped = DeletedCounts::default();
    let sent_before = sent_before(tx, tenant, before).await?;
    let Some(range) = next_range(tx, tenant, from, sent_before).await? else {
        dropped.replays = tx.delete_finished_replays(tenant, before, STEP).await?;
        return Ok(Step { dropped, next: (dropped.replays == u64::from(STEP)).then_some(from) });
    };
    let mut left = STEP;
    for kind in ORDER {
        let rows = tx.delete_expired(tenant, kind, kind.part_of(range), left).await?;
        *dropped.of(kind) = rows;
        left = left.saturating_sub(u32::try_from(rows).unwrap_or(u32::MAX));
        if left == 0 {
            return Ok(Step { dropped, next: Some(from) });
        }
    }
    Ok(Step { dropped, next: Some(range.end) })
}

/// Counts the rows that [`step`] would delete in its range, without its limit of rows, in a read transaction.
///
/// # Errors
/// [`Error::Store`].
pub async fn count(tx: &mut dyn Tx, tenant: TenantId, from: Uuid, before: Timestamp) -> Result<Step, Error> {
    let mut dropped = DeletedCounts::default();
    let sent_before = sent_before(tx, tenant, before).await?;
    let Some(range) = next_range(tx, tenant, from, sent_before).await? else {
        dropped.replays = tx.count_finished_replays(tenant, before).await?;
        return Ok(Step { dropped, next: None });
    };
    for kind in ORDER {
        *dropped.of(kind) = tx.count_expired(tenant, kind, kind.part_of(range)).await?;
    }
    Ok(Step { dropped, next: Some(range.end) })
}

/// Returns the time before which all events of a tenant have expired, and were sent by every stream that is used.
async fn sent_before(tx: &mut dyn Tx, tenant: TenantId, before: Timestamp) -> Result<Timestamp, Error> {
    let sent_until = tx.sent_by_all_until(tenant, before).await?;
    Ok(sent_until.map_or(before, |sent_until| sent_until.next().min(before)))
}

/// Returns the range of the step that starts with the id `from`. `None` when no event is left.
async fn next_range(
    tx: &mut dyn Tx,
    tenant: TenantId,
    from: Uuid,
    before: Timestamp,
) -> Result<Option<IdRange>, Error> {
    let Some(last) = tx.last_event(tenant, expired_from(from, before), EVENTS).await? else { return Ok(None) };
    let range = IdRange { first: from, end: env::first_id_at(env::time_of_id(last).next()) };
    let end = tx.nth_delivery(tenant, range, DELIVERIES).await?.unwrap_or(range.end);
    Ok(Some(IdRange { end, ..range }))
}

/// Returns the range of the events before `before` that are not done when all ids before `from` are.
fn expired_from(from: Uuid, before: Timestamp) -> IdRange {
    IdRange { first: first_id_of_event(from), end: env::first_id_at(before) }
}

/// The id within each tenant up to which the sweeps are done, so that a sweep does not read again what stays.
pub type Positions = BTreeMap<TenantId, Uuid>;

/// Drops what the store can drop at once, and sweeps over all tenants from `positions` on, in steps with a `pause` after each. With
/// `dry` it only counts rows.
///
/// A sweep that starts with empty positions also deletes the positions of streams in tenants that do not exist. It does not count
/// them, as they are no data of anybody.
///
/// A delivery that was pending when a sweep passed it, and ended later, is deleted by a later sweep that starts
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
    sweep_counting(store, positions, before, dry, pause, &mut dropped).await.map(|()| dropped)
}

/// Does what [`sweep`] does, and counts in `dropped` after each step, so that one which is broken off can say what it deleted.
///
/// # Errors
/// Those of [`sweep`].
///
/// # Cancel safety
/// The step that is under way when the future is dropped runs to its end, and is not counted.
pub async fn sweep_counting<P, F>(
    store: &dyn Store,
    positions: &mut Positions,
    before: Timestamp,
    dry: bool,
    pause: P,
    dropped: &mut DeletedCounts,
) -> Result<(), Error>
where
    P: Fn() -> F,
    F: Future<Output = ()>,
{
    let (mut before, mut history) = (before, DroppedHistory::default());
    let is_first = positions.is_empty();
    if !dry {
        let sent_before =
            store.read("retention.sent", before, async |tx, &before| sent_by_all_before(tx, before).await).await?;
        // Each step is a transaction of its own, which locks one table for a moment.
        for _ in 0..PARTITION_STEPS {
            let prepare = store.write("retention.prepare", before, async |tx, &before| {
                let now = tx.env().now();
                Ok(tx.prepare_partition(now, before).await?)
            });
            prepare.await?;
            let step = store.write("retention.drop", (before, sent_before), async |tx, &(before, sent_before)| {
                let now = tx.env().now();
                Ok(tx.drop_expired(now, before, sent_before).await?)
            });
            history = step.await?;
            dropped.partitions += history.partitions;
            if !history.has_more {
                break;
            }
        }
        before = history.partitions_from.map_or(before, |from| from.min(before));
    }
    let mut after = TenantId(Uuid::nil());
    loop {
        let page = store.read("retention.tenants", (after, before), async |tx, &(after, before)| {
            Ok(tx.tenants_by_history(after, before, PAGE).await?)
        });
        let page = page.await?;
        let with_history: Vec<TenantId> =
            page.iter().filter(|(_, has_history)| *has_history).map(|(tenant, _)| *tenant).collect();
        for group in with_history.chunks(TENANTS) {
            sweep_group(store, group, positions, before, dry, &pause, dropped).await?;
        }
        let last = page.last().map(|(last, _)| *last).filter(|_| page.len() == PAGE as usize);
        if is_first && !dry {
            let until = last.unwrap_or(TenantId(Uuid::max()));
            delete_positions_without_account(store, (after, until), &pause).await?;
        }
        match last {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// Deletes the positions of streams in tenants that do not exist, of those after a tenant and up to another one.
async fn delete_positions_without_account<P, F>(
    store: &dyn Store,
    range: (TenantId, TenantId),
    pause: &P,
) -> Result<(), Error>
where
    P: Fn() -> F,
    F: Future<Output = ()>,
{
    loop {
        let delete = store.write("retention.positions", range, async |tx, &(after, until)| {
            Ok(tx.delete_positions_without_account(after, until, STEP).await?)
        });
        if delete.await? < u64::from(STEP) {
            return Ok(());
        }
        pause().await;
    }
}

/// Returns the time before which all events have expired, and were sent by every stream that is used. It only moves forward: a
/// stream that is made later sends nothing from before.
async fn sent_by_all_before(tx: &mut dyn Tx, before: Timestamp) -> Result<Timestamp, Error> {
    let mut streams: Vec<Stream> = tx.stream(StreamKey::SERVER).await?.into_iter().collect();
    let mut after = None;
    loop {
        let keys = tx.subscription_streams_behind(after, PAGE).await?;
        for key in &keys {
            streams.extend(tx.stream(*key).await?);
        }
        after = keys.last().copied();
        if keys.len() < PAGE as usize {
            break;
        }
    }
    let mut sent_before = before;
    for stream in streams.iter().filter(|stream| stream.is_used_since(before)) {
        let mut after = None;
        loop {
            let behind = tx.accounts_behind(stream, after, PAGE).await?;
            sent_before = behind.iter().map(|account| account.sent_until.next()).fold(sent_before, Timestamp::min);
            after = behind.last().map(|account| account.tenant_id);
            if behind.len() < PAGE as usize {
                break;
            }
        }
    }
    Ok(sent_before)
}

/// Sweeps over tenants that have old events or replays. Some of them may have nothing to delete, as the rest stays.
async fn sweep_group<P, F>(
    store: &dyn Store,
    tenants: &[TenantId],
    positions: &mut Positions,
    before: Timestamp,
    dry: bool,
    pause: &P,
    dropped: &mut DeletedCounts,
) -> Result<(), Error>
where
    P: Fn() -> F,
    F: Future<Output = ()>,
{
    let asked: Vec<(TenantId, Uuid)> =
        tenants.iter().map(|tenant| (*tenant, positions.get(tenant).copied().unwrap_or_default())).collect();
    let due = store.read("retention.due", (asked, before), async |tx, (asked, before)| due(tx, asked, *before).await);
    for (tenant, from) in due.await? {
        let mut position = from;
        loop {
            let step = if dry {
                store
                    .read("retention.count", (tenant, position, before), async |tx, &(tenant, position, before)| {
                        count(tx, tenant, position, before).await
                    })
                    .await?
            } else {
                store
                    .write("retention.step", (tenant, position, before), async |tx, &(tenant, position, before)| {
                        step(tx, tenant, position, before).await
                    })
                    .await?
            };
            *dropped += step.dropped;
            let Some(next) = step.next else { break };
            position = next;
            positions.insert(tenant, position);
            pause().await;
        }
    }
    Ok(())
}

/// Returns the tenants that have something to delete.
async fn due(tx: &mut dyn Tx, asked: &[(TenantId, Uuid)], before: Timestamp) -> Result<Vec<(TenantId, Uuid)>, Error> {
    let mut due = Vec::new();
    for (tenant, from) in asked.iter().copied() {
        let sent_before = sent_before(tx, tenant, before).await?;
        if tx.last_event(tenant, expired_from(from, sent_before), 1).await?.is_some()
            || tx.count_finished_replays(tenant, before).await? > 0
        {
            due.push((tenant, from));
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
    struct CountingStore {
        inner: MemoryStore,
        transactions: AtomicUsize,
    }

    #[async_trait]
    impl StoreWrapper for CountingStore {
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
        let store = CountingStore { inner, transactions: AtomicUsize::new(0) };
        let store_dyn: &dyn Store = &store;
        let made = store_dyn.write("test", (), async |tx, ()| {
            for number in 0..=2 * PAGE {
                let tenant = tenants::create(tx, TenantCreate::named("X")).await?.id;
                if number % PAGE == 0 {
                    let input = ContactCreate::from_body(br#"{"email": "ada@example.com"}"#)?;
                    crud::create::<Contact>(tx, tenant, input).await?;
                }
            }
            Ok(())
        });
        made.now_or_never().unwrap().unwrap();
        clock.advance(Duration::from_secs(60));
        let (before, mut positions) = (store.inner.env().now(), Positions::new());
        for (events, most) in [(3, 6 + 3 + 3 + 3 * 2), (0, 6)] {
            store.transactions.store(0, Ordering::Relaxed);
            let swept = sweep(store_dyn, &mut positions, before, false, || async {}).now_or_never().unwrap();
            assert_eq!(swept.unwrap(), DeletedCounts { events, ..DeletedCounts::default() });
            let transactions = store.transactions.load(Ordering::Relaxed);
            assert!(transactions <= most, "{transactions} for {events} events");
        }
    }

    /// Rows that are stored while a sandbox is deleted may stay, as nobody locks an account for a position.
    #[test]
    fn positions_in_tenants_that_are_gone_are_deleted() {
        let start = Timestamp::from_micros(1_000_000_000_000_000);
        let store = MemoryStore::new(Env::new(ManualClock::at(start), SeededEntropy::new(1)));
        let store: &dyn Store = &store;
        let (begins_at, before) = (start.minus(Duration::from_secs(60)), start.minus(Duration::from_secs(120)));
        let made = store.write("test", (begins_at, before), async |tx, &(begins_at, before)| {
            tx.insert_stream(&Stream::new(StreamKey::SERVER, begins_at)).await?;
            let mut tenants = Vec::new();
            for _ in 0..2 {
                let tenant = tenants::create(tx, TenantCreate::named("Harbour Plumbing")).await?.id;
                let clock = tx.advance_clock(tenant).await?.unwrap_or_default();
                tx.advance_stream(StreamKey::SERVER, tenant, clock).await?;
                tenants.push((tenant, clock));
            }
            let between = TenantId(Uuid::from_u128(tenants[0].0.0.as_u128() + 1));
            let gone = [TenantId(Uuid::from_u128(1)), between, TenantId(Uuid::max())];
            for tenant in gone {
                tx.set_clock(tenant, before).await?;
            }
            Ok((tenants, gone))
        });
        let (tenants, gone) = made.now_or_never().unwrap().unwrap();
        let position = |tenant| {
            let read = store.read("test", tenant, async |tx, &tenant| {
                Ok(tx.sent_by_all_until(tenant, Timestamp::from_micros(0)).await?)
            });
            read.now_or_never().unwrap().unwrap().unwrap()
        };
        assert_eq!(gone.map(position), [before; 3]);
        for (is_dry, left) in [(true, before), (false, begins_at)] {
            let swept = sweep(store, &mut Positions::new(), before, is_dry, || async {}).now_or_never().unwrap();
            assert_eq!(swept, Ok(DeletedCounts::default()));
            assert_eq!(gone.map(position), [left; 3], "without a position the stream is where it began");
        }
        for (tenant, clock) in tenants {
            assert_eq!(position(tenant), clock);
        }
    }
}
