//! The queue of units of work that wait for a connection.

use std::pin::pin;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use svc_core::error::{Error, StoreError};
use svc_core::store::UnitOfWork;
use svc_core::sync::lock;
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
    units: Mutex<BoundedQueue<QueuedWork>>,
    filled: Notify,
}

impl Queue {
    pub(super) fn new() -> Self {
        Self { units: Mutex::new(BoundedQueue::new()), filled: Notify::new() }
    }

    fn lock(&self) -> MutexGuard<'_, BoundedQueue<QueuedWork>> {
        lock(&self.units)
    }

    pub(super) fn push(&self, work: QueuedWork) -> Result<(), StoreError> {
        self.lock().push(work)?;
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
        self.lock().push_front(work);
        self.filled.notify_last();
    }

    /// Waits until the queue has a unit of work. Returns `false` once the queue is closed and empty.
    pub(super) async fn wait_until_filled(&self) -> bool {
        loop {
            let mut filled = pin!(self.filled.notified());
            filled.as_mut().enable();
            let (is_filled, is_open) = {
                let units = self.lock();
                (!units.is_empty(), units.is_open())
            };
            if is_filled || !is_open {
                return is_filled;
            }
            filled.await;
        }
    }

    /// Takes up to `max` units of work without waiting. Returns none when another task was faster.
    pub(super) fn take(&self, max: usize) -> Vec<QueuedWork> {
        self.lock().take(max)
    }

    /// Takes the units of work that have waited longer than `acquire_timeout`, oldest first.
    pub(super) fn take_expired(&self, acquire_timeout: Duration) -> Vec<QueuedWork> {
        self.lock().take_while(|work| work.queued_at.elapsed() > acquire_timeout)
    }

    pub(super) fn is_closed(&self) -> bool {
        !self.lock().is_open()
    }

    pub(super) fn close(&self) {
        self.lock().close();
        self.filled.notify_waiters();
    }
}
