//! The queue of units of work that wait for a connection, and the turn of each tenant.
//!
//! Writes of one tenant would wait for each other at the tenant's row, and each would hold a connection meanwhile. So a
//! unit of work takes the turn of the tenant before it locks the row. One that does not get it gives its connection back
//! and is set aside, for the task that has the turn to run it. A task keeps the turns that its transaction took until that
//! has ended, and then the turn of one tenant at most, so that the others are free for all tasks.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use svc_core::error::{Error, StoreError};
use svc_core::store::{StoreResult, UnitOfWork};
use svc_core::sync::lock;
use svc_core::values::TenantId;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};

use super::transaction::WaitingFor;
use crate::check_queue;

/// A unit of work in the queue.
pub(super) struct QueuedWork {
    name: &'static str,
    work: UnitOfWork,
    result_sender: oneshot::Sender<Result<(), Error>>,
    queued_at: Instant,
    /// Whether it runs again because its connection was lost.
    is_retry: bool,
    /// Whether it has to be the first of its transaction, as it may have to wait for the row of its tenant.
    is_first: bool,
    /// The turn of what asks all servers, until it has completed.
    turn: Option<OwnedSemaphorePermit>,
}

impl QueuedWork {
    pub(super) fn new(name: &'static str, work: UnitOfWork) -> (Self, oneshot::Receiver<Result<(), Error>>) {
        let (result_sender, result) = oneshot::channel();
        (
            Self { name, work, result_sender, queued_at: Instant::now(), is_retry: false, is_first: false, turn: None },
            result,
        )
    }

    /// Keeps a turn until the unit of work has completed.
    pub(super) fn with_turn(self, turn: Option<OwnedSemaphorePermit>) -> Self {
        Self { turn, ..self }
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn work(&self) -> &UnitOfWork {
        &self.work
    }

    /// Returns the closure, and a future that ends when the caller has stopped waiting for the result.
    pub(super) fn work_and_abandonment(&mut self) -> (&UnitOfWork, impl Future<Output = ()>) {
        (&self.work, self.result_sender.closed())
    }

    /// Returns whether the caller has stopped waiting for the result.
    pub(super) fn is_abandoned(&self) -> bool {
        self.result_sender.is_closed()
    }

    /// Sends the result to the caller.
    pub(super) fn complete(self, result: Result<(), Error>) {
        // The closure may hold a handle of the store, which must be dropped before the caller continues.
        drop((self.work, self.turn));
        let _ = self.result_sender.send(result);
    }
}

pub(super) struct Queue {
    /// How many tasks serve the queue.
    tasks: usize,
    /// Whether writes of other tenants join a transaction when all tasks are busy.
    joins_others: bool,
    state: Mutex<State>,
    filled: Notify,
}

struct State {
    units: VecDeque<QueuedWork>,
    is_open: bool,
    /// The tenants whose turn is taken, with what was set aside for each, in the order of its first run.
    set_aside: HashMap<TenantId, VecDeque<QueuedWork>>,
    /// How many tasks run units of work.
    busy: usize,
}

/// The tenants whose turn a busy task has, with what was set aside for them. The turns end when this is dropped.
pub(super) struct TenantQueue<'q> {
    queue: &'q Queue,
    tenants: Mutex<Vec<TenantId>>,
}

impl TenantQueue<'_> {
    /// Takes the turn of a tenant. Returns `false` when another task has it.
    pub(super) fn take(&self, tenant: TenantId) -> bool {
        let mut tenants = lock(&self.tenants);
        if tenants.contains(&tenant) {
            return true;
        }
        match self.queue.lock().set_aside.entry(tenant) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(VecDeque::new());
                tenants.push(tenant);
                true
            }
        }
    }

    /// Returns the unit of work that joins the transaction next: one that was set aside for a tenant whose turn is taken. If
    /// there is none and all tasks are busy, it is the first of the queue.
    pub(super) fn next_to_join(&self) -> Option<QueuedWork> {
        let tenants = lock(&self.tenants);
        let mut state = self.queue.lock();
        let joins = |work: &QueuedWork| !work.is_first;
        let pop = |tenant| state.set_aside.get_mut(tenant)?.pop_front_if(|work| joins(work));
        match tenants.iter().find_map(pop) {
            None if self.queue.joins_others && state.busy == self.queue.tasks => {
                state.units.pop_front_if(|work| joins(work))
            }
            set_aside => set_aside,
        }
    }

    /// Ends all turns but that of the first tenant for which something was set aside. Returns the first of what was.
    pub(super) fn next_transaction(&self) -> Option<QueuedWork> {
        let mut tenants = lock(&self.tenants);
        let mut state = self.queue.lock();
        let is_waited_for = |tenant: &TenantId| state.set_aside.get(tenant).is_some_and(|units| !units.is_empty());
        let kept = tenants.iter().copied().find(is_waited_for);
        for tenant in tenants.drain(..).filter(|tenant| Some(*tenant) != kept) {
            self.queue.end_turn(&mut state, tenant);
        }
        tenants.extend(kept);
        let set_aside = state.set_aside.get_mut(&kept?)?;
        // The first one locks the row for all of them.
        set_aside.iter_mut().for_each(|work| work.is_first = false);
        set_aside.pop_front()
    }
}

impl Drop for TenantQueue<'_> {
    fn drop(&mut self) {
        let tenants = std::mem::take(&mut *lock(&self.tenants));
        let mut state = self.queue.lock();
        state.busy -= 1;
        for tenant in tenants {
            self.queue.end_turn(&mut state, tenant);
        }
    }
}

impl Queue {
    /// Returns an empty queue, which so many tasks serve.
    pub(super) fn new(tasks: usize) -> Self {
        let state = State { units: VecDeque::new(), is_open: true, set_aside: HashMap::new(), busy: 0 };
        Self { tasks, joins_others: true, state: Mutex::new(state), filled: Notify::new() }
    }

    /// Lets no writes of other tenants join a transaction, as their rows may be on other servers.
    pub(super) fn of_several_servers(self) -> Self {
        Self { joins_others: false, ..self }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Is called when a task begins to run units of work. No turn is taken yet.
    pub(super) fn tenant_queue(&self) -> TenantQueue<'_> {
        self.lock().busy += 1;
        TenantQueue { queue: self, tenants: Mutex::default() }
    }

    /// Postpones a unit of work that has to wait.
    pub(super) fn postpone(&self, work: QueuedWork, waiting: WaitingFor) {
        match waiting {
            WaitingFor::Turn(tenant) => self.set_aside(QueuedWork { is_first: false, ..work }, tenant),
            WaitingFor::Row(tenant) => self.set_aside(QueuedWork { is_first: true, ..work }, tenant),
            WaitingFor::Transaction => self.put_back([QueuedWork { is_first: true, ..work }].into()),
        }
    }

    /// Sets a unit of work aside for the task that has the turn of its tenant.
    fn set_aside(&self, work: QueuedWork, tenant: TenantId) {
        let mut state = self.lock();
        match state.set_aside.get_mut(&tenant) {
            Some(set_aside) => set_aside.push_back(work),
            // The turn has ended meanwhile.
            None => self.push_to_front(&mut state, [work].into()),
        }
    }

    fn end_turn(&self, state: &mut State, tenant: TenantId) {
        let left = state.set_aside.remove(&tenant).unwrap_or_default();
        self.push_to_front(state, left);
    }

    /// Puts units of work back to the front of the queue, in their order.
    pub(super) fn put_back(&self, units: VecDeque<QueuedWork>) {
        self.push_to_front(&mut self.lock(), units);
    }

    fn push_to_front(&self, state: &mut State, units: VecDeque<QueuedWork>) {
        for work in units.into_iter().rev() {
            state.units.push_front(work);
            self.filled.notify_last();
        }
    }

    pub(super) fn push(&self, work: QueuedWork) -> StoreResult<()> {
        {
            let mut state = self.lock();
            let set_aside: usize = state.set_aside.values().map(VecDeque::len).sum();
            check_queue(state.is_open, state.units.len() + set_aside)?;
            state.units.push_back(work);
        }
        // Wake the task that was busy most recently, as it has a connection. Tasks that were never needed have none.
        self.filled.notify_last();
        Ok(())
    }

    /// Puts a unit of work whose connection was lost back at the front, so that it runs once more. If this was its second
    /// run, it fails with `error`.
    pub(super) fn requeue(&self, mut work: QueuedWork, error: StoreError) {
        if work.is_retry {
            return work.complete(Err(error.into()));
        }
        work.is_retry = true;
        work.queued_at = Instant::now();
        self.put_back([work].into());
    }

    /// Waits until the queue has a unit of work. Returns `false` once the queue is closed and empty.
    pub(super) async fn wait_until_filled(&self) -> bool {
        loop {
            let mut filled = pin!(self.filled.notified());
            filled.as_mut().enable();
            let (is_filled, is_open) = {
                let state = self.lock();
                (!state.units.is_empty(), state.is_open)
            };
            if is_filled || !is_open {
                return is_filled;
            }
            filled.await;
        }
    }

    /// Takes up to `max` units of work without waiting. Returns none when another task was faster.
    pub(super) fn take(&self, max: usize) -> Vec<QueuedWork> {
        let mut state = self.lock();
        let count = state.units.len().min(max);
        state.units.drain(..count).collect()
    }

    /// Takes the units of work that have waited longer than `acquire_timeout`, oldest first, also of those that were set
    /// aside.
    pub(super) fn take_expired(&self, acquire_timeout: Duration) -> Vec<QueuedWork> {
        let is_expired = |work: &QueuedWork| work.queued_at.elapsed() > acquire_timeout;
        let mut state = self.lock();
        let State { units, set_aside, .. } = &mut *state;
        let mut expired = Vec::new();
        for waiting in std::iter::once(units).chain(set_aside.values_mut()) {
            while let Some(work) = waiting.pop_front_if(|work| is_expired(work)) {
                expired.push(work);
            }
        }
        expired
    }

    pub(super) fn is_closed(&self) -> bool {
        !self.lock().is_open
    }

    pub(super) fn close(&self) {
        self.lock().is_open = false;
        self.filled.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::QUEUE_CAPACITY;

    #[test]
    fn what_is_set_aside_counts_towards_the_capacity() {
        let (queue, tenant) = (Queue::new(1), TenantId(Uuid::nil()));
        let tenant_queue = queue.tenant_queue();
        assert!(tenant_queue.take(tenant));
        let unit = || QueuedWork::new("test", Box::new(|_| Box::pin(async { Ok(()) }))).0;
        for _ in 1..QUEUE_CAPACITY {
            queue.postpone(unit(), WaitingFor::Turn(tenant));
        }
        queue.push(unit()).unwrap();
        assert!(matches!(queue.push(unit()), Err(StoreError::Unavailable(_))));
        queue.close();
        assert!(matches!(queue.push(unit()), Err(StoreError::Closed)));
    }
}
