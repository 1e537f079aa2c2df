//! The queue of units of work that wait for a thread. A thread takes many of them at once, as one group.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use svc_core::error::StoreError;
use svc_core::sync::lock;

use super::QueuedWork;
use crate::bounded_queue::BoundedQueue;

pub(super) struct Queue {
    units: Mutex<BoundedQueue<QueuedWork>>,
    filled: Condvar,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { units: Mutex::new(BoundedQueue::new()), filled: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BoundedQueue<QueuedWork>> {
        lock(&self.units)
    }

    pub(super) fn push(&self, work: QueuedWork) -> Result<(), StoreError> {
        self.lock().push(work, 0)?;
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for units of work, and takes up to `max`. Returns `None` once the queue is closed and empty.
    pub(super) fn wait(&self, max: usize) -> Option<Vec<QueuedWork>> {
        let mut units = self.lock();
        while units.is_empty() {
            if !units.is_open() {
                return None;
            }
            units = self.filled.wait(units).unwrap_or_else(PoisonError::into_inner);
        }
        Some(units.take(max))
    }

    /// Takes up to `max` units of work without waiting.
    pub(super) fn try_take(&self, max: usize) -> Vec<QueuedWork> {
        self.lock().take(max)
    }

    pub(super) fn is_closed(&self) -> bool {
        !self.lock().is_open()
    }

    pub(super) fn close(&self) {
        self.lock().close();
        self.filled.notify_all();
    }
}
