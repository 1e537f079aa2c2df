//! The queue of units of work that wait for a connection, and the turns of tenants.
//!
//! Writes of one tenant wait for each other at the tenant's row, and each holds a connection meanwhile. So only some of
//! them may wait there: a unit of work takes a turn before it locks the row, and one that gets none gives its connection
//! back and is set aside until a turn of its tenant ends.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use svc_core::error::{Error, StoreError};
use svc_core::store::UnitOfWork;
use svc_core::sync::lock;
use svc_core::values::TenantId;
use tokio::sync::{Notify, oneshot};

use crate::bounded_queue::BoundedQueue;

/// A unit of work in the queue.
pub(super) struct QueuedWork {
    name: &'static str,
    work: UnitOfWork,
    result_sender: oneshot::Sender<Result<(), Error>>,
    queued_at: Instant,
    /// Whether it runs again because its connection was lost.
    is_retry: bool,
}

impl QueuedWork {
    pub(super) fn new(name: &'static str, work: UnitOfWork) -> (Self, oneshot::Receiver<Result<(), Error>>) {
        let (result_sender, result) = oneshot::channel();
        (Self { name, work, result_sender, queued_at: Instant::now(), is_retry: false }, result)
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn work(&self) -> &UnitOfWork {
        &self.work
    }

    /// Returns whether the caller has stopped waiting for the result.
    pub(super) fn is_abandoned(&self) -> bool {
        self.result_sender.is_closed()
    }

    /// Sends the result to the caller.
    pub(super) fn complete(self, result: Result<(), Error>) {
        // The closure may hold a handle of the store, which must be dropped before the caller continues.
        drop(self.work);
        let _ = self.result_sender.send(result);
    }
}

pub(super) struct Queue {
    state: Mutex<State>,
    filled: Notify,
    /// How many turns a tenant has at a time.
    max_turns: usize,
}

struct State {
    units: BoundedQueue<QueuedWork>,
    /// The tenants that have a turn.
    tenants: HashMap<TenantId, TenantTurns>,
}

/// The turns of one tenant.
#[derive(Default)]
struct TenantTurns {
    taken: usize,
    /// What was set aside, in the order of its first run.
    set_aside: VecDeque<QueuedWork>,
}

/// A turn of a tenant, which ends when this is dropped.
pub(super) struct Turn<'q> {
    queue: &'q Queue,
    tenant: TenantId,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.queue.end_turn(self.tenant);
    }
}

impl Queue {
    pub(super) fn new(max_turns: usize) -> Self {
        let state = State { units: BoundedQueue::new(), tenants: HashMap::new() };
        Self { state: Mutex::new(state), filled: Notify::new(), max_turns }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Takes a turn of a tenant. Returns `None` when all are taken.
    pub(super) fn take_turn(&self, tenant: TenantId) -> Option<Turn<'_>> {
        let mut state = self.lock();
        let turns = state.tenants.entry(tenant).or_default();
        if turns.taken >= self.max_turns {
            return None;
        }
        turns.taken += 1;
        Some(Turn { queue: self, tenant })
    }

    /// Sets a unit of work that got no turn aside until a turn of its tenant ends.
    pub(super) fn set_aside(&self, work: QueuedWork, tenant: TenantId) {
        let mut state = self.lock();
        match state.tenants.get_mut(&tenant) {
            Some(turns) => turns.set_aside.push_back(work),
            // All turns have ended meanwhile.
            None => {
                state.units.push_front(work);
                drop(state);
                self.filled.notify_last();
            }
        }
    }

    fn end_turn(&self, tenant: TenantId) {
        let mut state = self.lock();
        let Some(turns) = state.tenants.get_mut(&tenant) else { return };
        turns.taken -= 1;
        let next = turns.set_aside.pop_front();
        if turns.taken == 0 && turns.set_aside.is_empty() {
            state.tenants.remove(&tenant);
        }
        if let Some(next) = next {
            state.units.push_front(next);
            drop(state);
            self.filled.notify_last();
        }
    }

    pub(super) fn push(&self, work: QueuedWork) -> Result<(), StoreError> {
        {
            let mut state = self.lock();
            let set_aside = state.tenants.values().map(|turns| turns.set_aside.len()).sum();
            state.units.push(work, set_aside)?;
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
        self.lock().units.push_front(work);
        self.filled.notify_last();
    }

    /// Waits until the queue has a unit of work. Returns `false` once the queue is closed and empty.
    pub(super) async fn wait_until_filled(&self) -> bool {
        loop {
            let mut filled = pin!(self.filled.notified());
            filled.as_mut().enable();
            let (is_filled, is_open) = {
                let state = self.lock();
                (!state.units.is_empty(), state.units.is_open())
            };
            if is_filled || !is_open {
                return is_filled;
            }
            filled.await;
        }
    }

    /// Takes up to `max` units of work without waiting. Returns none when another task was faster.
    pub(super) fn take(&self, max: usize) -> Vec<QueuedWork> {
        self.lock().units.take(max)
    }

    /// Takes the units of work that have waited longer than `acquire_timeout`, oldest first, also of those that were set
    /// aside.
    pub(super) fn take_expired(&self, acquire_timeout: Duration) -> Vec<QueuedWork> {
        let is_expired = |work: &QueuedWork| work.queued_at.elapsed() > acquire_timeout;
        let mut state = self.lock();
        let mut expired = state.units.take_while(is_expired);
        for turns in state.tenants.values_mut() {
            while let Some(work) = turns.set_aside.pop_front_if(|work| is_expired(work)) {
                expired.push(work);
            }
        }
        expired
    }

    pub(super) fn is_closed(&self) -> bool {
        !self.lock().units.is_open()
    }

    pub(super) fn close(&self) {
        self.lock().units.close();
        self.filled.notify_waiters();
    }
}
