//! The queue of units of work that wait for a connection, and the turn of each tenant.
//!
//! Writes of one tenant would wait for each other at the tenant's row, and each would hold a connection meanwhile. So a
//! unit of work takes the turn of the tenant before it locks the row. One that does not get it gives its connection back
//! and is set aside, for the task that has the turn to run it.

use std::collections::VecDeque;
use std::collections::hash_map::{Entry, HashMap};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, OnceLock};
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
}

struct State {
    units: BoundedQueue<QueuedWork>,
    /// The tenants whose turn is taken, with what was set aside for each, in the order of its first run.
    set_aside: HashMap<TenantId, VecDeque<QueuedWork>>,
}

/// What takes the turn of at most one tenant. It ends when this is dropped.
pub(super) struct Turn<'q> {
    queue: &'q Queue,
    tenant: OnceLock<TenantId>,
}

impl Turn<'_> {
    /// Takes the turn of a tenant, unless one was taken before. Returns `false` when someone else has it.
    pub(super) fn take(&self, tenant: TenantId) -> bool {
        if self.tenant.get().is_some() {
            return true;
        }
        match self.queue.lock().set_aside.entry(tenant) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(VecDeque::new());
                self.tenant.set(tenant).is_ok()
            }
        }
    }

    /// Returns the first unit of work that was set aside for the tenant.
    pub(super) fn next(&self) -> Option<QueuedWork> {
        self.queue.lock().set_aside.get_mut(self.tenant.get()?)?.pop_front()
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(tenant) = self.tenant.get() {
            self.queue.end_turn(*tenant);
        }
    }
}

impl Queue {
    pub(super) fn new() -> Self {
        let state = State { units: BoundedQueue::new(), set_aside: HashMap::new() };
        Self { state: Mutex::new(state), filled: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Returns a turn that is not taken yet.
    pub(super) fn turn(&self) -> Turn<'_> {
        Turn { queue: self, tenant: OnceLock::new() }
    }

    /// Sets a unit of work that did not get the turn of its tenant aside.
    pub(super) fn set_aside(&self, work: QueuedWork, tenant: TenantId) {
        let mut state = self.lock();
        match state.set_aside.get_mut(&tenant) {
            Some(set_aside) => set_aside.push_back(work),
            // The turn has ended meanwhile.
            None => {
                state.units.push_front(work);
                drop(state);
                self.filled.notify_last();
            }
        }
    }

    fn end_turn(&self, tenant: TenantId) {
        // There is something left when the connection was lost, or when it was set aside just now.
        let left = self.lock().set_aside.remove(&tenant).unwrap_or_default();
        for work in left.into_iter().rev() {
            self.lock().units.push_front(work);
            self.filled.notify_last();
        }
    }

    pub(super) fn push(&self, work: QueuedWork) -> Result<(), StoreError> {
        {
            let mut state = self.lock();
            let set_aside = state.set_aside.values().map(VecDeque::len).sum();
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
        for set_aside in state.set_aside.values_mut() {
            while let Some(work) = set_aside.pop_front_if(|work| is_expired(work)) {
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
