//! The jobs that wait for a thread. A thread takes many at once, which is what makes groups.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use svc_core::error::StoreError;
use svc_core::sync::lock;

use super::QueuedWork;
use crate::bounded_queue::BoundedQueue;

pub(super) struct Queue {
    line: Mutex<BoundedQueue<QueuedWork>>,
    filled: Condvar,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { line: Mutex::new(BoundedQueue::new()), filled: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BoundedQueue<QueuedWork>> {
        lock(&self.line)
    }

    pub(super) fn push(&self, job: QueuedWork) -> Result<(), StoreError> {
        self.lock().push(job)?;
        self.filled.notify_one();
        Ok(())
    }

    /// Waits for jobs and takes up to `most`; `None` once the queue is closed and empty.
    pub(super) fn wait(&self, most: usize) -> Option<Vec<QueuedWork>> {
        let mut line = self.lock();
        while line.is_empty() {
            if !line.is_open() {
                return None;
            }
            line = self.filled.wait(line).unwrap_or_else(PoisonError::into_inner);
        }
        Some(line.take(most))
    }

    /// Takes up to `most` of what waits now.
    pub(super) fn poll(&self, most: usize) -> Vec<QueuedWork> {
        self.lock().take(most)
    }

    pub(super) fn close(&self) {
        self.lock().close();
        self.filled.notify_all();
    }
}
